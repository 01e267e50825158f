#!/usr/bin/env bash
# Language modelling of the Penn Treebank text of Mikolov, one sentence at a time: models of the shape of Table 2, but a
# quarter as wide, at an equal budget of epochs.
usage() {
    cat << 'TEXT'
bash scripts/experiments/ptb.sh DATA OUT [tf|sup|nd ...]

DATA holds ptb.{train,valid,test}.txt, plain or .gz.
Everything is written to OUT; what is complete there is not done again, and interrupted training goes on.
EPOCHS (default 2), SEED (default 1) and THREADS (default: all cores) are read from the environment.
An OUT that was made with other EPOCHS or SEED is refused.
TEXT
}
. "$(dirname "${BASH_SOURCE[0]}")/_experiment.sh"
epochs=${EPOCHS:-2}
declare -A layers=([tf]=5xsdpa [sup]=2xsdpa,sup-127,2xsdpa [nd]=2xsdpa,nd-3-3-10,2xsdpa)

prepare() {
    say "fairseq-preprocess (log: $out/prepare.log)"
    fairseq-stack prepare ptb "$out/corpus" --raw "$data" --mikolov sentences > "$out/prepare.log"
}

evaluate() { # KIND SPLIT
    local log=$out/$1/eval-$2.log
    grep -qs 'Perplexity' "$log" && return
    rm -f "$log"
    say "perplexity of $1 on $2"
    logged "$log" fairseq-eval-lm "$out/corpus/data-bin" --user-dir "$user_dir" --path "$out/$1/checkpoint_best.pt" \
        --gen-subset "$2" --sample-break-mode eos --max-tokens 4096
}

[ -d "$out/corpus" ] || prepare
for kind in "${kinds[@]}"; do
    train "$kind" --task language_modeling --arch "stack_transformer_lm_${kind}_ptb" \
        --decoder-embed-dim 64 --decoder-ffn-embed-dim 256 --stack-layers "${layers[$kind]}" --stack-init fairseq \
        --compact-vocab --compact-vocab-unk --sample-break-mode eos --tokens-per-sample 512 --max-tokens 1024 \
        --optimizer adam --adam-betas '(0.9, 0.98)' --clip-norm 5 --lr 4e-3 --lr-scheduler inverse_sqrt \
        --warmup-updates 400 --max-epoch "$epochs"
    evaluate "$kind" valid
    evaluate "$kind" test
done

printf '%-8s%10s%10s\n' model valid test
for kind in "${kinds[@]}"; do
    perplexities=()
    for split in valid test; do
        perplexities+=("$(sed -n 's/.*Perplexity: \([0-9.]*\).*/\1/p' "$out/$kind/eval-$split.log")")
    done
    printf '%-8s%10s%10s\n' "$kind" "${perplexities[@]}"
done
