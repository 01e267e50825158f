"""Table 6 of DuSell & Chiang (2024): what it costs to train the models of Table 2.

snakemake --snakefile scripts/experiments/table6.smk --profile scripts/experiments/profiles/local --directory OUT \
    --cores 1 --config data=DATA

DATA, an absolute path, holds the Penn Treebank's parsed/mrg/wsj folders. Further settings: kinds (default: tf,sup,nd),
epochs (1) and threads (of a training run, 1). One model trains at a time, so that none of them slows another.
"""

OWN_SETTINGS = {"data", "kinds", "epochs", "threads"}
DEFAULT_SEEDS = 1


include: "settings.smk"


EPOCHS = int(setting("epochs", 1))

CORPORA = {"ptb": ["ptb", "--raw", DATA, "--slips"]}
RUNS = {kind: [f"ptb/epochs-{EPOCHS}/{kind}"] for kind in KINDS}
TRAINING = {
    run: [
        *("--task", "language_modeling", "--arch", f"stack_transformer_lm_{kind}_ptb", "--seed", 1),
        *("--compact-vocab", "--compact-vocab-unk", "--sample-break-mode", "eos", "--tokens-per-sample", 512),
        *("--max-tokens", 512, "--sentence-avg", "--optimizer", "adam", "--clip-norm", 5, "--lr", "1e-5"),
        *("--max-epoch", EPOCHS, "--no-epoch-checkpoints"),
    ]
    for kind, (run,) in RUNS.items()
}
TASK, RESULT = "cost", f"ptb/epochs-{EPOCHS}/table{CHOICE}.md"
SCORES = [f"{run}/trained" for run in TRAINING]


rule all:
    input:
        RESULT,
    localrule: True


include: "common.smk"
