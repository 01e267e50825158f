"""What is copied beside the checkpoints, and what is refused."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from omegaconf import OmegaConf

from fairseq_stack.companions import (
    MANIFEST,
    OWN_PIECE_MODEL,
    companions_beside,
    companions_of_data,
    companions_of_training,
    missing_companions,
    note_languages,
    require_same_task,
    write,
)
from fairseq_stack.errors import UserError


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """The files that matter of a corpus of fairseq-stack prepare."""
    corpus = tmp_path / "corpus"
    (corpus / "data-bin").mkdir(parents=True)
    for name in ("data-bin/dict.de.txt", "data-bin/dict.en.txt"):
        (corpus / name).write_text("a 1\nb 2\n")
    for name in ("data-bin/train.de-en.de.bin", "sentencepiece.de.model", "sentencepiece.en.model", "manifest.json"):
        (corpus / name).write_text(name)
    return corpus


def saved(corpus: Path, folder: Path) -> dict[str, bytes]:
    folder.mkdir(exist_ok=True)
    write(missing_companions(companions_of_data(corpus / "data-bin"), folder))
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_prepared_corpus(corpus: Path, tmp_path: Path) -> None:
    names = {"dict.de.txt", "dict.en.txt", "sentencepiece.de.model", "sentencepiece.en.model", MANIFEST}
    copies = saved(corpus, tmp_path / "checkpoints")
    assert copies.keys() == names
    assert copies["dict.de.txt"] == b"a 1\nb 2\n"
    assert copies[MANIFEST] == b"manifest.json"
    assert companions_beside(tmp_path / "checkpoints" / "checkpoint_best.pt").keys() == names
    assert saved(corpus, tmp_path / "checkpoints") == copies


def test_without_a_manifest_the_folder_above_is_not_searched(corpus: Path, tmp_path: Path) -> None:
    (corpus / "manifest.json").unlink()
    assert saved(corpus, tmp_path / "checkpoints").keys() == {"dict.de.txt", "dict.en.txt"}


def test_checkpoints_beside_the_data(corpus: Path) -> None:
    before = {path.name: path.read_bytes() for path in (corpus / "data-bin").iterdir()}
    after = saved(corpus, corpus / "data-bin")
    assert {name: after[name] for name in before} == before


def test_counts_and_manifests_may_differ(corpus: Path, tmp_path: Path) -> None:
    saved(corpus, tmp_path / "checkpoints")
    (corpus / "data-bin" / "dict.de.txt").write_text("a 7\nb 1\n")
    (corpus / "manifest.json").write_text("new")
    copies = saved(corpus, tmp_path / "checkpoints")
    assert (copies["dict.de.txt"], copies[MANIFEST]) == (b"a 1\nb 2\n", b"new")


@pytest.mark.parametrize("name", ["dict.en.txt", "sentencepiece.en.model"])
def test_other_files_are_not_overwritten(corpus: Path, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    (folder / name).write_text("b 2\na 1\n")
    with pytest.raises(UserError, match=rf"checkpoints/{name} differs from .*{name}.*another folder"):
        saved(corpus, folder)
    assert {path.name: path.read_text() for path in folder.iterdir()} == {name: "b 2\na 1\n"}


@pytest.mark.parametrize(
    ("trained", "given", "problem"),
    [
        ('{"options": {"task": "dyck"}}', '{"options": {"task": "hardest-cfl"}}', 'task "dyck", .* got "hardest-cfl"$'),
        ('{"options": {"task": "dyck"}}', '{"options": {"task": "dyck", "seed": 2}}', None),
        ('{"options": {"task": null}}', '{"options": {"task": "dyck"}}', None),
        ('{"options": {"penn": true}}', '{"options": {"penn": false}}', None),
        ('{"corpus": "mt"}', '{"corpus": "treebank"}', None),
        ("{}", "[]", r"corpus/manifest\.json is not a file of fairseq-stack prepare: "),
        ("{", "{}", r"corpus-manifest\.json is not a file of fairseq-stack prepare: "),
    ],
    ids=["other", "seed", "grammar", "tokenised before", "no-task", "list", "broken"],
)
def test_tasks_of_manifests(corpus: Path, trained: str, given: str, problem: str | None) -> None:
    (corpus / MANIFEST).write_text(trained)
    (corpus / "manifest.json").write_text(given)
    with pytest.raises(UserError, match=problem) if problem else nullcontext():
        require_same_task(corpus / "checkpoint_best.pt", corpus / "data-bin")


def test_data_that_do_not_say_what_is_scored(corpus: Path, tmp_path: Path) -> None:
    (corpus / "task.json").write_text('{"task": "reverse", "scored": ["0", "1"]}')
    with pytest.raises(UserError, match=r"has no task\.json to say what is scored"):
        require_same_task(corpus / "checkpoint_best.pt", tmp_path)
    require_same_task(corpus / "checkpoint_best.pt", corpus / "data-bin")


def test_tasks_of_every_kind(corpus: Path, tmp_path: Path) -> None:
    """Older tasks of fairseq have a Namespace, and some have no data."""
    own = SimpleNamespace(sentencepiece_model=str(corpus / "sentencepiece.de.model"))
    without_data = SimpleNamespace(task=Namespace(), bpe=own)
    assert companions_of_training(without_data) == {OWN_PIECE_MODEL: corpus / "sentencepiece.de.model"}
    with_data = SimpleNamespace(task=Namespace(data=f"{corpus / 'data-bin'}:{tmp_path}"), bpe=None)
    assert companions_of_training(with_data) == companions_of_data(corpus / "data-bin")


@pytest.mark.parametrize(
    "container", [OmegaConf.create, lambda values: Namespace(**values)], ids=["config", "namespace"]
)
def test_the_checkpoint_names_the_languages(container: Callable[[dict[str, str]], object]) -> None:
    cfg = OmegaConf.create({"task": None}, flags={"allow_objects": True})
    cfg.task = container({"data": "", "source_lang": ""})
    task = SimpleNamespace(cfg=container({"source_lang": "de", "target_lang": "en"}))
    note_languages(SimpleNamespace(cfg=cfg, task=task))
    assert (cfg.task.source_lang, cfg.task.target_lang) == ("de", "en")
