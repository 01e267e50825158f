"""German-English translation of Multi30k (task 1, raw text): the small presets at an equal budget of epochs.

snakemake --snakefile scripts/experiments/multi30k.smk --profile scripts/experiments/profiles/local --directory OUT \
    --config data=DATA

Where there are several kinds of models, paired-*seed-N.txt compares the others with the first, by sacrebleu's paired
bootstrap over the sentences of the test set.

DATA, an absolute path, holds {train,val,test_2016_flickr}.{de,en}, plain or .gz, from
https://github.com/multi30k/dataset (data/task1/raw). Further settings: kinds (default: tf,sup,nd), epochs (10), seeds (1;
several as 1,2,3: the table shows the best by validation, the mean and the deviation), pieces (of BPE, 8000) and threads
(of a training run, 1).
"""

OWN_SETTINGS = {"data", "kinds", "seeds", "epochs", "pieces", "threads"}
DEFAULT_SEEDS = 1


include: "settings.smk"


EPOCHS, PIECES = int(setting("epochs", 10)), int(setting("pieces", 8000))
CORPUS = f"pieces-{PIECES}"

CORPORA = {
    # Two of the pieces would be <s> and </s>, of which fairseq has its own.
    CORPUS: [
        *("mt", "--source", "de", "--target", "en", "--train", DATA / "train", "--valid", DATA / "val"),
        *("--test", DATA / "test_2016_flickr", "--normalization", "none", "--piece-normalization", "nmt_nfkc"),
        *("--pieces", PIECES - 2, "--hard-limit"),
    ]
}
RUNS = {kind: [f"{CORPUS}/epochs-{EPOCHS}/{kind}-seed-{seed}" for seed in SEEDS] for kind in KINDS}
TRAINING = {
    run: [
        *("--task", "translation", "--arch", f"stack_transformer_{kind}_small", "--stack-init", "fairseq"),
        *("--criterion", "label_smoothed_cross_entropy", "--label-smoothing", 0.1, "--seed", seed),
        *("--best-checkpoint-metric", "nll_loss", "--optimizer", "adam", "--adam-betas", "(0.9, 0.98)"),
        *("--clip-norm", 5, "--lr", "2e-3", "--lr-scheduler", "inverse_sqrt", "--warmup-updates", 400),
        *("--max-tokens", 2048, "--max-epoch", EPOCHS, "--no-epoch-checkpoints"),
    ]
    for kind, runs in RUNS.items()
    for seed, run in zip(SEEDS, runs)
}
GENERATION = [
    *("--task", "translation", "--beam", 4, "--max-len-a", 1.5, "--max-len-b", 10, "--batch-size", 64),
    *("--remove-bpe", "sentencepiece"),
]
TARGET = "en"
TASK, RESULT = "translation", f"{CORPUS}/epochs-{EPOCHS}/table{CHOICE}.md"
PAIRED = f"{CORPUS}/epochs-{EPOCHS}/paired{selection('kinds')}-seed-{{seed}}.txt"
SCORES = [f"{run}/scores.json" for run in TRAINING]
SCORES += [PAIRED.format(seed=seed) for seed in SEEDS if len(KINDS) > 1]


rule all:
    input:
        RESULT,
    localrule: True


include: "common.smk"


rule compare:
    input:
        lambda wildcards: [f"{CORPUS}/epochs-{EPOCHS}/{kind}-seed-{wildcards.seed}/hypotheses" for kind in KINDS],
    output:
        PAIRED,
    message:
        "paired bootstrap of the models with seed {wildcards.seed}"
    params:
        references=f"{CORPUS}/corpus/text/test.{TARGET}",
    shell:
        "sacrebleu {params.references:q} -i {input:q} -m bleu chrf --width 2 --paired-bs --format text > {output:q}"
