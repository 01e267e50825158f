"""Language modelling of the Penn Treebank text of Mikolov, one sentence at a time.

The models are those of Table 2 of DuSell & Chiang (2024), or a quarter as wide, and train for an equal number of epochs.

snakemake --snakefile scripts/experiments/ptb.smk --profile scripts/experiments/profiles/local --directory OUT \
    --config data=DATA

DATA, an absolute path, holds ptb.{train,valid,test}.txt, plain or .gz. Further settings: kinds (default: tf,sup,nd),
sizes (quarter; or full, for a GPU), epochs (2; with sizes=full 10), seeds (1; several as 1,2,3: the table shows the best
by validation, the mean and the deviation) and threads (of a training run, 1).
"""

OWN_SETTINGS = {"data", "kinds", "sizes", "seeds", "epochs", "threads"}
DEFAULT_SEEDS = 1


include: "settings.smk"
include: "sentences.smk"


SIZES = setting("sizes", "quarter")
if SIZES not in ("quarter", "full"):
    refuse(f"sizes={SIZES}: expected quarter or full")
FULL = SIZES == "full"
EPOCHS = int(setting("epochs", 10 if FULL else 2))
FOLDER = f"{MIKOLOV}/full-epochs-{EPOCHS}" if FULL else f"{MIKOLOV}/epochs-{EPOCHS}"


def training(kind, seed):
    """The options of a training run."""
    if not FULL:
        return sentence_training(kind, seed, EPOCHS)
    wide = ["--decoder-embed-dim", 256, "--decoder-ffn-embed-dim", 1024, "--max-tokens", 2048, "--lr", "1e-3"]
    layers = LAYERS[kind].replace("sup-127", "sup-511")
    return [*sentence_training(kind, seed, EPOCHS), "--stack-layers", layers, *wide]


CORPORA = {MIKOLOV: ["lm", *split_files(DATA, "ptb.")]}
RUNS = {kind: [f"{FOLDER}/{kind}-seed-{seed}" for seed in SEEDS] for kind in KINDS}
TRAINING = {run: training(kind, seed) for kind, runs in RUNS.items() for seed, run in zip(SEEDS, runs)}
SCORING = ["--max-tokens", 4096]
TASK, RESULT = "language-modeling", f"{FOLDER}/table{CHOICE}.md"
SCORES = [f"{run}/score-{split}.out" for run in TRAINING for split in ("valid", "test")]


rule all:
    input:
        RESULT,
    localrule: True


include: "common.smk"
