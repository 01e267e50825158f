"""Language modelling of the Penn Treebank text of Mikolov, one sentence at a time.

The models have the shape of Table 2 of DuSell & Chiang (2024), but are a quarter as wide, and train for an equal number
of epochs.

snakemake --snakefile scripts/experiments/ptb.smk --profile scripts/experiments/profiles/local --directory OUT \
    --config data=DATA

DATA, an absolute path, holds ptb.{train,valid,test}.txt, plain or .gz. Further settings: kinds (default: tf,sup,nd),
epochs (2), seeds (1; several as 1,2,3: the table shows the best by validation, the mean and the deviation) and threads
(of a training run, 1).
"""

DEFAULT_SEEDS = 1


include: "settings.smk"
include: "sentences.smk"


EPOCHS = int(setting("epochs", 2))
CORPORA = {MIKOLOV: ["ptb", "--raw", DATA, "--mikolov", "sentences"]}
RUNS = {kind: [sentence_run(MIKOLOV, EPOCHS, kind, seed) for seed in SEEDS] for kind in KINDS}
TRAINING = {
    run: sentence_training(kind, seed, EPOCHS) for kind, runs in RUNS.items() for seed, run in zip(SEEDS, runs)
}
SCORING = ["--max-tokens", 4096]


rule table:
    input:
        [f"{run}/score-{split}.out" for runs in RUNS.values() for run in runs for split in ("valid", "test")],
    output:
        f"{MIKOLOV}/epochs-{EPOCHS}/table{CHOICE}.md",
    message:
        "the table {output}"
    params:
        runs=table_arguments(RUNS),
    localrule: True
    shell:
        "{TABLE} language-modeling {output} {params.runs}"


include: "common.smk"
