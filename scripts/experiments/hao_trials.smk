"""The trials of the networks in ROWS, with the further options OPTIONS of fairseq-train; included after both are set."""

FOLDER = folder_of(OPTIONS)


def run(row, trial):
    """The folder of a trial."""
    return f"{FOLDER}/{row}/trial-{trial}"


for row in ROWS:

    rule:
        name:
            f"train_{row.replace('-', '_')}"
        input:
            [f"{corpus(TABLE_1[row]['task'], trial)}/prepared" for trial in TRIALS],
        output:
            [f"{run(row, trial)}/{split}.json" for trial in TRIALS for split in SPLITS],
        message:
            f"{row}: training and scoring all trials"
        params:
            commands=in_forks(job for trial in TRIALS for job in training(row, trial, run(row, trial), OPTIONS)),
        threads: THREADS
        shell:
            "{FORKS} {params.commands}"
