"""--force replaces a corpus, and deletes no other file."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from fairseq_stack_preprocess.cfl import language_corpus
from fairseq_stack_preprocess.errors import PrepareError
from fairseq_stack_preprocess.text.output import output_folder
from tests.preprocess.corpus_folders import manifest_of, small, snapshot

OPTIONS = small()
OTHER = small(seed=1)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    language_corpus.prepare(OPTIONS, tmp_path / "corpus")
    return tmp_path / "corpus"


def edit(name: str, text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text(text)


def move_text_away(folder: Path) -> None:
    (folder / "text").rename(folder.parent / "text")
    (folder / "text").symlink_to(folder.parent / "text", target_is_directory=True)


# What was done to a folder, and what the error names.
FOREIGN: dict[str, tuple[Callable[[Path], object], str]] = {
    "file": (edit("thesis.tex", "x"), "corpus written there: thesis.tex; move them"),
    "link": (lambda folder: (folder / "mine").symlink_to("/etc/passwd"), "corpus written there: mine;"),
    "fifo": (lambda folder: os.mkfifo(folder / "pipe"), "corpus written there: pipe;"),
    "link-for-a-folder": (move_text_away, "corpus written there: text;"),
    "no-manifest": (lambda folder: (folder / "manifest.json").unlink(), "not a folder that fairseq-stack prepare"),
    "other-manifest": (edit("manifest.json", '{"name": "my web app"}'), "not a folder that fairseq-stack prepare"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_folder_with_anything_else_is_refused_and_named(
    name: str, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change, message = FOREIGN[name]
    change(corpus)
    before = snapshot(corpus.parent)
    monkeypatch.setattr(language_corpus, "generate", lambda options: pytest.fail("work was begun"))
    with pytest.raises(PrepareError) as caught:
        language_corpus.prepare(OTHER, corpus, force=True)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert snapshot(corpus.parent) == before


def test_what_appears_during_the_work_is_kept(corpus: Path) -> None:
    before = snapshot(corpus)
    with pytest.raises(PrepareError, match="corpus written there: notes"), output_folder(corpus, force=True):
        (corpus / "notes").write_text("mine")
    assert snapshot(corpus) == {**before, "notes": b"mine"}
    assert [path.name for path in corpus.parent.iterdir()] == ["corpus"]


def test_what_is_a_corpus_is_replaced(corpus: Path, tmp_path: Path) -> None:
    (corpus / "data-bin").mkdir()
    outputs = manifest_of(corpus)
    outputs["outputs"]["data-bin/dict.txt"] = {"bytes": 0, "sha256": ""}  # deleted since
    (corpus / "manifest.json").write_text(json.dumps(outputs))
    (corpus / "data-bin" / "preprocess.log").write_text("written by every fairseq-preprocess\n")
    language_corpus.prepare(OTHER, corpus, force=True)
    language_corpus.prepare(OTHER, tmp_path / "fresh")
    assert snapshot(corpus) == snapshot(tmp_path / "fresh")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus", "fresh"]


def test_a_link_to_a_corpus_stays_a_link(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(corpus)
    language_corpus.prepare(OTHER, tmp_path / "link", force=True)
    assert (tmp_path / "link").is_symlink()
    assert manifest_of(corpus)["options"]["seed"] == 1


def test_links_that_lead_in_a_circle_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    for force, message in ((False, "already exists"), (True, "is not a folder")):
        with pytest.raises(PrepareError, match=message), output_folder(tmp_path / "a", force=force):
            pass


def test_a_manifest_that_names_files_elsewhere_harms_none(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    content = manifest_of(corpus)
    content["outputs"] |= {"../thesis.tex": {}, str(tmp_path / "thesis.tex"): {}}
    (corpus / "manifest.json").write_text(json.dumps(content))
    language_corpus.prepare(OTHER, corpus, force=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus", "thesis.tex"]
