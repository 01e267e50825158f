"""The companions of a checkpoint: the files in its folder without which the model cannot be used elsewhere.

They are the dictionaries of the data, the SentencePiece models or the tokenizer that cut its text, and the corpus'
manifest and ``task.json``, if ``fairseq-stack prepare`` made it. They also tell whether other data are of the same
task.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairseq_stack.errors import UserError
from fairseq_stack.files import read_text, reading_as, written_whole
from fairseq_stack_preprocess.layout import MANIFEST_NAME, PIECE_MODEL_NAME, TOKENIZER_NAME

DICTIONARIES = "dict*.txt"
MANIFEST = "corpus-manifest.json"
"""The name of the corpus' manifest next to checkpoints."""
TASK = "task.json"
PIECE_MODELS = ("sentencepiece.*.model", PIECE_MODEL_NAME, TOKENIZER_NAME)
_FACTS = ("task", "alphabet", "blank", "scored", "template", "penn", "labels")
OWN_PIECE_MODEL = "sentencepiece.bpe.model"
"""The model that the user named with ``--sentencepiece-model``, as fairseq's ``from_pretrained`` looks for it."""


def require_same_task(checkpoint: Path, data: Path) -> None:
    """Compare what the companions of a checkpoint and of data say of their tasks.

    Raises:
        UserError: they name different tasks, or symbols, a blank or scored words that differ; the data do not say what
            is scored, and the checkpoint does; or a file is not JSON.
    """
    of_model, of_data = companions_beside(checkpoint), companions_of_data(data)
    is_known = any((folder / TASK).is_file() for folder in (data, data.absolute().parent))
    if TASK in of_model and not is_known and "scored" in _facts_of_task(of_model[TASK]):
        raise UserError(
            f"{data} has no {TASK} to say what is scored, but the model was trained with {of_model[TASK]}: expected a "
            "corpus of fairseq-stack prepare transduction"
        )
    for name in (TASK, MANIFEST):
        if name not in of_model or name not in of_data:
            continue
        expected, actual = (_facts_of_task(companions[name]) for companions in (of_model, of_data))
        for key, value in expected.items():
            if value != actual.get(key, value):
                raise UserError(
                    f"{of_data[name]}: expected {key} {json.dumps(value)}, on which the model was trained "
                    f"({of_model[name]}), got {json.dumps(actual[key])}"
                )


def _facts_of_task(path: Path) -> dict[str, Any]:
    """What must not differ between the data of one task: of a manifest, the name of the task."""
    with reading_as("a file of fairseq-stack prepare", path):
        content = json.loads(read_text(path))
        facts, keys = (content, _FACTS) if path.name == TASK else (content.get("options", {}), ("task",))
        return {key: facts[key] for key in keys if facts.get(key) is not None}


def note_languages(trainer: Any) -> None:
    """Have the checkpoints name the languages of a translation task, which fairseq infers from the names of the data.

    Next to the checkpoints are only dictionaries, which do not say what is translated into what.
    """
    from omegaconf import open_dict

    with open_dict(trainer.cfg):
        for name in ("source_lang", "target_lang"):
            if hasattr(trainer.task.cfg, name):  # older tasks have a Namespace
                setattr(trainer.cfg.task, name, getattr(trainer.task.cfg, name))


def companions_of_training(cfg: Any) -> dict[str, Path]:
    """The companions of a training run, by the names that they get."""
    from fairseq import utils

    data = getattr(cfg.task, "data", None)  # some tasks have none
    companions = companions_of_data(Path(utils.split_paths(data)[0])) if data else {}
    piece_model = getattr(cfg.bpe, "sentencepiece_model", None)
    if piece_model is not None and Path(piece_model).is_file():
        companions[OWN_PIECE_MODEL] = Path(piece_model)
    return companions


def companions_of_data(folder: Path) -> dict[str, Path]:
    """The companions in a folder of data and, if ``fairseq-stack prepare`` made it, in the folder that holds it."""
    companions = {path.name: path for path in folder.glob(DICTIONARIES)}
    corpus = folder.absolute().parent
    if (corpus / MANIFEST_NAME).is_file():
        companions |= {path.name: path for pattern in PIECE_MODELS for path in corpus.glob(pattern)}
        companions[MANIFEST] = corpus / MANIFEST_NAME
        if (corpus / TASK).is_file():
            companions[TASK] = corpus / TASK
    return companions


def companions_beside(checkpoint: Path) -> dict[str, Path]:
    """The companions in the folder of a checkpoint."""
    patterns = (DICTIONARIES, *PIECE_MODELS, MANIFEST, TASK)
    return {path.name: path for pattern in patterns for path in checkpoint.parent.glob(pattern)}


def write(contents: Mapping[Path, bytes]) -> None:
    """Write files, each of them whole or not at all."""
    for path, content in contents.items():
        with written_whole(path) as file:
            file.write(content)


def missing_companions(
    companions: Mapping[str, Path], folder: Path, *, replace_manifest: bool = True
) -> dict[Path, bytes]:
    """The contents of the companions that a folder lacks, by the path that each is to have.

    Dictionaries with the same symbols in the same order do not differ.

    Args:
        companions: the files by their names.
        folder: the folder of checkpoints.
        replace_manifest: whether a manifest that differs is replaced.

    Raises:
        UserError: the folder holds another file of the same name.
    """
    missing = {}
    for name, source in companions.items():
        target = folder / name
        content = source.read_bytes()
        there = target.read_bytes() if target.is_file() else None
        if there is None or (name == MANIFEST and there != content and replace_manifest):
            missing[target] = content
        elif _meaning(name, there) != _meaning(name, content):
            raise UserError(
                f"{target} differs from {source}, which has to be saved next to the checkpoints: choose another "
                f"folder for checkpoints, or remove {target} if it belongs to an earlier training run"
            )
    return missing


def _meaning(name: str, content: bytes) -> object:
    """The content that two files of this name must share: of a dictionary only the symbols, not their counts."""
    if Path(name).match(DICTIONARIES):
        return [line.rpartition(b" ")[0] for line in content.splitlines()]
    return content
