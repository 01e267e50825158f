"""Table 1 of Hao et al. (2018): neural stacks and buffered networks on six transduction tasks.

snakemake --snakefile scripts/experiments/hao_2018.smk --profile scripts/experiments/profiles/local --directory OUT

Settings (--config NAME=VALUE ...): rows (of the table, such as reversal-linear; default: all 18; several with commas
between them), trials (of each row; 10), epochs (at most; 100), limit (strings in a set, for a quick look), options
(further options of fairseq-train, such as "--output-reading read-first") and threads (of a training run, 1).

Each trial draws its own training and validation data, and the test set is the authors'. Training stops after 5 epochs
without a better accuracy on the validation data. As in the paper, the parameters after the last epoch are scored.
"""

import json
import re

with open(Path(workflow.basedir) / "hao_2018.json", encoding="utf-8") as file:
    TABLE_1 = json.load(file)
OWN_SETTINGS = {"rows", "trials", "epochs", "limit", "options", "threads"}
DEFAULT_SEEDS = 1


include: "settings.smk"


ROWS = chosen("rows", ",".join(TABLE_1))
TRIALS = range(1, int(setting("trials", 10)) + 1)
EPOCHS = int(setting("epochs", 100))
LIMIT = setting("limit", None)
OPTIONS = shlex.split(str(setting("options", "")))
TASKS = list(dict.fromkeys(TABLE_1[row]["task"] for row in ROWS))
SMALL = "" if LIMIT is None else f"-limit-{LIMIT}"
SLUG = re.sub(r"[^\w.]+", "-", " ".join(OPTIONS)).strip("-")
FOLDER = f"hao-2018/epochs-{EPOCHS}{SMALL}{f'-{SLUG}' if SLUG else ''}"
SPLITS = ("valid", "test")
FORKS = shlex.join(["python", str(Path(workflow.basedir) / "forks.py")])
SUMMARY = shlex.join(["python", str(Path(workflow.basedir) / "hao_2018.py")])
CORPORA, TRAINING, GENERATION, TARGET, SCORING = {}, {}, [], None, []


include: "common.smk"


def corpus(task, trial):
    """The folder of the data of a trial."""
    return f"hao-2018/data{SMALL}/{task}/seed-{trial}"


def run(row, trial):
    """The folder of a trial."""
    return f"{FOLDER}/{row}/trial-{trial}"


def preparing(task, trial):
    """The commands that write the data of a trial, each with its log."""
    folder = corpus(task, trial)
    limit = [] if LIMIT is None else ["--limit", LIMIT]
    preparation = ["fairseq-stack", "prepare", "transduction", folder, "--task", task, "--seed", trial, *limit]
    yield f"{folder}.prepare.out", [*preparation, "--no-binarise", "--force"]
    text = f"{folder}/text"
    languages = ["--source-lang", "input", "--target-lang", "target", "--joined-dictionary"]
    sets = [f"--trainpref={text}/train", f"--validpref={text}/valid", f"--testpref={text}/test"]
    dictionary = ["--srcdict", f"{text}/vocabulary.txt", "--padding-factor", 1]
    command = ["fairseq-preprocess", *languages, *dictionary, *sets, "--destdir", f"{folder}/data-bin"]
    yield f"{folder}.binarise.out", command


def architecture(row):
    """The preset of a row."""
    found = TABLE_1[row]
    words = ["neural_stack", *(["buffered"] if found["buffered"] else []), found["controller"]]
    words += [] if found["memory"] == "stack" else [found["memory"]]
    return "_".join([*words, *(["xor"] if "xor" in found["task"] else []), "2018"])


def training(row, trial):
    """The commands that train and score a trial, each with its log."""
    folder, data = run(row, trial), corpus(TABLE_1[row]["task"], trial)
    on_grammar = TABLE_1[row]["task"] in ("parenthesis", "formula", "agreement")
    train = [
        *("fairseq-train", f"{data}/data-bin", "--user-dir", USER_DIR, "--task", "stack_transduction"),
        *("--arch", architecture(row), "--seed", trial, "--criterion", "transduction"),
        *("--reduction", "sum" if on_grammar else "position_mean_sum", "--optimizer", "torch_adam"),
        *("--weight-decay", 0.01, "--lr", 0.01, "--lr-scheduler", "fixed", "--clip-norm", 0, "--batch-size", 10),
        *("--batch-size-valid", 100),
        *("--max-epoch", EPOCHS, "--patience", 5, "--best-checkpoint-metric", "accuracy"),
        *("--maximize-best-checkpoint-metric", "--no-epoch-checkpoints", "--save-interval", EPOCHS, "--cpu"),
        *("--save-dir", folder, "--log-file", f"{folder}/train.log", *LOGGING, *OPTIONS),
    ]
    yield f"{folder}/train.out", train
    for split in SPLITS:
        scoring = ["fairseq-stack", "evaluate-transduction", f"{folder}/checkpoint_last.pt", "--data", data, "--cpu"]
        yield f"{folder}/{split}.out", [*scoring, "--split", split, "--json", f"{folder}/{split}.json"]


def in_forks(commands_of, name):
    """The arguments of forks.py for all trials."""
    return shlex.join(f"{log}={commands(*words)}" for trial in TRIALS for log, words in commands_of(name, trial))


rule results:
    input:
        [f"{FOLDER}/table.{suffix}" for suffix in ("md", "tex", "json")],
    default_target: True
    localrule: True


rule summarise:
    input:
        [f"{run(row, trial)}/{split}.json" for row in ROWS for trial in TRIALS for split in SPLITS],
    output:
        [f"{FOLDER}/table.{suffix}" for suffix in ("md", "tex", "json")],
    message:
        "the table {output[0]}"
    params:
        runs=shlex.join(f"{row}={','.join(run(row, trial) for trial in TRIALS)}" for row in ROWS),
    localrule: True
    shell:
        "{SUMMARY} {output:q} {params.runs}"


for task in TASKS:

    rule:
        name:
            f"prepare_{task}"
        output:
            [touch(f"{corpus(task, trial)}/prepared") for trial in TRIALS],
        message:
            f"{task}: preparing the data of all trials"
        params:
            commands=in_forks(preparing, task),
        shell:
            "{FORKS} {params.commands}"


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
            commands=in_forks(training, row),
        threads: THREADS
        shell:
            "{FORKS} {params.commands}"
