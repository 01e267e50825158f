#!/usr/bin/env bash
# Tries the fairseq_stack that is installed in the active environment, in an empty folder and with no file of a
# checkout: bash scripts/try_package.sh
#
# The modules are the installed ones, the kernels are compiled and right, a corpus is prepared, and a small language
# model with a nondeterministic stack is trained on it for one epoch and scored.
set -euo pipefail

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
cd "$folder"
unset PYTHONPATH

user_dir="$(fairseq-stack user-dir)"
case "$user_dir" in
    */site-packages/fairseq_stack) printf '==> %s\n' "$user_dir" ;;
    *)
        printf 'Error: expected an installed package, got the one in %s\n' "$user_dir" >&2
        exit 1
        ;;
esac

fairseq-stack doctor | tee doctor.txt
if ! grep -q '^compiled kernels: compiled kernels, ' doctor.txt; then
    printf 'Error: the kernels of %s cannot be used, see above\n' "$user_dir" >&2
    exit 1
fi

fairseq-stack prepare cfl data --task unmarked-reversal --seed 1 --limit 40 --max-length 50 --test-max-length 50
fairseq-train data/data-bin --user-dir "$user_dir" --task language_modeling --arch stack_transformer_lm_nd_cfl \
    --sample-break-mode eos --optimizer adam --lr 1e-3 --max-tokens 1024 --max-epoch 1 --save-dir checkpoints
fairseq-eval-lm data/data-bin --user-dir "$user_dir" --path checkpoints/checkpoint_best.pt \
    --sample-break-mode eos --gen-subset test
printf '==> The package works\n'
