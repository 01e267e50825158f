# shellcheck shell=bash
# Sourced by the scripts in this folder: makes the virtual environment when it is missing or out of date, and
# activates it. Sets ROOT, the repository's folder.
#
#   FAIRSEQ_STACK_VENV         where the virtual environment is (default: .venv in the repository)
#   FAIRSEQ_STACK_TORCH_INDEX  package index to take torch from (default: the one that pip uses for everything)
#   FAIRSEQ_STACK_PACKAGE      what to install (default: the repository, editable, with the tools to develop): a wheel, for
#                              example, or anything else that pip installs
#   PYTHON                     the Python to make it with (default: the first of python3.11, ... that exists)

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
VENV="${FAIRSEQ_STACK_VENV:-$ROOT/.venv}"
[ "${VENV#/}" != "$VENV" ] || VENV="$PWD/$VENV"

say() {
    printf '==> %s\n' "$*"
}

fail() {
    printf 'Error: %s\n' "$*" >&2
    exit 1
}

find_python() {
    local candidate
    for candidate in ${PYTHON:+"$PYTHON"} python3.11 python3.12 python3.13 python3 python; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
            printf '%s\n' "$candidate"
            return
        fi
        [ "$candidate" != "${PYTHON:-}" ] || fail "PYTHON=$PYTHON does not run, or is older than Python 3.11"
    done
    fail "no Python >= 3.11 found; install one, or set PYTHON to its path"
}

# What has gone into the environment: when this changes, it is brought up to date.
environment_stamp() {
    {
        printf '%s\n' "$ROOT" "${FAIRSEQ_STACK_PACKAGE:-}"
        (cd "$ROOT" && cat constraints.txt setup.py pyproject.toml fairseq_stack/ops/_native/src/*)
    } | cksum
}

make_venv() {
    local python
    if [ -e "$VENV" ] && [ ! -e "$VENV/pyvenv.cfg" ] && [ -n "$(ls -A "$VENV")" ]; then
        fail "$VENV is not a virtual environment; move it away or set FAIRSEQ_STACK_VENV"
    fi
    # An environment is left as it is if it works, and repaired if not.
    if "$VENV/bin/python" -m pip --version >/dev/null 2>&1; then
        return
    fi
    python="$(find_python)" || exit 1
    "$python" -c 'import ensurepip, venv' >/dev/null 2>&1 ||
        fail "$python has no venv module (on Debian and Ubuntu: apt install python3-venv)"
    say "Making a virtual environment with $("$python" --version 2>&1) in $VENV"
    "$python" -m venv --clear "$VENV" || fail "$python cannot make a virtual environment in $VENV"
}

# fairseq compiles three small extensions in C++.
check_compiler() {
    local compiler="${CXX:-c++}" include
    command -v "${compiler%% *}" >/dev/null ||
        fail "no C++ compiler ($compiler), which fairseq needs (on Debian and Ubuntu: apt install g++)"
    include="$("$VENV/bin/python" -c 'import sysconfig; print(sysconfig.get_path("include"))')"
    [ -e "$include/Python.h" ] ||
        fail "Python's headers are missing in $include (on Debian and Ubuntu: apt install python3-dev)"
    # CXX may hold options.
    # shellcheck disable=SC2086
    printf '#include <vector>\n#include <Python.h>\n' |
        $compiler -fsyntax-only -I"$include" -x c++ - ||
        fail "the C++ compiler $compiler does not work, see above (on Debian and Ubuntu: apt install g++)"
}

pip_install() {
    local quiet=()
    [ -t 1 ] || quiet=(--quiet)
    "$VENV/bin/python" -m pip --disable-pip-version-check install ${quiet[@]+"${quiet[@]}"} \
        --constraint "$ROOT/constraints.txt" "$@" </dev/null || fail "pip install $* failed, see above; run this again"
}

install_packages() {
    local index=()
    [ -z "${FAIRSEQ_STACK_TORCH_INDEX:-}" ] || index=(--extra-index-url "$FAIRSEQ_STACK_TORCH_INDEX")
    say "Installing torch (the largest part: some minutes)"
    if [ "${#index[@]}" -eq 0 ] && ! command -v nvidia-smi >/dev/null && [ "$(uname)" = Linux ]; then
        say "(no GPU found: FAIRSEQ_STACK_TORCH_INDEX set to PyTorch's index of CPU builds would save gigabytes)"
    fi
    pip_install ${index[@]+"${index[@]}"} torch setuptools wheel cython numpy
    # With build isolation pip would fetch a second torch with all of CUDA, only to compile the extensions.
    say "Compiling and installing fairseq (about two minutes)"
    pip_install --no-build-isolation fairseq-fixed
    if [ -n "${FAIRSEQ_STACK_PACKAGE:-}" ]; then
        say "Installing $FAIRSEQ_STACK_PACKAGE"
        pip_install --no-build-isolation "$FAIRSEQ_STACK_PACKAGE"
        return
    fi
    say "Compiling the kernels and installing fairseq_stack, editable, with the tools to plot, to run experiments and to develop"
    (cd "$ROOT" && pip_install --no-build-isolation --editable '.[dev,plots,experiments]') || exit 1
    # Builds of torch for GPUs bring the Triton that fits them. Elsewhere it is for the tests of its kernels alone, since
    # torch would load it in every command.
    if [ "$(uname -sm)" = "Linux x86_64" ] && ! "$VENV/bin/python" -c 'import triton' 2>/dev/null; then
        pip_install --no-deps --upgrade --target "$VENV/triton" triton==3.9.0
    fi
}

ensure_environment() {
    local stamp="$VENV/fairseq_stack.stamp"
    if [ "$(cat "$stamp" 2>/dev/null)" = "$(environment_stamp)" ] && "$VENV/bin/python" --version >/dev/null 2>&1; then
        return
    fi
    make_venv
    rm -f "$stamp"
    check_compiler
    install_packages
    # Last, and in one step: an environment that was interrupted is not taken for a complete one.
    environment_stamp >"$stamp.part"
    mv "$stamp.part" "$stamp"
    say "Installed in $VENV"
}

ensure_environment
# shellcheck disable=SC1091
. "$VENV/bin/activate"
