"""What the experiments on formal languages share: settings, corpora and the papers' training.

A workflow sets ALL_KINDS, DEFAULT_SEEDS and OWN_SETTINGS before it includes this file, DEFAULT_EPOCHS unless its recipe
has 60, DEFAULT_LANGUAGES if these are not the papers' five, and PROTOCOLS if it has more than two. It then adds its
models, and includes cfl_results.smk. Each seed has training and validation data of its own; the test data are the same
for all.
"""

import json

CONTEXT_FREE = "marked-reversal,unmarked-reversal,padded-reversal,dyck,hardest-cfl"
NOT_CONTEXT_FREE = (
    "count-3,marked-copy,unmarked-copy,marked-reverse-and-copy,unmarked-reverse-and-copy,count-and-copy,"
    "unmarked-copy-different-alphabets"
)
ALL_LANGUAGES = f"{CONTEXT_FREE},{NOT_CONTEXT_FREE}"
# The papers' automata have two states for the others.
LANGUAGES_OF_THREE_STATES = ("padded-reversal", "hardest-cfl", *NOT_CONTEXT_FREE.split(","))
OWN_SETTINGS = {"languages", "kinds", "seeds", "epochs", "limit", "threads", *OWN_SETTINGS}


include: "settings.smk"


LANGUAGES = chosen("languages", ALL_LANGUAGES, globals().get("DEFAULT_LANGUAGES", CONTEXT_FREE))
PROTOCOL = setting("protocol", "recipe")
if PROTOCOL not in ("recipe", "paper"):
    refuse(f"protocol={PROTOCOL}: expected {globals().get('PROTOCOLS', 'recipe or paper')}")
PAPER = PROTOCOL == "paper"
EPOCHS = int(setting("epochs", 200 if PAPER else globals().get("DEFAULT_EPOCHS", 60)))
STRINGS = min(int(setting("limit", 10000)), 10000)
SAMPLES = min(STRINGS, 1000)
EPOCH_CHECKPOINTS = [] if is_yes("keep") else ["--no-epoch-checkpoints"]
SELECTION = selection("languages", "symbols", "sizes", "rates", "kinds", "seeds", "limit")
CORPORA, TRAINING, NEEDED = {}, {}, {}
XARGS = "xargs --exit --max-chars 1000000 --arg-file"  # one command for all arguments
GROUPS = {}  # for each name in the tables, and each language: the runs


def corpus(language, seed, *options, name=None):
    """The folder of the data of a language for a seed, which prepare writes."""
    folder = f"{name or language}/seed-{seed}{f'-limit-{STRINGS}' if STRINGS < 10000 else ''}"
    CORPORA[folder] = ["cfl", "--task", language, *options, "--limit", STRINGS, "--seed", seed]
    return folder


def add(group, language, folder, arguments):
    """Train a model in this folder, and show it in the tables under the name of the group."""
    GROUPS.setdefault((group, language), []).append(folder)
    add_training(folder, arguments)


def add_training(folder, arguments):
    """Train a model in this folder."""
    TRAINING[folder] = [
        *("--task", "stack_language_modeling", "--compact-vocab", "--sample-break-mode", "eos"),
        *("--tokens-per-sample", 512, "--max-epoch", EPOCHS, *EPOCH_CHECKPOINTS, *arguments),
    ]


def shown():
    """The runs in the tables and figures, by name and language: all of them, unless an experiment chooses."""
    return GROUPS


def shown_by_average():
    """For each name and language, the restarts with the least average on validation data; groups are names and choices."""
    choices = {}
    for ((name, _), language), runs in GROUPS.items():
        differences = [json.loads(Path(run, "valid.json").read_text())["overall"]["difference"]["value"] for run in runs]
        choices.setdefault((name, language), []).append((sum(differences) / len(differences), runs))
    return {
        group: min(averages, key=lambda choice: choice[0])[1] for group, averages in choices.items()
    }


WITHOUT_DROPOUT = ["--dropout", 0, "--attention-dropout", 0, "--activation-dropout", 0]
RECIPES = {  # learning rate, strings in a batch, and other options
    "tf": ("1e-2", 50, WITHOUT_DROPOUT),
    "lstm": ("5e-3", 10, ["--batches-of-neighbours"]),
}


def recipe(family, rate, seed):
    """Training with fewer updates than the papers'."""
    _, batch, options = RECIPES[family]
    updates = EPOCHS * -(-STRINGS // batch)
    return [
        *("--seed", seed, "--stack-init", "fairseq", *options, "--batch-size", batch, "--sentence-avg"),
        *("--optimizer", "adam", "--adam-betas", "(0.9, 0.999)", "--lr", rate, "--clip-norm", 5),
        *("--lr-scheduler", "polynomial_decay", "--warmup-updates", 200, "--total-num-update", updates),
    ]


def papers_training(rate, seed):
    """The papers' training: batches of ten strings of one length; the learning rate is multiplied by 0.9 after more than 5
    epochs without improvement, and training stops after 10.
    """
    return [
        *("--seed", seed, "--batches-of-neighbours", "--batch-size", 10, "--sentence-avg"),
        *("--optimizer", "adam", "--lr", rate, "--clip-norm", 5, "--lr-scheduler", "validation_plateau"),
        *("--lr-shrink", 0.9, "--lr-patience", 5, "--patience", 10, "--exact-best-checkpoint-metric"),
    ]


def tables_and_figures(folder):
    """All that an experiment makes of its results."""
    names = ("valid.md", "test.md", "lengths.png", "lengths.pdf", "training.png")
    return [f"{folder}/{name}" for name in names]
