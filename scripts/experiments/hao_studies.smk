"""Studies of the networks of Hao et al. (2018): how the output buffer is read, the number of steps, and longer strings.

snakemake --snakefile scripts/experiments/hao_studies.smk --profile scripts/experiments/profiles/local --directory OUT

Settings (--config NAME=VALUE ...): trials (of each network; 20), epochs (at most; 100), limit (strings in a set, for a
quick look) and threads (of a training run, 1). Trials that hao_2018.smk has trained in OUT are not trained again.

The linear networks of Table 1 for reversal and XOR, plain and buffered; buffered ones read the output buffer in the order of
the released code (dequeue first) or of the paper (read first), and take n or 2n steps for strings padded to n symbols.
Each is scored on the authors' test set and on strings of up to 100 symbols, by length.
"""

OWN_SETTINGS, DEFAULT_TRIALS = set(), 20


include: "hao.smk"


# Names in the table, rows of Table 1, and further options. The options that a preset has already are left out, so that
# folders are those of Table 1.
NETWORKS = {
    ("reversal", "plain"): ("reversal-linear", []),
    ("reversal", "dequeue first, n steps"): ("reversal-buffered-linear", []),
    ("reversal", "read first, n steps"): ("reversal-buffered-linear", ["--output-reading", "read-first"]),
    ("reversal", "dequeue first, 2n steps"): ("reversal-buffered-linear", ["--time-steps", "2n"]),
    ("reversal", "read first, 2n steps"): (
        "reversal-buffered-linear",
        ["--output-reading", "read-first", "--time-steps", "2n"],
    ),
    ("xor", "plain"): ("xor-linear", []),
    ("xor", "dequeue first, n steps"): ("xor-buffered-linear", ["--time-steps", "n"]),
    ("xor", "read first, n steps"): ("xor-buffered-linear", ["--output-reading", "read-first", "--time-steps", "n"]),
    ("xor", "dequeue first, 2n steps"): ("xor-buffered-linear", []),
    ("xor", "read first, 2n steps"): ("xor-buffered-linear", ["--output-reading", "read-first"]),
}
LONGER = {  # options of fairseq-stack prepare transduction: a test set of longer strings
    "reversal": ["--test-max-length", 50, "--test-mean-length", 25, "--test-std-length", 15],
    "xor": ["--test-min-length", 1, "--test-max-length", 100],
}
RESULTS = f"hao-studies/epochs-{EPOCHS}{SMALL}-trials-{len(TRIALS)}"
SUMMARY = shlex.join(["python", str(Path(workflow.basedir) / "hao_studies.py")])


def longer(task):
    """The folder of longer strings."""
    return f"hao-2018/data{SMALL}/{task}/longer"


def runs(task, name):
    """The folders of the trials of a network."""
    row, options = NETWORKS[task, name]
    return [f"{folder_of(options)}/{row}/trial-{trial}" for trial in TRIALS]


def study(task, name):
    """The commands that train and score the trials of a network."""
    row, options = NETWORKS[task, name]
    for trial, folder in zip(TRIALS, runs(task, name)):
        yield from training(row, trial, folder, options)
        yield scoring(folder, longer(task), "test", name="longer")


def results(name):
    """The results of all trials with this name, as arguments of fairseq-stack plot."""
    return [f"{network}={run}/{name}.json" for task, network in NETWORKS for run in runs(task, network)]


rule all:
    input:
        f"{RESULTS}/table.md",
        f"{RESULTS}/lengths.png",
    default_target: True
    localrule: True


rule summarise:
    input:
        [f"{run}/{split}.json" for network in NETWORKS for run in runs(*network) for split in SPLITS],
    output:
        f"{RESULTS}/table.md",
    message:
        "the table {output}"
    params:
        runs=shlex.join(f"{task}: {name}={','.join(runs(task, name))}" for task, name in NETWORKS),
    localrule: True
    shell:
        "{SUMMARY} {output:q} {params.runs}"


rule draw:
    input:
        [f"{run}/longer.json" for network in NETWORKS for run in runs(*network)],
    output:
        f"{RESULTS}/lengths.{{format,png|pdf}}",
    message:
        "the figure {output}"
    params:
        results=shlex.join(results("longer")),
    localrule: True
    shell:
        "fairseq-stack plot accuracy {params.results} --output {output:q}"


for task, options in LONGER.items():

    rule:
        name:
            f"prepare_longer_{task}"
        output:
            touch(f"{longer(task)}/prepared"),
        message:
            f"{task}: preparing longer strings"
        params:
            commands=in_forks(preparing(longer(task), "--task", task, "--test-set", "drawn", *options)),
        shell:
            "{FORKS} {params.commands}"


for task, name in NETWORKS:

    rule:
        name:
            re.sub(r"\W+", "_", f"study_{task}_{name}")
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
