#!/usr/bin/env bash
# The demo: generates two corpora of nested sequences, trains three models of about the same size on each of them for
# the same number of updates (tf: no stack, sup and nd: stack attention in the middle layer), evaluates them, and ends
# with a table and the path of a picture. It makes the virtual environment first when that is missing.
#
#   bash scripts/demo.sh [--fresh] [--tiny] [--no-setup] [OUT]
#
#   OUT         folder to write (default: demo-out in the repository, demo-out-tiny with --tiny)
#   --fresh     start anew; else what is complete in OUT is kept, and interrupted training goes on. Files that the demo
#               did not write are kept
#   --tiny      everything once through, in about a minute: too little to learn anything
#   --no-setup  use the Python that is active instead of making a virtual environment
#
# JOBS in the environment is the number of models to train at a time (default: the number of cores, at most 6).
set -euo pipefail
ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"

usage() { sed -n '2,14s/^#\( \|$\)//p' "${BASH_SOURCE[0]}"; }

usage_error() {
    printf 'demo.sh: %s\n\n%s\n' "$1" "$(usage)" >&2
    exit 2
}

out='' fresh=no size=full setup=yes
while [ $# -gt 0 ]; do
    case "$1" in
    --fresh) fresh=yes ;;
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

# The budget: the same for all kinds of models.
if [ "$size" = full ]; then
    out="${out:-$ROOT/demo-out}"
    translation_corpus=(--depth 3 --train-size 20000 --valid-size 300 --test-size 500)
    translation_updates=1000 translation_interval=100
    reversal_corpus=(--symbols 3 --min-length 10 --max-length 20 --train-size 30000 --valid-size 300 --test-size 500)
    reversal_updates=2000 reversal_interval=100
else
    out="${out:-$ROOT/demo-out-tiny}"
    translation_corpus=(--depth 1 --train-size 200 --valid-size 20 --test-size 20)
    translation_updates=4 translation_interval=2
    reversal_corpus=(--min-length 10 --max-length 16 --train-size 200 --valid-size 20 --test-size 50)
    reversal_updates=4 reversal_interval=2
fi

say() { printf '==> %s\n' "$*"; }

fail() {
    printf 'Error: %s\n' "$*" >&2
    exit 1
}

if [ "$setup" = yes ]; then
    # shellcheck source=scripts/_environment.sh
    . "$ROOT/scripts/_environment.sh"
fi
command -v fairseq-stack >/dev/null || fail "fairseq-stack is not installed in this environment; leave out --no-setup"
user_dir="$(fairseq-stack user-dir)"
cores="$(python -c 'import os; print(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count())')"
jobs="${JOBS:-$((cores < 6 ? cores : 6))}"
export OMP_NUM_THREADS=1 # each job has one core

# Stages. One leaves its output in OUT/STAGE.out, and OUT/STAGE.done when it is complete.

run_stage() { # STAGE WHAT COMMAND...
    local stage="$1" what="$2" child started=$SECONDS
    shift 2
    if [ -e "$out/$stage.done" ]; then
        say "$what: done before"
        return
    fi
    mkdir -p "$(dirname "$out/$stage")"
    say "$what"
    "$@" </dev/null >"$out/$stage.out" 2>&1 &
    child=$!
    trap 'kill "$child" 2>/dev/null; wait "$child"; exit 143' TERM
    if ! wait "$child"; then
        tail -n 15 "$out/$stage.out" >&2
        fail "$what failed; its whole output: $out/$stage.out"
    fi
    trap - TERM
    touch "$out/$stage.done"
    say "$what: $((SECONDS - started)) s"
}

running='' # process ids of our background jobs

wait_until_fewer_than() { # NUMBER: of our background jobs are running; fails when one has failed
    local pid left
    while :; do
        left=''
        for pid in $running; do
            if kill -0 "$pid" 2>/dev/null; then
                left="$left $pid"
            else
                wait "$pid" || exit 1
            fi
        done
        running="$left"
        # shellcheck disable=SC2086
        set -- "$1" $running
        [ $# -gt "$1" ] || return 0
        sleep 0.2
    done
}

in_background() { # COMMAND...: as soon as there is room
    wait_until_fewer_than "$jobs"
    "$@" &
    running="$running $!"
}

stop_running() {
    local pid
    trap - EXIT
    for pid in $running; do
        kill "$pid" 2>/dev/null || true
    done
    wait
}
trap stop_running EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# What fairseq-train is given for both corpora. It validates and saves at the same updates, not at the end of epochs.
train_flags=(
    --user-dir "$user_dir" --cpu --seed 1 --num-workers 0
    --optimizer adam --adam-betas '(0.9, 0.98)' --clip-norm 5 --lr-scheduler polynomial_decay
    --validate-interval 1000000 --save-interval 1000000 --keep-interval-updates 1 --no-epoch-checkpoints
    --no-progress-bar --log-format json --log-interval 100
)

prepare() { # CORPUS OPTION...
    exec fairseq-stack prepare "$1" "$out/$1/corpus" --force "${@:2}"
}

train_translation() { # KIND MIDDLE-LAYER
    local save="$out/nested-translation/$1"
    exec fairseq-train "$out/nested-translation/corpus/data-bin" --task translation --arch "stack_transformer_$1_small" \
        --stack-encoder-layers "sdpa,$2,sdpa" --stack-decoder-layers "sdpa,$2,sdpa" --stack-init fairseq \
        --encoder-embed-dim 64 --encoder-ffn-embed-dim 256 --encoder-attention-heads 4 \
        --decoder-embed-dim 64 --decoder-ffn-embed-dim 256 --decoder-attention-heads 4 \
        --lr 4e-3 --warmup-updates 100 --total-num-update "$translation_updates" --max-tokens 1024 \
        --max-update "$translation_updates" --validate-interval-updates "$translation_interval" \
        --save-interval-updates "$translation_interval" --save-dir "$save" --log-file "$save/train.log" \
        "${train_flags[@]}"
}

translate() { # KIND
    local save="$out/nested-translation/$1"
    exec fairseq-generate "$out/nested-translation/corpus/data-bin" --user-dir "$user_dir" --cpu --task translation \
        --path "$save/checkpoint_best.pt" --gen-subset test --beam 4 --max-len-a 1.2 --max-len-b 5 --batch-size 100 \
        --results-path "$save" --no-progress-bar
}

train_reversal() { # KIND MIDDLE-LAYER
    local save="$out/reversal/$1"
    exec fairseq-train "$out/reversal/corpus/data-bin" --task language_modeling --arch "stack_transformer_lm_$1_cfl" \
        --stack-layers "sdpa,$2,sdpa" --compact-vocab --dropout 0 --attention-dropout 0 --activation-dropout 0 \
        --sample-break-mode eos --tokens-per-sample 64 \
        --lr 1e-2 --warmup-updates 100 --total-num-update "$reversal_updates" --max-tokens 1024 \
        --max-update "$reversal_updates" --validate-interval-updates "$reversal_interval" \
        --save-interval-updates "$reversal_interval" --save-dir "$save" --log-file "$save/train.log" \
        "${train_flags[@]}"
}

score() { # KIND
    exec fairseq-eval-lm "$out/reversal/corpus/data-bin" --user-dir "$user_dir" --cpu --gen-subset test \
        --path "$out/reversal/$1/checkpoint_best.pt" --sample-break-mode eos --tokens-per-sample 64 --max-tokens 4096 \
        --output-word-probs --no-progress-bar
}

translation() { # KIND MIDDLE-LAYER
    run_stage "nested-translation/$1/train" "Nested translation: training $1" train_translation "$@"
    run_stage "nested-translation/$1/translate" "Nested translation: translating with $1" translate "$1"
}

reversal() { # KIND MIDDLE-LAYER
    run_stage "reversal/$1/train" "Reversal: training $1" train_reversal "$@"
    run_stage "reversal/$1/score" "Reversal: scoring with $1" score "$1"
}

# A folder holds one experiment. In one that we did not make nothing is deleted; in ours, only what we made.
settings="fairseq_stack demo, $size: ${translation_corpus[*]}, $translation_updates updates;"
settings+=" ${reversal_corpus[*]}, $reversal_updates updates"
mark="$out/demo-settings"
ours=no
if [ -f "$mark" ] && [[ "$(cat "$mark")" == "fairseq_stack demo, "* ]]; then
    ours=yes
fi
if [ "$ours" = yes ] && [ "$fresh" = yes ]; then
    # The corpora are replaced when they are generated, unless there is anything else in them.
    for task in nested-translation reversal; do
        rm -f "$out/$task"/prepare.{out,done}
        for kind in tf sup nd; do
            made="$out/$task/$kind"
            rm -f "$made"/{train,translate,score}.{out,done} "$made/train.log" "$made/generate-test.txt" \
                "$made"/checkpoint_{best,last}.pt "$made"/checkpoint_[0-9]*_[0-9]*.pt
        done
    done
    rm -f "$out/table.md" "$out/results.json" "$out/demo.png"
elif [ "$ours" = yes ]; then
    [ "$(cat "$mark")" = "$settings" ] ||
        fail "$out holds a run with other settings; use --fresh to replace it, or another folder"
elif [ -n "$(ls -A "$out" 2>/dev/null)" ]; then
    fail "$out is there and was not made by the demo; choose another folder"
fi
mkdir -p "$out"
out="$(cd "$out" && pwd)"
printf '%s\n' "$settings" >"$out/demo-settings"

SECONDS=0 # without the set-up
say "Everything is written to $out; $jobs at a time"
in_background run_stage nested-translation/prepare "Nested translation: generating the corpus" \
    prepare nested-translation "${translation_corpus[@]}"
in_background run_stage reversal/prepare "Reversal: generating the corpus" prepare reversal "${reversal_corpus[@]}"
wait_until_fewer_than 1
# The longest first.
in_background translation nd nd-3-3-5
in_background translation sup sup-64
in_background reversal nd nd-2-3-5
in_background translation tf sdpa
in_background reversal sup sup-32
in_background reversal tf sdpa
wait_until_fewer_than 1

fairseq-stack report "$out"
say "Took $((SECONDS / 60)) min $((SECONDS % 60)) s"
