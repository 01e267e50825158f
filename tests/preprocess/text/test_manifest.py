"""The manifest is true and complete, the same again in a second run, and fairseq reads the binarised data."""

from __future__ import annotations

import hashlib
import platform
import subprocess
from pathlib import Path
from typing import Any

import pytest

import fairseq_stack
from fairseq_stack_preprocess.cfl import language_corpus
from fairseq_stack_preprocess.errors import PrepareError
from fairseq_stack_preprocess.nested import nested_corpus as nested_translation
from fairseq_stack_preprocess.text import binarise
from tests.conftest import RUN_PREPROCESS
from tests.preprocess.corpus_folders import manifest_of, small

# Train holds every word, so that no word of the other splits is unknown.
SIZES: dict[str, Any] = {"train_size": 1500, "valid_size": 11, "test_size": 13}


@pytest.fixture(scope="module")
def nested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small binarised corpus of pairs."""
    folder = tmp_path_factory.mktemp("nested") / "out"
    nested_translation.prepare(nested_translation.Options(**SIZES), folder)
    return folder


def test_records_hashes_options_versions_and_counts(nested: Path) -> None:
    manifest = manifest_of(nested)
    files = {path.relative_to(nested).as_posix() for path in nested.rglob("*") if path.is_file()}
    assert set(manifest["outputs"]) == files - {"manifest.json"}
    for name, described in manifest["outputs"].items():
        content = (nested / name).read_bytes()
        assert described == {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    assert manifest["options"] == {"depth": 3, "test_depth": None, **SIZES, "seed": 0, "binarise": True}
    assert manifest["versions"]["fairseq_stack"] == fairseq_stack.__version__
    assert manifest["versions"]["python"] == platform.python_version()
    assert manifest["versions"]["fairseq"].startswith("fairseq")
    assert manifest["inputs"] == {}
    for split, counts in manifest["splits"].items():
        words = [line.split() for line in (nested / "text" / f"{split}.de").read_text("utf-8").splitlines()]
        assert counts["pairs"] == SIZES[f"{split}_size"] == len(words)
        assert counts["source_words"] == sum(map(len, words))
        assert sum(counts["pairs_by_depth"].values()) == len(words)


def test_binarised_corpus_has_the_same_bytes_again(
    nested: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where ``fairseq-preprocess`` has a process of its own, as it has for users."""
    monkeypatch.setattr(binarise, "run_preprocess", RUN_PREPROCESS)
    nested_translation.prepare(nested_translation.Options(**SIZES), tmp_path / "again")
    manifest = (nested / "manifest.json").read_bytes()
    assert (tmp_path / "again" / "manifest.json").read_bytes() == manifest
    assert b"data-bin/train" in manifest


def test_fairseq_loads_the_text(nested: Path) -> None:
    from fairseq.data import Dictionary, data_utils

    dictionaries = {side: Dictionary.load(str(nested / "data-bin" / f"dict.{side}.txt")) for side in ("de", "en")}
    assert dictionaries["de"].symbols == dictionaries["en"].symbols
    assert not [symbol for symbol in dictionaries["de"].symbols if "madeupword" in symbol]
    for side, dictionary in dictionaries.items():
        for split in ("train", "valid", "test"):
            dataset = data_utils.load_indexed_dataset(str(nested / "data-bin" / f"{split}.de-en.{side}"), dictionary)
            lines = (nested / "text" / f"{split}.{side}").read_text("utf-8").splitlines()
            assert [dictionary.string(dataset[i]) for i in range(len(dataset))] == lines


def test_a_folder_with_a_comma_in_its_name(tmp_path: Path) -> None:
    """fairseq cuts lists of files at commas."""
    language_corpus.prepare(small(binarise=True), tmp_path / "a,b")
    assert (tmp_path / "a,b" / "data-bin" / "test.bin").stat().st_size > 0


def test_failing_fairseq_preprocess_is_one_clear_line_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = subprocess.CompletedProcess([], 1, stdout="", stderr="Traceback ...\nOSError: disk full\n")
    monkeypatch.setattr(binarise, "run_preprocess", lambda arguments, folder: failed)
    with pytest.raises(
        PrepareError, match=r"^fairseq-preprocess, writing .*/data-bin, failed with exit code 1: OSError: disk full$"
    ):
        language_corpus.prepare(small(binarise=True), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_missing_fairseq_is_told_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binarise.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(language_corpus, "generate", lambda options: pytest.fail("work was begun"))
    with pytest.raises(PrepareError, match=r"fairseq is not installed .* --no-binarise writes text only"):
        language_corpus.prepare(small(binarise=True), tmp_path / "out")
