"""Make a folder to give away from a training run: ``python scripts/publish_model.py CHECKPOINT FOLDER``.

FOLDER gets the parameters and the configuration of the checkpoint, as ``checkpoint_best.pt``, and the companions of the
checkpoint, such as dictionaries. The state of the optimizer and the meters are left out, and of each path in the
configuration the folders: they say nothing about the model, and name what is on one machine only.
"""

from __future__ import annotations

import argparse
from argparse import Namespace
from pathlib import Path
from typing import Any

import torch

from fairseq_stack.companions import companions_beside, missing_companions, write
from fairseq_stack.files import written_whole
from fairseq_stack.hub.paths import CHECKPOINTS, checkpoints_at

KEPT = ("args", "cfg", "model", "criterion", "optimizer_history", "task_state")


def published(state: dict[str, Any]) -> dict[str, Any]:
    """The entries of a checkpoint that describe a trained model, without the folders in paths."""
    kept = {name: state[name] for name in KEPT}
    epoch = state["extra_state"]["train_iterator"]["epoch"]
    return kept | {"cfg": without_folders(state["cfg"]), "extra_state": {"train_iterator": {"epoch": epoch}}}


def without_folders(options: Any) -> Any:
    """Options with the last part of each path in the place of the path."""
    if isinstance(options, Namespace):
        return Namespace(**without_folders(vars(options)))
    if isinstance(options, dict):
        return {name: without_folders(value) for name, value in options.items()}
    if isinstance(options, list):
        return [without_folders(value) for value in options]
    return Path(options).name if isinstance(options, str) and "/" in options else options


def main() -> None:
    """Write the folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", metavar="CHECKPOINT", type=Path, help="a checkpoint, or a folder of checkpoints")
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="the folder to write")
    args = parser.parse_args()
    (checkpoint,) = checkpoints_at(args.checkpoint)
    args.folder.mkdir(parents=True, exist_ok=True)
    with written_whole(args.folder / CHECKPOINTS[0]) as file:
        torch.save(published(torch.load(checkpoint, map_location="cpu", weights_only=True)), file)
    write(missing_companions(companions_beside(checkpoint), args.folder))


if __name__ == "__main__":
    main()
