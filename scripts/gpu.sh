#!/usr/bin/env bash
# Run all that waits for a GPU, the most telling first, in about 25 minutes: are the kernels right, how fast are models and
# stacks, by PyTorch and by Triton, and do all tests of the kernels pass?
#
#   scripts/gpu.sh OUT [AUTHORS]   each part writes OUT/<part>.log as it runs, and benchmarks OUT/<part>.json
#   scripts/gpu.sh --tiny OUT      the same parts in tiny sizes, on the CPU with Triton's interpreter: do they run?
#
# AUTHORS is a clone of bdusell/stack-attention, whose stack is then measured on the same GPU. A part that fails does not
# stop the others; the exit code is then 1. PYTHON names the Python to run (default: python).
set -uo pipefail
here="$(dirname "${BASH_SOURCE[0]}")"
tiny=
if [ "${1:-}" = --tiny ]; then
    tiny=1
    shift
fi
if [ $# -lt 1 ] || [ $# -gt 2 ]; then
    sed -n '2,10s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
    exit 2
fi
mkdir -p "$1" || exit 2
out="$(cd "$1" && pwd)"
[ -z "${2:-}" ] || authors="$(cd "$2" && pwd)" || exit 2
cd "$here/.." || exit 2
python="${PYTHON:-python}"
failed=()

part() { # NAME MINUTES COMMAND...
    local name="$1" minutes="$2"
    shift 2
    printf '==> %s\n' "$name"
    if timeout "$((minutes * 60))" "$@" >"$out/$name.log" 2>&1; then
        tail -n 3 "$out/$name.log"
    else
        failed+=("$name")
        printf 'failed with exit code %s:\n' "$?"
        tail -n 5 "$out/$name.log"
    fi
}

benchmark() { # NAME MINUTES OPTIONS...
    local name="$1" minutes="$2"
    shift 2
    local where=(--device cuda)
    [ -z "$tiny" ] || where=(--quick)
    part "$name" "$minutes" "$python" scripts/benchmark.py "${where[@]}" --json "$out/$name.json" "$@"
}

steps=(--only steps --precisions float32 bf16 fp16)
tests=(tests/ops)
if [ -n "$tiny" ]; then
    steps=(--only steps)
    tests=(tests/ops/stratification)
fi
export FAIRSEQ_STACK_TRITON=1
part doctor 3 "$python" -m fairseq_stack.cli doctor
benchmark training-triton 4 "${steps[@]}"
FAIRSEQ_STACK_TRITON=0 benchmark training-pytorch 4 "${steps[@]}"
benchmark stacks 4 --only nd sup strat
benchmark decoding-triton 2 --only decoding
FAIRSEQ_STACK_TRITON=0 benchmark decoding-pytorch 2 --only decoding
[ -z "${authors:-}" ] || benchmark authors 4 --only nd --nd 2,5,2,2,3 --authors "$authors"
part tests 6 "$python" -m pytest -q -m triton "${tests[@]}"

if [ "${#failed[@]}" -gt 0 ]; then
    printf '==> Failed: %s\n' "${failed[*]}"
    exit 1
fi
printf '==> All parts passed; results in %s\n' "$out"
