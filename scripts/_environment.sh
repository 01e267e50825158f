# shellcheck shell=bash
# Sourced by the scripts in this folder: makes the virtual environment when it is missing or out of date, and
# activates it. Sets ROOT, the repository's folder.
#
#   FAIRSEQ_STACK_VENV         where the virtual environment is (default: .venv in the repository)
#   FAIRSEQ_STACK_TORCH_INDEX  package index to take torch from (default: the one that pip uses for everything)
#   FAIRSEQ_STACK_PACKAGE      what to install, with fairseq and matplotlib (default: the repository, editable, with the
#                              tools to develop): a wheel, or a folder
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
        if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' >/dev/null 2>&1; then
            printf '%s\n' "$candidate"
            return
        fi
        [ "$candidate" != "${PYTHON:-}" ] || fail "PYTHON=$PYTHON does not run, or is not Python 3.11, 3.12 or 3.13, which fairseq needs"
    done
    fail "no Python 3.11, 3.12 or 3.13 found, which fairseq needs; install one, or set PYTHON to its path"
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

# fairseq compiles extensions in C++: says why that cannot be done here, or nothing.
obstacle_to_compiling() {
    local compiler="${CXX:-c++}" include
    include="$("$VENV/bin/python" -c 'import sysconfig; print(sysconfig.get_path("include"))')"
    if ! command -v "${compiler%% *}" >/dev/null; then
        echo "there is no C++ compiler ($compiler), which fairseq needs (on Debian and Ubuntu: apt install g++)"
    elif [ ! -e "$include/Python.h" ]; then
        echo "Python's headers are missing in $include (on Debian and Ubuntu: apt install python3-dev)"
    # CXX may hold options.
    # shellcheck disable=SC2086
    elif ! printf '#include <vector>\n#include <Python.h>\n' | $compiler -fsyntax-only -I"$include" -x c++ - >&2; then
        echo "the C++ compiler $compiler does not work, see above (on Debian and Ubuntu: apt install g++)"
    fi
}

# Sets FAIRSEQ, the extra in setup.py: compiled here or, where that cannot be done, from wheels. Where there are the
# wheels they stay, since fairseq-fixed would be installed over them.
choose_fairseq() {
    local obstacle
    FAIRSEQ=ve-fairseq
    ! compgen -G "$VENV/lib/python3*/site-packages/ve_fairseq-*" >/dev/null || return 0
    obstacle="$(obstacle_to_compiling)"
    if [ -z "$obstacle" ]; then
        FAIRSEQ=fairseq
        return
    fi
    "$VENV/bin/python" - <<'EOF' || fail "$obstacle"
import platform, sys

sys.exit(sys.version_info >= (3, 13) or (platform.system(), platform.machine()) != ("Linux", "x86_64"))
EOF
    say "ve-fairseq, which has wheels of fairseq, is installed instead of fairseq-fixed: $obstacle"
}

run_pip() {
    local command="$1" quiet=()
    shift
    [ -t 1 ] || quiet=(--quiet)
    "$VENV/bin/python" -m pip --disable-pip-version-check "$command" ${quiet[@]+"${quiet[@]}"} \
        --constraint "$ROOT/constraints.txt" "$@" </dev/null || fail "pip $command $* failed, see above; run this again"
}

# Without -g0, information for debuggers would double the time. With build isolation, pip would fetch a second torch with
# all of CUDA, only to compile the extensions.
compile_fairseq() {
    CFLAGS="-g0 ${CFLAGS:-}" run_pip wheel --quiet --no-build-isolation --no-deps --wheel-dir "$WHEELS" fairseq-fixed
}

# The installation of the package takes compiled kernels as they are, and leaves them out where there is no compiler.
compile_kernels() {
    "$VENV/bin/python" setup.py -q build_ext --inplace >/dev/null 2>&1
}

# Builds of torch for GPUs bring the Triton that fits them. Elsewhere it is for the tests of its kernels alone, since
# torch would load it in every command.
install_triton() {
    if [ "$(uname -sm)" = "Linux x86_64" ] && ! "$VENV/bin/python" -c 'import triton' 2>/dev/null; then
        run_pip install --no-deps --upgrade --target "$VENV/triton" triton==3.9.0
    fi
}

# With -m a job has a process group, whose number is minus the job's, by which all of its processes can be ended.
in_background() {
    set -m
    "$@" &
    set +m
}

# In a subshell, which ends what it runs in the background.
install_packages() (
    WHEELS="$VENV/wheels"
    trap 'rm -rf "$WHEELS"; for job in $(jobs -p); do kill -- "-$job"; done 2>/dev/null' EXIT
    cd "$ROOT" || exit 1
    index=()
    [ -z "${FAIRSEQ_STACK_TORCH_INDEX:-}" ] || index=(--extra-index-url "$FAIRSEQ_STACK_TORCH_INDEX")
    run_pip install setuptools wheel cython numpy
    if [ -z "${FAIRSEQ_STACK_PACKAGE:-}" ]; then
        say "Compiling the kernels in the background"
        in_background compile_kernels
        kernels=$!
    fi
    say "Installing torch (the largest part: some minutes)"
    if [ "${#index[@]}" -eq 0 ] && ! command -v nvidia-smi >/dev/null && [ "$(uname)" = Linux ]; then
        say "(no GPU found: FAIRSEQ_STACK_TORCH_INDEX set to PyTorch's index of CPU builds would save gigabytes)"
    fi
    run_pip install ${index[@]+"${index[@]}"} torch
    if [ "$FAIRSEQ" = fairseq ]; then
        say "Compiling fairseq in the background (about a minute)"
        in_background compile_fairseq
        compiling=$!
    fi
    if [ -n "${FAIRSEQ_STACK_PACKAGE:-}" ]; then
        say "Installing $FAIRSEQ_STACK_PACKAGE"
        run_pip install --no-build-isolation "$FAIRSEQ_STACK_PACKAGE[plots]"
    else
        wait "$kernels" || fail "the kernels cannot be built: python setup.py build_ext --inplace says why"
        say "Installing fairseq_stack, editable, with the tools to plot, to run experiments and to develop"
        run_pip install --no-build-isolation --editable '.[dev,plots,experiments]'
        install_triton
        [ -e fairseq_stack/ops/_native/_kernels.so ] ||
            say "No C compiler: the kernels are left out, and the stacks run in PyTorch, several times slower"
    fi
    [ "$FAIRSEQ" != fairseq ] || wait "$compiling" || exit 1
    say "Installing fairseq"
    run_pip install --no-build-isolation --find-links "$WHEELS" "fairseq_stack[$FAIRSEQ]"
    # fairseq requires torchaudio and does not use it. Without a build for the torch that is here it cannot be imported,
    # and then transformers cannot be imported either.
    "$VENV/bin/python" -c 'import torchaudio' 2>/dev/null || "$VENV/bin/python" -m pip uninstall --quiet --yes torchaudio
)

ensure_environment() {
    local stamp="$VENV/fairseq_stack.stamp"
    if [ "$(cat "$stamp" 2>/dev/null)" = "$(environment_stamp)" ] && "$VENV/bin/python" --version >/dev/null 2>&1; then
        return
    fi
    make_venv
    rm -f "$stamp"
    choose_fairseq
    install_packages || exit 1
    # Last, and in one step: an environment that was interrupted is not taken for a complete one.
    environment_stamp >"$stamp.part"
    mv "$stamp.part" "$stamp"
    say "Installed in $VENV"
}

ensure_environment
# shellcheck disable=SC1091
. "$VENV/bin/activate"
