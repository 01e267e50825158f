"""The settings that experiments on a user's data share, from snakemake --config NAME=VALUE.

A workflow sets DEFAULT_SEEDS before it includes this file, and ALL_KINDS if its models are not tf, sup and nd.
"""

import math
import random
import shlex
from pathlib import Path

KNOWN = {"data", "kinds", "epochs", "interval", "seeds", "pieces", "sizes", "threads"}
TABLE = shlex.join(["python", str(Path(workflow.basedir) / "table.py")])


def refuse(problem):
    raise WorkflowError(f"--config {problem}")


def setting(name, default):
    """A setting, or its default."""
    return config.get(name, default)


def setting_list(name, default):
    """A setting of several values with commas between them."""
    return str(setting(name, default)).split(",")


for name in config.keys() - KNOWN:
    refuse(f"{name}=...: expected one of {', '.join(sorted(KNOWN))}")
if "data" not in config:
    refuse("data=DATA is missing: the folder with the text, as an absolute path")
DATA = Path(config["data"])
if not DATA.is_absolute():
    refuse(f"data={DATA}: expected an absolute path")
ALL_KINDS = globals().get("ALL_KINDS", "tf,sup,nd")
KINDS = setting_list("kinds", ALL_KINDS)
for kind in KINDS:
    if kind not in ALL_KINDS.split(","):
        refuse(f"kinds={','.join(KINDS)}: expected some of {ALL_KINDS}, got {kind!r}")
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
