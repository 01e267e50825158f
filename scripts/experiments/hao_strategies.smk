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


ROWS = chosen(
    "networks", "reversal-linear,reversal-lstm,reverse-deletion-linear,parenthesis-linear,delayed-xor-linear"
)
OPTIONS = []
RESULTS = f"hao-strategies/epochs-{EPOCHS}{SMALL}-trials-{len(TRIALS)}{selection('networks')}"
SUMMARY = python_script("hao_strategies.py")


include: "hao_trials.smk"


def trained(row):
    """The data and the folders of all trials."""
    task = TABLE_1[row]["task"]
    return ",".join(f"{corpus(task, trial)}:{run(row, trial)}" for trial in TRIALS)


rule summarise:
    input:
        [f"{run(row, trial)}/{split}.json" for row in ROWS for trial in TRIALS for split in SPLITS],
    output:
        [f"{RESULTS}/strategies.{suffix}" for suffix in ("md", "json", "png")],
    default_target: True
    message:
        "the table {output[0]}"
    params:
        runs=shlex.join(f"{row}={trained(row)}" for row in ROWS),
    localrule: True
    shell:
        "{SUMMARY} {output:q} {params.runs}"
