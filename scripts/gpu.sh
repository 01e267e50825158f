#!/usr/bin/env bash
# Runs what waits for a GPU, in at most 26 minutes, the most telling first: bash scripts/gpu.sh OUT
#
# Each part writes to OUT/PART.log as it goes, and its figures to OUT/PART.json; whatever fails, the others run. The exit
# status is 0 only if all passed. AUTHORS=FOLDER also measures the code of DuSell and Chiang (2024), a clone of
# github.com/bdusell/stack-attention, see docs/performance.md.
#
# bash scripts/gpu.sh --tiny OUT does the same in tiny sizes on the CPU: the tests in Triton's interpreter, and the
# benchmark with the backends of the CPU.
set -uo pipefail
began="$PWD"
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

benchmark=(python scripts/benchmark.py --device cuda)
precisions=(float32 fp16 bf16)
tests=()
if [ "${1:-}" = --tiny ]; then
    shift
    benchmark=(python scripts/benchmark.py --quick)
    precisions=(float32)
    tests=(-k "strengths_of_any_size or n2-q2-s1-m2")
    export TRITON_INTERPRET=1
elif ! python -c 'import sys, torch; sys.exit(not torch.cuda.is_available())'; then
    echo "Error: torch finds no GPU" >&2
    exit 2
fi
if [ $# -ne 1 ]; then
    echo "Usage: bash scripts/gpu.sh [--tiny] OUT" >&2
    exit 2
fi
out="$(cd "$began" && mkdir -p "$1" && cd "$1" && pwd)" || exit 2
export PYTHONUNBUFFERED=1 PYTHONPATH="$PWD:$PWD/preprocess${PYTHONPATH:+:$PYTHONPATH}"
passed=() failed=()

# part NAME SECONDS COMMAND...
part() {
    local name="$1" seconds="$2"
    shift 2
    echo "==> $name, at most $seconds s"
    if timeout --kill-after 3 "$seconds" "$@" >"$out/$name.log" 2>&1; then
        passed+=("$name")
    else
        echo "    failed with status $?, see $out/$name.log"
        failed+=("$name")
    fi
}

steps=(--only steps --repeats 5 --seconds 3 --precisions "${precisions[@]}")
part doctor 60 python -m fairseq_stack.cli doctor
part tests_nd 300 python -m pytest -v --tb short -m triton tests/ops/nondeterministic "${tests[@]}"
part steps_triton 210 "${benchmark[@]}" "${steps[@]}" --json "$out/steps_triton.json"
part steps_pytorch 180 env FAIRSEQ_STACK_TRITON=0 "${benchmark[@]}" "${steps[@]}" --json "$out/steps_pytorch.json"
part stacks_nd 150 "${benchmark[@]}" --only nd --repeats 5 --seconds 2 --json "$out/stacks_nd.json"
if [ -n "${AUTHORS:-}" ]; then
    AUTHORS="$(cd "$began" && cd "$AUTHORS" && pwd)"
    part authors 150 "${benchmark[@]}" --only authors --authors "$AUTHORS" --repeats 3 --json "$out/authors.json"
fi
part decoding 120 "${benchmark[@]}" --only decoding --repeats 5 --json "$out/decoding.json"
part stacks_others 120 "${benchmark[@]}" --only sup strat --repeats 5 --seconds 2 --json "$out/stacks_others.json"
part tests_others 240 python -m pytest -v --tb short -m triton tests/ops --ignore tests/ops/nondeterministic "${tests[@]}"

echo "==> Passed: ${passed[*]-}"
echo "==> Failed: ${failed[*]-}"
[ "${#failed[@]}" -eq 0 ]
