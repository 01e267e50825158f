# An image for CPUs, with fairseq_stack and fairseq's commands, which work in /data:
#
#   docker build --tag fairseq_stack .
#   docker run --rm fairseq_stack
#   docker run --rm --user "$(id -u):$(id -g)" --volume "$PWD:/data" fairseq_stack \
#       sh -c 'fairseq-train data-bin/mt --user-dir "$(fairseq-stack user-dir)" ...'
FROM python:3.11-slim-bookworm AS build
# fairseq needs a C++ compiler, and the kernels a C compiler, which comes with it.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++ \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
ARG FAIRSEQ_STACK_TORCH_INDEX=https://download.pytorch.org/whl/cpu
RUN --mount=type=cache,target=/var/cache/pip \
    PIP_CACHE_DIR=/var/cache/pip \
    FAIRSEQ_STACK_VENV=/opt/fairseq_stack FAIRSEQ_STACK_PACKAGE=. bash scripts/setup.sh

FROM python:3.11-slim-bookworm
COPY --from=build /opt/fairseq_stack /opt/fairseq_stack
# With docker run --user the user has no name, and no folder for what programs cache.
ENV PATH=/opt/fairseq_stack/bin:$PATH \
    USER=researcher \
    HOME=/tmp
RUN useradd --uid 1000 --no-create-home --home-dir /tmp researcher \
    && install --directory --owner researcher /data
USER 1000
WORKDIR /data
CMD ["fairseq-stack", "doctor"]
