"""The settings that experiments share, from snakemake --config NAME=VALUE.

A workflow sets DEFAULT_SEEDS before it includes this file; ALL_KINDS if its models are not tf, sup and nd; and
OWN_SETTINGS, the names of all its settings, if it does not read a user's data.
"""

import math
import random
import shlex
from pathlib import Path

KNOWN = globals().get("OWN_SETTINGS", {"data", "kinds", "epochs", "interval", "seeds", "pieces", "sizes", "threads"})
TABLE = shlex.join(["python", str(Path(workflow.basedir) / "table.py")])


def refuse(problem):
    raise WorkflowError(f"--config {problem}")


def setting(name, default):
    """A setting, or its default."""
    return config.get(name, default)


def setting_list(name, default):
    """A setting of several values with commas between them."""
    return str(setting(name, default)).split(",")


def chosen(name, known, default=None):
    """The values of a setting, which are some of these; by default all of them."""
    values = setting_list(name, default or known)
    for value in values:
        if value not in known.split(","):
            refuse(f"{name}={','.join(values)}: expected some of {known}, got {value!r}")
    return values


for name in config.keys() - KNOWN:
    refuse(f"{name}=...: expected one of {', '.join(sorted(KNOWN))}")
if "data" in KNOWN:
    if "data" not in config:
        refuse("data=DATA is missing: the folder with the text, as an absolute path")
    DATA = Path(config["data"])
    if not DATA.is_absolute():
        refuse(f"data={DATA}: expected an absolute path")
ALL_KINDS = globals().get("ALL_KINDS", "tf,sup,nd")
KINDS = chosen("kinds", ALL_KINDS)
SEEDS = [int(seed) for seed in setting_list("seeds", DEFAULT_SEEDS)]


def draw(name, seed):
    """The generator of a run's random settings, which are the same whenever the workflow is run."""
    return random.Random(f"{name} {seed}")


def log_uniform(generator, low, high):
    """A number drawn log-uniformly, with four digits."""
    return f"{math.exp(generator.uniform(math.log(low), math.log(high))):.3e}"


def table_arguments(runs):
    """The arguments of table.py: for each kind of model the folders of its runs."""
    return shlex.join(f"{kind}={','.join(folders)}" for kind, folders in runs.items())
