#!/usr/bin/env bash
# German-English translation of Multi30k (task 1, raw text): the small presets at an equal budget of epochs.
usage() {
    cat << 'TEXT'
bash scripts/experiments/multi30k.sh DATA OUT [tf|sup|nd ...]

DATA holds {train,val,test_2016_flickr}.{de,en}, plain or .gz, from https://github.com/multi30k/dataset (data/task1/raw).
Everything is written to OUT; what is complete there is not done again, and interrupted training goes on.
EPOCHS (default 10), SEED (default 1), PIECES (of BPE; default 8000) and THREADS (default: all cores) are read from the
environment. An OUT that was made with other EPOCHS, SEED or PIECES is refused.
TEXT
}
. "$(dirname "${BASH_SOURCE[0]}")/_experiment.sh"
epochs=${EPOCHS:-10} pieces=${PIECES:-8000}

prepare() {
    say "joint BPE of $pieces pieces, fairseq-preprocess (log: $out/prepare.log)"
    # Two of the pieces would be <s> and </s>, of which fairseq has its own.
    fairseq-stack prepare mt "$out/corpus" --source de --target en --train "$data/train" --valid "$data/val" \
        --test "$data/test_2016_flickr" --normalization none --piece-normalization nmt_nfkc \
        --pieces $((pieces - 2)) --hard-limit > "$out/prepare.log"
}

translate() { # KIND
    local save=$out/$1
    [ -f "$save/scores.json" ] && return
    say "translating test_2016_flickr with $1 (beam 4)"
    logged "$save/generate.log" fairseq-generate "$out/corpus/data-bin" --user-dir "$user_dir" --task translation \
        --gen-subset test --path "$save/checkpoint_best.pt" --beam 4 --max-len-a 1.5 --max-len-b 10 --batch-size 64 \
        --remove-bpe sentencepiece --results-path "$save"
    grep '^H-' "$save/generate-test.txt" | sed 's/^H-//' | sort -n | cut -f3 > "$save/hypotheses.en"
    sacrebleu "$out/corpus/text/test.en" -i "$save/hypotheses.en" -m bleu chrf --width 2 > "$save/scores.part"
    mv "$save/scores.part" "$save/scores.json"
}

[ -d "$out/corpus" ] || prepare
keep_settings "$out/corpus" "PIECES=$pieces"
for kind in "${kinds[@]}"; do
    train "$kind" --task translation --arch "stack_transformer_${kind}_small" \
        --stack-init fairseq --criterion label_smoothed_cross_entropy --label-smoothing 0.1 \
        --best-checkpoint-metric nll_loss --optimizer adam --adam-betas '(0.9, 0.98)' --clip-norm 5 --lr 2e-3 \
        --lr-scheduler inverse_sqrt --warmup-updates 400 --max-tokens 2048 --max-epoch "$epochs"
    translate "$kind"
done

python - "$out" "${kinds[@]}" << 'PYTHON'
import json, pathlib, sys

out, kinds = pathlib.Path(sys.argv[1]), sys.argv[2:]
print(f"{'model':<8}{'BLEU':>8}{'chrF':>8}")
for kind in kinds:
    scores = json.loads((out / kind / "scores.json").read_text())
    print(f"{kind:<8}" + "".join(f"{score['score']:>8.2f}" for score in scores))
print(*(f"{score['name']}|{score['signature']}" for score in scores), sep="\n")
PYTHON
