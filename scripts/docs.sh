#!/usr/bin/env bash
# Builds the documentation's site in the folder site: bash scripts/docs.sh
# Serves it while pages change: bash scripts/docs.sh serve
#
# Its tools go into a small environment of their own, .venv-docs, which needs neither torch nor fairseq: docstrings are
# read, not imported. PYTHON names the Python to make it with.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

venv=.venv-docs
if [ ! "$venv/complete" -nt constraints.txt ]; then
    "${PYTHON:-python3}" -m venv --clear "$venv"
    "$venv/bin/python" -m pip --disable-pip-version-check install --quiet --constraint constraints.txt \
        mkdocs-material 'mkdocstrings[python]' ruff # ruff breaks the lines of signatures
    touch "$venv/complete"
fi
NO_MKDOCS_2_WARNING=1 PATH="$PWD/$venv/bin:$PATH" mkdocs "${1:-build}" --strict
