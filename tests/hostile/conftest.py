"""The data and models that hostile commands are run with."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands.running import REPOSITORY, Server

USER_DIR = str(REPOSITORY / "fairseq_stack")
SMALL = (
    "--encoder-embed-dim 16 --encoder-ffn-embed-dim 16 --encoder-attention-heads 2 "
    "--decoder-embed-dim 16 --decoder-ffn-embed-dim 16 --decoder-attention-heads 2"
)
TRAINING = (
    "--optimizer adam --lr 0.01 --batch-size 10 --max-epoch 2 --no-epoch-checkpoints --no-progress-bar --num-workers 0"
)
PLUGIN = f"--user-dir {USER_DIR} --cpu"


def run(server: Server, folder: Path, *words: str) -> None:
    """Run a command that must succeed."""
    command = " ".join(words).split()
    ending = server.run(command, folder)
    assert ending.code == 0, f"{command}\n{ending.errors}"


@pytest.fixture(scope="session")
def corpora(server: Server, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The part of :func:`workspace` that needs no training: ``corpora``, ``mt`` and ``lm``."""
    folder = tmp_path_factory.mktemp("corpora")
    sizes = "--train-size 40 --valid-size 10 --test-size 12 --seed 1"
    run(server, folder, f"fairseq-stack prepare nested-translation {folder}/mt {sizes}")
    strings = (
        "--task unmarked-reversal --limit 40 --min-length 10 --max-length 40 --test-min-length 10 --test-max-length 20"
    )
    run(server, folder, f"fairseq-stack prepare cfl {folder}/lm {strings} --seed 1")
    return {"corpora": f"{folder}", "mt": f"{folder}/mt/data-bin", "lm": f"{folder}/lm/data-bin"}


@pytest.fixture(scope="session")
def workspace(server: Server, corpora: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What ``{name}`` stands for in a command; several words are separated by NUL.

    ``plugin``: the options of every command. ``mt`` and ``lm``: binarised data. ``mt_model`` and ``lm_model``:
    checkpoints. ``mt_train`` and ``lm_train``: the options, data included, that they were trained with, except for
    ``--save-dir``. ``corpora``: the folder of all data.
    """
    folder = tmp_path_factory.mktemp("workspace")
    mt, lm = corpora["mt"], corpora["lm"]
    layers = "nd-2-2-3,sdpa,sup-4"
    mt_train = (
        f"{mt} {PLUGIN} --task translation --arch stack_transformer {SMALL} {TRAINING} "
        f"--stack-encoder-layers {layers} --stack-decoder-layers {layers}"
    )
    lm_train = (
        f"{lm} {PLUGIN} --task language_modeling --arch stack_transformer_lm {SMALL[SMALL.index('--decoder') :]} "
        f"{TRAINING} --sample-break-mode eos --tokens-per-sample 64 --stack-layers {layers}"
    )
    run(server, folder, "fairseq-train", mt_train, "--save-dir", f"{folder}/mt_model")
    run(server, folder, "fairseq-train", lm_train, "--save-dir", f"{folder}/lm_model")
    words = {"plugin": PLUGIN, "mt_train": mt_train, "lm_train": lm_train}
    return {name: text.replace(" ", "\0") for name, text in words.items()} | {
        **corpora,
        "mt_model": f"{folder}/mt_model/checkpoint_last.pt",
        "lm_model": f"{folder}/lm_model/checkpoint_last.pt",
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The current folder of a command, empty."""
    made = tmp_path / "here"
    made.mkdir()
    return made
