"""What the experiments on the networks of Hao et al. (2018) share: data, training and scoring of trials.

A workflow sets OWN_SETTINGS and DEFAULT_TRIALS before it includes this file. Each trial draws its own training and
validation data, and the test set is the authors'. Many commands run in forks of one process, since importing fairseq
takes longer than training a small network.
"""

import json
import re

with open(Path(workflow.basedir) / "hao_2018.json", encoding="utf-8") as file:
    TABLE_1 = {**json.load(file), **globals().get("FURTHER_ROWS", {})}
OWN_SETTINGS = {"trials", "epochs", "limit", "threads", *OWN_SETTINGS}
DEFAULT_SEEDS = 1


include: "settings.smk"


TRIALS = range(1, int(setting("trials", DEFAULT_TRIALS)) + 1)
EPOCHS = int(setting("epochs", 100))
LIMIT = setting("limit", None)
SMALL = "" if LIMIT is None else f"-limit-{LIMIT}"
SPLITS = ("valid", "test")
FORKS = python_script("forks.py")
CORPORA, TRAINING = {}, {}


include: "common.smk"


def folder_of(options):
    """The folder of all trials with these further options of fairseq-train."""
    slug = re.sub(r"[^\w.]+", "-", " ".join(options)).strip("-")
    return f"hao-2018/epochs-{EPOCHS}{SMALL}{f'-{slug}' if slug else ''}"


def corpus(task, trial):
    """The folder of the data of a trial."""
    return f"hao-2018/data{SMALL}/{task}/seed-{trial}"


def preparing(folder, *options):
    """The commands that write data, each with its log."""
    limit = [] if LIMIT is None else ["--limit", LIMIT]
    preparation = ["fairseq-stack", "prepare", "transduction", folder, *options, *limit]
    yield f"{folder}.prepare.out", [*preparation, "--no-binarise", "--force"]
    text = f"{folder}/text"
    languages = ["--source-lang", "input", "--target-lang", "target", "--joined-dictionary"]
    sets = [f"--trainpref={text}/train", f"--validpref={text}/valid", f"--testpref={text}/test"]
    dictionary = ["--srcdict", f"{text}/vocabulary.txt", "--padding-factor", 1]
    command = ["fairseq-preprocess", *languages, *dictionary, *sets, "--destdir", f"{folder}/data-bin"]
    yield f"{folder}.binarise.out", command


def architecture(row):
    """The preset of a row."""
    about = TABLE_1[row]
    words = ["neural_stack", *(["buffered"] if about["buffered"] else []), about["controller"]]
    words += [] if about["memory"] == "stack" else [about["memory"]]
    return "_".join([*words, *(["xor"] if "xor" in about["task"] else []), "2018"])


def training(row, trial, folder, options):
    """The commands that train and score a trial, each with its log."""
    data = corpus(TABLE_1[row]["task"], trial)
    on_grammar = TABLE_1[row]["task"] in ("parenthesis", "formula", "agreement")
    train = [
        *("fairseq-train", f"{data}/data-bin", "--user-dir", USER_DIR, "--task", "stack_transduction"),
        *("--arch", architecture(row), "--seed", trial, "--criterion", "transduction"),
        *("--reduction", "sum" if on_grammar else "position_mean_sum", "--optimizer", "torch_adam"),
        *("--weight-decay", 0.01, "--lr", 0.01, "--lr-scheduler", "fixed", "--clip-norm", 0, "--batch-size", 10),
        *("--max-epoch", EPOCHS, "--patience", 5, "--best-checkpoint-metric", "accuracy"),
        *("--maximize-best-checkpoint-metric", "--no-epoch-checkpoints", "--save-interval", EPOCHS, "--cpu"),
        *("--batch-size-valid", 100, "--save-dir", folder, "--log-file", f"{folder}/train.log", *LOGGING, *options),
    ]
    yield f"{folder}/train.out", train
    for split in SPLITS:
        yield scoring(folder, data, split, name=split)


def scoring(folder, data, split, name):
    """The command that scores a trial on a split of these data, with its log."""
    command = ["fairseq-stack", "evaluate-transduction", f"{folder}/checkpoint_last.pt", "--data", data, "--cpu"]
    return f"{folder}/{name}.out", [*command, "--split", split, "--json", f"{folder}/{name}.json"]


def in_forks(jobs):
    """The arguments of forks.py for commands with their logs."""
    return shlex.join(f"{log}={commands(*words)}" for log, words in jobs)


for task in sorted({row["task"] for row in TABLE_1.values()}):

    rule:
        name:
            f"prepare_{task}"
        output:
            [touch(f"{corpus(task, trial)}/prepared") for trial in TRIALS],
        message:
            f"{task}: preparing the data of all trials"
        params:
            binaries=[f"{corpus(task, trial)}/data-bin" for trial in TRIALS],
            commands=in_forks(
                job
                for trial in TRIALS
                for job in preparing(corpus(task, trial), "--task", task, "--seed", trial)
            ),
        shell:
            "rm -rf {params.binaries:q}; {FORKS} {params.commands}"  # prepare --force only replaces what it wrote itself
