"""How the networks of Hao et al. (2018) use their stacks: Figs. 5 and 6, as means over ten trials.

snakemake --snakefile scripts/experiments/hao_strategies.smk --profile scripts/experiments/profiles/local --directory OUT

Settings (--config NAME=VALUE ...): networks (reversal-linear,reversal-lstm,reverse-deletion-linear,parenthesis-linear,
delayed-xor-linear; several with commas between them), trials (10), epochs (at most; 100), limit (strings in a set, for a
quick look) and threads (of a training run, 1). Trials that hao_2018.smk has trained in OUT are not trained again.
"""

OWN_SETTINGS, DEFAULT_TRIALS = {"networks"}, 10
FURTHER_ROWS = {  # reversal without half of the symbols, which has no row in Table 1
    "reverse-deletion-linear": {
        "task": "reverse_deletion",
        "buffered": False,
        "controller": "linear",
        "memory": "stack",
    }
}


include: "hao.smk"


NETWORKS = chosen(
    "networks", "reversal-linear,reversal-lstm,reverse-deletion-linear,parenthesis-linear,delayed-xor-linear"
)
RESULTS = f"hao-strategies/epochs-{EPOCHS}{SMALL}-trials-{len(TRIALS)}{selection('networks')}"
SUMMARY = shlex.join(["python", str(Path(workflow.basedir) / "hao_strategies.py")])


def run(row, trial):
    """The folder of a trial."""
    return f"{folder_of([])}/{row}/trial-{trial}"


def trained(row):
    """The data and the folders of all trials."""
    task = TABLE_1[row]["task"]
    return ",".join(f"{corpus(task, trial)}:{run(row, trial)}" for trial in TRIALS)


rule summarise:
    input:
        [f"{run(row, trial)}/{split}.json" for row in NETWORKS for trial in TRIALS for split in SPLITS],
    output:
        [f"{RESULTS}/strategies.{suffix}" for suffix in ("md", "json", "png")],
    default_target: True
    message:
        "the table {output[0]}"
    params:
        runs=shlex.join(f"{row}={trained(row)}" for row in NETWORKS),
    localrule: True
    shell:
        "{SUMMARY} {output:q} {params.runs}"


for row in NETWORKS:

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
            commands=in_forks(job for trial in TRIALS for job in training(row, trial, run(row, trial), [])),
        threads: THREADS
        shell:
            "{FORKS} {params.commands}"
