#!/usr/bin/env bash
# Lint, types, imports and tests, after the set-up when that is missing. Arguments go to pytest:
#   bash scripts/test.sh -k superposition
# All of them run whatever fails; the exit status is 0 only if nothing did. FAIRSEQ_STACK_TEST_WORKERS sets how many
# tests run at a time (default: one a core, at most 4).
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_environment.sh"
cd "$ROOT" || exit 1
export OMP_NUM_THREADS=1

cores="$(python -c 'import os; print(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count())')"
workers="${FAIRSEQ_STACK_TEST_WORKERS:-$((cores < 4 ? cores : 4))}"
failed=()

check() {
    local name="$1"
    shift
    say "$name"
    "$@" || failed+=("$name")
}

check "Lint" ruff check .
check "Format" ruff format --check .
check "Types" mypy
check "Imports" lint-imports
check "Tests" python -m pytest -q -n "$workers" --dist worksteal --durations 15 "$@"
[ ! -d .venv-docs ] || check "Site" bash scripts/docs.sh
if [ -d "$VENV/triton" ] && [ $# -eq 0 ]; then
    check "Tests of kernels for GPUs" env PYTHONPATH="$VENV/triton" python -m pytest -q -n "$workers" tests/ops -m triton
fi

if [ "${#failed[@]}" -gt 0 ]; then
    say "Failed: ${failed[*]}"
    exit 1
fi
say "All passed"
