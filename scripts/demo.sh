#!/usr/bin/env bash
# The demo: generates two corpora of nested sequences, trains three models of about the same size on each of them for
# the same number of updates (tf: no stack, sup and nd: stack attention in the middle layer), evaluates them, and ends
# with a table and the path of a picture. It makes the virtual environment first if there is none.
#
#   bash scripts/demo.sh [--tiny] [--no-setup] [OUT]
#
#   OUT         folder to write (default: demo-out in the repository, demo-out-tiny with --tiny). What is complete in it
#               is kept, and interrupted training continues
#   --tiny      everything once through, in about a minute: too little to learn anything
#   --no-setup  use the active Python instead of a virtual environment
#
# JOBS in the environment is the number of models to train at a time (default: the number of cores, at most 6).
# The work is a Snakemake workflow, scripts/experiments/demo.smk.
set -euo pipefail
ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"

usage() { sed -n '2,14s/^#\( \|$\)//p' "${BASH_SOURCE[0]}"; }

usage_error() {
    printf 'demo.sh: %s\n\n%s\n' "$1" "$(usage)" >&2
    exit 2
}

out='' size=full setup=yes
while [ $# -gt 0 ]; do
    case "$1" in
    --tiny) size=tiny ;;
    --no-setup) setup=no ;;
    -h | --help) usage && exit 0 ;;
    -*) usage_error "unknown option $1" ;;
    *)
        [ -z "$out" ] || usage_error "more than one folder: $out and $1"
        out="$1"
        ;;
    esac
    shift
done
[ "$size" = full ] && out="${out:-$ROOT/demo-out}"
out="${out:-$ROOT/demo-out-tiny}"

say() { printf '==> %s\n' "$*"; }

fail() {
    printf 'Error: %s\n' "$*" >&2
    exit 1
}

if [ "$setup" = yes ]; then
    # shellcheck source=scripts/_environment.sh
    . "$ROOT/scripts/_environment.sh"
fi
type fairseq-stack snakemake >/dev/null 2>&1 ||
    fail "fairseq-stack and snakemake are not both installed in this environment; leave out --no-setup"
cores="$(python -c 'import os; print(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count())')"
jobs="${JOBS:-$((cores < 6 ? cores : 6))}"

# Snakemake waits for the jobs that are running, and may be about to start another one.
stop_workflow() {
    while kill -0 "$group" 2>/dev/null; do
        kill -TERM -- "-$group" 2>/dev/null || true
        sleep 0.5
    done
}

# Snakemake keeps what is complete, so a folder holds one demo.
mark="fairseq_stack demo, $size"
if [ -n "$(ls -A "$out" 2>/dev/null)" ] && [ "$(cat "$out/demo-settings" 2>/dev/null)" != "$mark" ]; then
    fail "$out holds other files, or a demo of another size; choose another folder, or delete it first"
fi
mkdir -p "$out"
out="$(cd "$out" && pwd)"
printf '%s\n' "$mark" >"$out/demo-settings"

SECONDS=0 # without the set-up
say "Everything is written to $out; $jobs at a time"
# A group of processes, so that none of them survives this script.
set -m
snakemake --snakefile "$ROOT/scripts/experiments/demo.smk" --profile "$ROOT/scripts/experiments/profiles/local" \
    --directory "$out" --cores "$jobs" --nolock --config size="$size" \
    --prioritize nested-translation/nd/trained </dev/null &
group=$!
set +m
trap 'stop_workflow; exit 143' TERM
trap 'stop_workflow; exit 130' INT
wait "$group" || fail "the demo failed with exit code $?, see above; the output of every step is in $out"
trap - TERM INT
cat "$out/table.md"
printf '\npictures: %s %s\n' "$out/demo.png" "$out/demo-stack.png"
say "Took $((SECONDS / 60)) min $((SECONDS % 60)) s"
