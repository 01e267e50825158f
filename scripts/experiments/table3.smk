"""Table 3 of DuSell & Chiang (2024): German-English translation of Europarl, the best of 5 runs by validation.

snakemake --snakefile scripts/experiments/table3.smk --profile scripts/experiments/profiles/slurm --directory OUT \
    --config data=DATA

DATA, an absolute path, is the folder in which the archives of WMT were unpacked (docs/data.md). Further settings: sizes
(default: small,medium,large), kinds (tf,sup,nd), seeds (1,2,3,4,5), epochs (at most; 100), interval (sentences between
validations; 50000) and threads (of a training run, 1).

The protocol is Appendix G's: a learning rate drawn log-uniformly from 1e-5 to 1e-3 for each run; a validation after every
50,000 sentences, whose loss without label smoothing is compared by all digits; the learning rate is halved after more than
2 validations without improvement, and training stops after 4.
"""

OWN_SETTINGS = {"data", "sizes", "kinds", "seeds", "epochs", "interval", "threads"}
DEFAULT_SEEDS = "1,2,3,4,5"


include: "settings.smk"


EPOCHS = int(setting("epochs", 100))
SIZES = setting_list("sizes", "small,medium,large")
SENTENCES_BETWEEN_VALIDATIONS = int(setting("interval", 50000))
FOLDER = f"europarl/epochs-{EPOCHS}-interval-{SENTENCES_BETWEEN_VALIDATIONS}"


def training(size, kind, seed):
    """The arguments of fairseq-train for one run."""
    rate = log_uniform(draw(f"table 3 {size} {kind}", seed), 1e-5, 1e-3)
    return [
        *("--task", "translation", "--arch", f"stack_transformer_{kind}_{size}", "--seed", seed),
        *("--criterion", "torch_cross_entropy", "--label-smoothing", 0.1, "--sentence-avg"),
        *("--best-checkpoint-metric", "nll_loss", "--exact-best-checkpoint-metric", "--max-tokens", 2048),
        *("--optimizer", "adam", "--clip-norm", 5, "--lr", rate, "--lr-scheduler", "validation_plateau"),
        *("--lr-shrink", 0.5, "--lr-patience", 2, "--patience", 4, "--max-epoch", EPOCHS),
        *("--validate-interval-sentences", SENTENCES_BETWEEN_VALIDATIONS, "--validate-interval", 1000000),
        *("--save-interval", 1000000, "--keep-interval-updates", 1, "--no-epoch-checkpoints"),
    ]


MODELS = [(size, kind) for size in SIZES for kind in KINDS]
CORPORA = {
    "europarl": [
        *("mt", "--source", "de", "--target", "en", "--train", f"{DATA}/training/europarl-v7.de-en"),
        *("--valid", f"{DATA}/test/newstest2016-deen", "--test", f"{DATA}/test/newstest2017-deen"),
        *("--max-ratio", 4, "--max-chars", 150, "--drop-lone-periods", "--filter-all", "--sample", 100000, "--seed", 123),
        *("--pieces", 32000, "--piece-threshold", 50, "--keep-separators"),
    ]
}
RUNS = {
    f"{kind}, {size}": [f"{FOLDER}/{size}-{kind}-seed-{seed}" for seed in SEEDS]
    for size, kind in MODELS
}
TRAINING = {
    run: training(size, kind, seed)
    for (size, kind), runs in zip(MODELS, RUNS.values())
    for seed, run in zip(SEEDS, runs)
}
GENERATION = [
    *("--task", "stack_translation", "--beam-search", "length-normalized", "--beam", 4, "--max-len-b", 256),
    *("--batch-size", 64, "--remove-bpe", "sentencepiece"),
]
TARGET = "en"
TASK, RESULT = "translation", f"{FOLDER}/table{CHOICE}.md"
SCORES = [f"{run}/scores.json" for run in TRAINING]


rule all:
    input:
        RESULT,
    localrule: True


include: "common.smk"
