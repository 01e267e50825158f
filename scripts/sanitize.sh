#!/usr/bin/env bash
# Tests the compiled kernels with the address and undefined-behaviour sanitizers of GCC: bash scripts/sanitize.sh
#
# Arguments are for pytest (default: all tests of the stacks that run on the kernels, which takes some minutes).
set -euo pipefail
# shellcheck disable=SC1091
. "$(dirname "${BASH_SOURCE[0]}")/_environment.sh"
cd "$ROOT"

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
compiler="${CC:-gcc}"
say "Compiling the kernels with sanitizers (a minute)"
# Without optimisation, which takes very long on instrumented code; for the same reason without two of the checks, which
# the address sanitizer covers.
"$compiler" -std=c11 -O0 -g -pthread -shared -fPIC -Wno-psabi -Wall -Wextra \
    -fsanitize=address,undefined -fno-sanitize=object-size,null -fno-sanitize-recover=all \
    fairseq_stack/ops/_native/src/*.c -o "$folder/kernels.so" -lm

# Python itself is not instrumented: the runtime has to be there before it starts, with C++'s beside it for the
# exceptions of torch, and leaks are not looked for, since most would be Python's.
[ $# -gt 0 ] || set -- tests/ops -k "native or state or avx512 or avx2 or baseline"
say "pytest $*"
FAIRSEQ_STACK_KERNELS="$folder/kernels.so" \
    LD_PRELOAD="$("$compiler" -print-file-name=libasan.so) $("$compiler" -print-file-name=libstdc++.so)" \
    ASAN_OPTIONS=detect_leaks=0 python -m pytest -q -p no:cacheprovider "$@"
