"""A user's mistake ends in one message that names what is wrong, and nothing half-written stays behind."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.conftest import Corpora
from tests.end_to_end.fairseq_commands import (
    GENERATION,
    LANGUAGE_MODEL,
    TRAINING,
    TRANSLATION,
    run,
)

SCORING = ["--sample-break-mode", "eos", "--num-workers", 0, "--cpu"]
Change = Callable[[list[str]], list[str]]


def assert_refused(message: str, command: str, *arguments: Any, save_dir: Path | None = None, stdin: str = "") -> None:
    """Assert that a command ends with an error whose message has this text, and leaves no checkpoint."""
    saving = [] if save_dir is None else ["--save-dir", save_dir]
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        run(command, *arguments, *saving, stdin=stdin)
    assert "\n" not in str(error.value)
    if save_dir is not None and save_dir.exists():
        assert not list(save_dir.iterdir())


MODELS = {"translation": TRANSLATION, "language_modeling": LANGUAGE_MODEL}
MISTAKES: list[tuple[str, list[Any], str]] = [
    ("language_modeling", ["--adaptive-input"], "no character embeddings and no adaptive input"),
    ("language_modeling", ["--adaptive-softmax-cutoff", "4,7"], "--adaptive-softmax-cutoff: stack transformers have"),
    ("translation", ["--stack-decoder-layers", "sup"], "--stack-decoder-layers: layer list 'sup': "),
    ("translation", ["--compact-vocab", "--share-all-embeddings", "--merge-src-tgt-embed"], "--merge-src-tgt-embed"),
    ("translation", ["--compact-vocab", "--encoder-embed-path", "x"], "--compact-vocab and --encoder-embed-path"),
    ("translation", ["--stack-positions", "interleaved", "--encoder-learned-pos"], "--stack-positions interleaved and"),
]


@pytest.mark.parametrize(("task", "flags", "message"), MISTAKES, ids=[flags[-1] for _, flags, _ in MISTAKES])
def test_training(corpora: Corpora, tmp_path: Path, task: str, flags: list[Any], message: str) -> None:
    assert_refused(message, "train", getattr(corpora, task), *MODELS[task], *TRAINING, *flags, save_dir=tmp_path)


def test_options_that_a_checkpoint_replaces(corpora: Corpora, language_model: Path) -> None:
    options = [corpora.language_modeling, "--path", language_model, "--batch-size", 1, "--cpu", "--task"]
    assert_refused("--task stack_truncated_bptt has no effect: the", "validate", *options, "stack_truncated_bptt")
    options += ["language_modeling", "--criterion"]
    assert_refused("--criterion adaptive_loss has no effect: the", "validate", *options, "adaptive_loss")
    assert run("validate", *options, "cross_entropy").validation_losses()


def test_layers_to_keep(corpora: Corpora, translation_model: Path) -> None:
    command = [corpora.translation, "--path", translation_model, *GENERATION]
    keep = ["--model-overrides", {"encoder_layers_to_keep": "0,3"}]
    message = "layers to keep: expected numbers below 3 for 'sdpa,sup-4,nd-2-2-3', got 3"
    assert_refused(message, "generate", *command, *keep)


def swap(lines: list[str]) -> list[str]:
    """The same symbols in another order."""
    return [lines[1], lines[0], *lines[2:]]


def add(lines: list[str]) -> list[str]:
    return [*lines, "new 1\n"]


def with_other_dictionary(data: Path, folder: Path, change: Change, pattern: str = "dict*.txt") -> Path:
    """A copy of binarised data whose dictionary files are changed."""
    shutil.copytree(data, folder)
    for path in folder.glob(pattern):
        path.write_text("".join(change(path.read_text().splitlines(keepends=True))))
    return folder


class TestOtherDictionary:
    @pytest.mark.parametrize(
        ("side", "pattern"), [("source", "dict*.txt"), ("target", "dict.tgt.txt")], ids=["both", "target"]
    )
    def test_other_size(
        self, corpora: Corpora, translation_model: Path, tmp_path: Path, side: str, pattern: str
    ) -> None:
        data = with_other_dictionary(corpora.translation, tmp_path / "data", add, pattern)
        message = f"{side} vocabulary differs from the data's: expected 16 embeddings, got 17"
        assert_refused(message, "generate", data, "--path", translation_model, *GENERATION)

    def test_other_order(self, corpora: Corpora, translation_model: Path, tmp_path: Path) -> None:
        data = with_other_dictionary(corpora.translation, tmp_path / "data", swap)
        message = "it has different symbols, or the same symbols in another order"
        command = [data, "--path", translation_model, *GENERATION]
        assert_refused(message, "generate", *command)
        assert_refused(message, "interactive", *command, "--batch-size", 1, stdin="a b\n")
        assert_refused(message, "validate", *command[:3], "--task", "translation", "--batch-size", 4, "--cpu")
        for flag in ("--restore-file", "--finetune-from-model"):
            command = [data, *TRANSLATION, *TRAINING, flag, translation_model]
            assert_refused(f"cannot continue from {translation_model}: ", "train", *command, save_dir=tmp_path / "save")

    def test_other_direction(self, corpora: Corpora, translation_model: Path, tmp_path: Path) -> None:
        command = [corpora.translation, "--path", translation_model, *GENERATION, "-s", "tgt", "-t", "src"]
        message = "the model translates from src to tgt: expected -s src -t tgt"
        assert_refused(message, "generate", *command)
        validate = [*command[:3], "--task", "translation", "-s", "tgt", "-t", "src", "--batch-size", 4, "--cpu"]
        assert_refused(message, "validate", *validate)
        back = ["-s", "tgt", "-t", "src", "--max-epoch", 1, "--save-dir", tmp_path]
        run("train", corpora.translation, *TRANSLATION, *TRAINING, *back)
        command[2] = f"{translation_model}:{tmp_path / 'checkpoint_last.pt'}"  # fairseq keeps the last configuration
        assert_refused(message, "generate", *command)


class TestOtherArchitecture:
    def test_sizes(self, corpora: Corpora, translation_model: Path, tmp_path: Path) -> None:
        layers = ["--stack-encoder-layers", "sdpa,sup-5,nd-2-2-3"]
        message = "another architecture: Error(s) in loading state_dict for StackTransformer: size mismatch for enc"
        command = [corpora.translation, *TRANSLATION, *layers, *TRAINING, "--restore-file", translation_model]
        assert_refused(message, "train", *command, save_dir=tmp_path)

    def test_use_for_another_task(self, corpora: Corpora, translation_model: Path, language_model: Path) -> None:
        message = "stack_transformer translates: expected --task translation, got LanguageModelingTask"
        assert_refused(message, "eval-lm", corpora.language_modeling, "--path", translation_model, *SCORING)
        message = "stack_transformer_lm is a language model: expected --task language_modeling, got TranslationTask"
        assert_refused(message, "generate", corpora.translation, "--path", language_model, *GENERATION)


@pytest.mark.parametrize(("task", "limits", "message"), [
    ("translation", ["--max-source-positions", 4], "expected at most (4, 1024); split longer samples, or add --skip"),
    ("language_modeling", ["--tokens-per-sample", 4], "expected at most 4; split longer samples, or add --skip"),
])  # fmt: skip
def test_too_long(corpora: Corpora, tmp_path: Path, task: str, limits: list[Any], message: str) -> None:
    assert_refused(message, "train", getattr(corpora, task), *MODELS[task], *TRAINING, *limits, save_dir=tmp_path)
