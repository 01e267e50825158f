#!/usr/bin/env bash
# German-English translation of Multi30k (task 1, raw text) with the small presets at an equal budget of epochs.
#
#   bash scripts/experiments/multi30k.sh DATA OUT [tf|sup|nd ...]
#
# DATA holds {train,val,test_2016_flickr}.{de,en}, plain or .gz, from https://github.com/multi30k/dataset (data/task1/raw).
# Everything is written to OUT; what is complete there is not done again, and interrupted training goes on.
# EPOCHS (default 10) and SEED (default 1) can be set in the environment; so can THREADS (default: all cores).
set -euo pipefail

if [ $# -lt 2 ]; then
    sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
data=$1 out=$2
shift 2
models=("${@:-}")
[ -n "${models[0]}" ] || models=(tf sup nd)
epochs=${EPOCHS:-10} seed=${SEED:-1}
export OMP_NUM_THREADS=${THREADS:-$(nproc)}
user_dir=$(fairseq-stack user-dir)

say() { printf '%s  %s\n' "$(date +%H:%M:%S)" "$*"; }

read_text() { # prints a file of DATA, compressed or not
    if [ -f "$data/$1" ]; then cat "$data/$1"; elif [ -f "$data/$1.gz" ]; then gzip -dc "$data/$1.gz"; else
        echo "multi30k.sh: $data has neither $1 nor $1.gz" >&2
        return 2
    fi
}

prepare() {
    say "joint BPE of 8,000 pieces, fairseq-preprocess"
    local work=$out/preparing
    rm -rf "$work"
    mkdir -p "$work/text"
    for language in de en; do
        read_text "train.$language" > "$work/text/train.$language"
        read_text "val.$language" > "$work/text/valid.$language"
        read_text "test_2016_flickr.$language" > "$work/text/test.$language"
    done
    python - "$work" << 'PYTHON'
import pathlib, sys
import sentencepiece

work = pathlib.Path(sys.argv[1])
sentencepiece.SentencePieceTrainer.train(
    input=[work / "text" / "train.de", work / "text" / "train.en"], model_prefix=work / "bpe", model_type="bpe",
    vocab_size=8000, character_coverage=1.0, minloglevel=2,
)
pieces = sentencepiece.SentencePieceProcessor(model_file=str(work / "bpe.model"))
for text in sorted((work / "text").iterdir()):
    lines = text.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    encoded = (" ".join(line) + "\n" for line in pieces.encode(lines, out_type=str))
    (work / text.name).write_text("".join(encoded), encoding="utf-8")
PYTHON
    fairseq-preprocess --source-lang de --target-lang en --joined-dictionary --padding-factor 1 --workers 2 \
        --trainpref "$work/train" --validpref "$work/valid" --testpref "$work/test" --destdir "$work/data-bin" \
        > "$work/preprocess.log" 2>&1
    mv "$work" "$out/corpus"
}

train() { # KIND
    local save=$out/$1
    mkdir -p "$save"
    say "training $1 for $epochs epochs (log: $save/train.log)"
    fairseq-train "$out/corpus/data-bin" --user-dir "$user_dir" --task translation --arch "stack_transformer_$1_small" \
        --stack-init fairseq \
        --criterion label_smoothed_cross_entropy --label-smoothing 0.1 --best-checkpoint-metric nll_loss \
        --optimizer adam --adam-betas '(0.9, 0.98)' --clip-norm 5 --lr 2e-3 --lr-scheduler inverse_sqrt \
        --warmup-updates 400 --max-tokens 2048 --max-epoch "$epochs" --seed "$seed" --num-workers 0 \
        --save-dir "$save" --no-epoch-checkpoints --no-progress-bar --log-format simple --log-interval 50 \
        >> "$save/train.log" 2>&1
    touch "$save/trained"
}

translate() { # KIND
    local save=$out/$1
    say "translating test_2016_flickr with $1"
    fairseq-generate "$out/corpus/data-bin" --user-dir "$user_dir" --task translation --gen-subset test \
        --path "$save/checkpoint_best.pt" --beam 4 --max-len-a 1.5 --max-len-b 10 --batch-size 64 \
        --remove-bpe sentencepiece --results-path "$save" > "$save/generate.log" 2>&1
    grep '^H-' "$save/generate-test.txt" | sed 's/^H-//' | sort -n | cut -f3 > "$save/hypotheses.en"
    sacrebleu "$out/corpus/text/test.en" -i "$save/hypotheses.en" -m bleu chrf --width 2 > "$save/scores.json"
}

mkdir -p "$out"
[ -d "$out/corpus" ] || prepare
for model in "${models[@]}"; do
    [ -f "$out/$model/trained" ] || train "$model"
    [ -f "$out/$model/scores.json" ] || translate "$model"
done

python - "$out" "${models[@]}" << 'PYTHON'
import json, pathlib, sys

out, models = pathlib.Path(sys.argv[1]), sys.argv[2:]
print(f"{'model':<8}{'BLEU':>8}{'chrF':>8}")
for model in models:
    scores = json.loads((out / model / "scores.json").read_text())
    print(f"{model:<8}" + "".join(f"{score['score']:>8.2f}" for score in scores))
    signatures = [f"{score['name']}|{score['signature']}" for score in scores]
print(*signatures, sep="\n")
PYTHON
