"""Language modelling of the Penn Treebank text of Mikolov, one sentence at a time.

The models have the shape of Table 2 of DuSell & Chiang (2024), but are a quarter as wide, and train for an equal number
of epochs.

snakemake --snakefile scripts/experiments/ptb.smk --profile scripts/experiments/profiles/local --directory OUT \
    --config data=DATA

DATA, an absolute path, holds ptb.{train,valid,test}.txt, plain or .gz. Further settings: kinds (default: tf,sup,nd),
epochs (2), seeds (1; several as 1,2,3: the table shows the best by validation, the mean and the deviation) and threads
(of a training, 1).
"""

DEFAULT_SEEDS = 1


include: "settings.smk"


EPOCHS = int(setting("epochs", 2))
LAYERS = {"tf": "5xsdpa", "sup": "2xsdpa,sup-127,2xsdpa", "nd": "2xsdpa,nd-3-3-10,2xsdpa"}

CORPORA = {"mikolov": ["ptb", "--raw", DATA, "--mikolov", "sentences"]}
RUNS = {kind: [f"mikolov/epochs-{EPOCHS}/{kind}-seed-{seed}" for seed in SEEDS] for kind in KINDS}
TRAINING = {
    run: [
        *("--task", "language_modeling", "--arch", f"stack_transformer_lm_{kind}_ptb", "--stack-layers", LAYERS[kind]),
        *("--decoder-embed-dim", 64, "--decoder-ffn-embed-dim", 256, "--stack-init", "fairseq", "--seed", seed),
        *("--compact-vocab", "--compact-vocab-unk", "--sample-break-mode", "eos", "--tokens-per-sample", 512),
        *("--max-tokens", 1024, "--optimizer", "adam", "--adam-betas", "(0.9, 0.98)", "--clip-norm", 5, "--lr", "4e-3"),
        *("--lr-scheduler", "inverse_sqrt", "--warmup-updates", 400, "--max-epoch", EPOCHS, "--no-epoch-checkpoints"),
    ]
    for kind, runs in RUNS.items()
    for seed, run in zip(SEEDS, runs)
}
GENERATION, TARGET = [], None
SCORING = ["--max-tokens", 4096, "--output-word-probs"]


rule table:
    input:
        [f"{run}/score-{split}.out" for runs in RUNS.values() for run in runs for split in ("valid", "test")],
    output:
        f"mikolov/epochs-{EPOCHS}/table.md",
    message:
        "the table {output}"
    params:
        runs=table_arguments(RUNS),
    localrule: True
    shell:
        "{TABLE} language-modeling {output} {params.runs}"


include: "common.smk"
