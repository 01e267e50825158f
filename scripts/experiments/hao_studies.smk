"""Studies of the networks of Hao et al. (2018): how the output buffer is read, the number of steps, and longer strings.

snakemake --snakefile scripts/experiments/hao_studies.smk --profile scripts/experiments/profiles/local --directory OUT

Settings (--config NAME=VALUE ...): tasks (reversal,xor), networks (plain,dequeue-first-n,read-first-n,dequeue-first-2n,
read-first-2n; several with commas between them), trials (of each network; 20), epochs (at most; 100), limit (strings in a set, for a
quick look) and threads (of a training run, 1). Trials that hao_2018.smk has trained in OUT are not trained again.

The linear networks of Table 1 for reversal and XOR, plain and buffered; buffered ones read the output buffer in the order of
the released code (dequeue first) or of the paper (read first), and take n or 2n steps for strings padded to n symbols.
Each is scored on the authors' test set and on strings of up to 100 symbols, by length. A task has a table and a figure of its own.
"""

OWN_SETTINGS, DEFAULT_TRIALS = {"tasks", "networks"}, 20


include: "hao.smk"


READ_FIRST = ["--output-reading", "read-first"]
ROWS = {  # of Table 1, with further options; options that the preset has are left out, so that folders are those of Table 1
    "reversal": {
        "plain": ("reversal-linear", []),
        "dequeue-first-n": ("reversal-buffered-linear", []),
        "read-first-n": ("reversal-buffered-linear", READ_FIRST),
        "dequeue-first-2n": ("reversal-buffered-linear", ["--time-steps", "2n"]),
        "read-first-2n": ("reversal-buffered-linear", [*READ_FIRST, "--time-steps", "2n"]),
    },
    "xor": {
        "plain": ("xor-linear", []),
        "dequeue-first-n": ("xor-buffered-linear", ["--time-steps", "n"]),
        "read-first-n": ("xor-buffered-linear", [*READ_FIRST, "--time-steps", "n"]),
        "dequeue-first-2n": ("xor-buffered-linear", []),
        "read-first-2n": ("xor-buffered-linear", READ_FIRST),
    },
}
TASKS = chosen("tasks", ",".join(ROWS))
NAMES = chosen("networks", ",".join(ROWS["xor"]))
NETWORKS = [(task, name) for task in TASKS for name in NAMES]
LONGER = {  # options of fairseq-stack prepare transduction: a test set of longer strings
    "reversal": ["--test-max-length", 50, "--test-mean-length", 25, "--test-std-length", 15],
    "xor": ["--test-min-length", 1, "--test-max-length", 100],
}
LONGEST = {"reversal": 24, "xor": 12}  # of the training strings
DRAWN = ("valid", "longer")  # valid says which trials learned the task
RESULTS = f"hao-studies/epochs-{EPOCHS}{SMALL}-trials-{len(TRIALS)}{selection('networks')}"


def longer(task):
    """The folder of longer strings."""
    return f"hao-2018/data{SMALL}/{task}/longer"


def runs(task, name):
    """The folders of the trials of a network."""
    row, options = ROWS[task][name]
    return [f"{folder_of(options)}/{row}/trial-{trial}" for trial in TRIALS]


def study(task, name):
    """The commands that train and score the trials of a network."""
    row, options = ROWS[task][name]
    for trial, folder in zip(TRIALS, runs(task, name)):
        yield from training(row, trial, folder, options)
        yield scoring(folder, longer(task), "test", name="longer")


rule all:
    input:
        [f"{RESULTS}/{task}/{result}" for task in TASKS for result in ("table.md", "lengths.png")],
    default_target: True
    localrule: True


wildcard_constraints:
    task="|".join(TASKS),


rule summarise:
    input:
        lambda wildcards: [
            f"{run}/{split}.json" for name in NAMES for run in runs(wildcards.task, name) for split in SPLITS
        ],
    output:
        f"{RESULTS}/{{task}}/table.md",
    message:
        "the table {output}"
    params:
        runs=lambda wildcards: table_arguments({name: runs(wildcards.task, name) for name in NAMES}),
    localrule: True
    shell:
        "{TABLE} studies {output:q} {params.runs}"


rule draw:
    input:
        lambda wildcards: [
            f"{run}/{split}.json" for split in DRAWN for name in NAMES for run in runs(wildcards.task, name)
        ],
    output:
        f"{RESULTS}/{{task}}/lengths.{{format,png|pdf}}",
    message:
        "the figure {output}"
    params:
        results=lambda wildcards: shlex.join(
            f"{name}={run}/{split}.json" for split in DRAWN for name in NAMES for run in runs(wildcards.task, name)
        ),
        longest=lambda wildcards: LONGEST[wildcards.task],
    localrule: True
    shell:
        "fairseq-stack plot accuracy {params.results} --longest {params.longest} --output {output:q}"


for task in TASKS:

    rule:
        name:
            f"prepare_longer_{task}"
        output:
            touch(f"{longer(task)}/prepared"),
        message:
            f"{task}: preparing longer strings"
        params:
            binary=f"{longer(task)}/data-bin",
            commands=in_forks(preparing(longer(task), "--task", task, "--test-set", "drawn", *LONGER[task])),
        shell:
            "rm -rf {params.binary:q}; {FORKS} {params.commands}"


for task, name in NETWORKS:

    rule:
        name:
            f"study_{task}_{name.replace('-', '_')}"
        input:
            [f"{corpus(task, trial)}/prepared" for trial in TRIALS],
            f"{longer(task)}/prepared",
        output:
            [f"{run}/{part}.json" for run in runs(task, name) for part in (*SPLITS, "longer")],
        message:
            f"{task}, {name}: training and scoring all trials"
        params:
            commands=in_forks(study(task, name)),
        threads: THREADS
        shell:
            "{FORKS} {params.commands}"
