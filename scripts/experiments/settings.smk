"""The settings that experiments share, from snakemake --config NAME=VALUE.

A workflow sets OWN_SETTINGS, the names of all its settings, and DEFAULT_SEEDS before it includes this file; ALL_KINDS if
its models are not tf, sup and nd; and DEFAULT_KINDS if these are not all of them.
"""

import math
import random
import shlex
from pathlib import Path


def python_script(name):
    """The command that runs a script of this folder."""
    return shlex.join(["python", str(Path(workflow.basedir) / name)])


TABLE = python_script("table.py")


def refuse(problem):
    raise WorkflowError(f"--config {problem}")


def setting(name, default):
    """A setting, or its default."""
    return config.get(name, default)


def setting_list(name, default):
    """A setting of several values with commas between them."""
    return str(setting(name, default)).split(",")


def is_yes(name):
    """Whether a setting is yes, not no, its default."""
    value = setting(name, "no")
    if value not in (True, False, "yes", "no"):  # YAML reads yes as true
        refuse(f"{name}={value}: expected yes or no")
    return value in (True, "yes")


def chosen(name, known, default=None):
    """The values of a setting, which are some of these; by default all of them."""
    values = setting_list(name, default or known)
    for value in values:
        if value not in known.split(","):
            refuse(f"{name}={','.join(values)}: expected some of {known}, got {value!r}")
    return values


def selection(*names):
    """A suffix for what is made of all results: each choice of runs has tables of its own."""
    return "".join(f"-{name}-{config[name]}".replace(",", "+") for name in names if name in config)


def data_folder(name, content):
    """The folder of a user's data that a setting names."""
    if name not in config:
        refuse(f"{name}={name.upper()} is missing: the folder with {content}, as an absolute path")
    folder = Path(config[name])
    if not folder.is_absolute():
        refuse(f"{name}={folder}: expected an absolute path")
    return folder


def plain_or_gz(path):
    """The path of a file, or of the same file compressed."""
    compressed = path.with_name(f"{path.name}.gz")
    return compressed if compressed.exists() else path


def split_files(folder, prefix=""):
    """The arguments that name the files of a folder with the text of each split."""
    splits = ("train", "valid", "test")
    return [word for split in splits for word in (f"--{split}", plain_or_gz(folder / f"{prefix}{split}.txt"))]


for name in config.keys() - OWN_SETTINGS:
    refuse(f"{name}=...: expected one of {', '.join(sorted(OWN_SETTINGS))}")
if "data" in OWN_SETTINGS:
    DATA = data_folder("data", "the text")
ALL_KINDS = globals().get("ALL_KINDS", "tf,sup,nd")
KINDS = chosen("kinds", ALL_KINDS, globals().get("DEFAULT_KINDS"))
SEEDS = [int(seed) for seed in setting_list("seeds", DEFAULT_SEEDS)]
CHOICE = selection("kinds", "seeds")  # in the names of tables


def draw(name, seed):
    """The generator of a run's random settings, which are the same whenever the workflow is run."""
    return random.Random(f"{name} {seed}")


def log_uniform(generator, low, high):
    """A number drawn log-uniformly, with four digits."""
    return f"{math.exp(generator.uniform(math.log(low), math.log(high))):.3e}"


def table_arguments(runs):
    """The arguments of table.py: for each kind of model the folders of its runs."""
    return shlex.join(f"{kind}={','.join(folders)}" for kind, folders in runs.items())
