"""fairseq-stack prepare mt: Europarl as the page prepares it."""

from __future__ import annotations

import gzip
import shlex
from pathlib import Path

import pytest

from fairseq_stack import cli
from tests.documents import Document
from tests.preprocess.corpus_folders import lines_of

PAGE = Document("docs/data.md")
GERMAN = [f"Das ist der Satz Nummer {number} ." for number in range(30)]
ENGLISH = [f"this is sentence number {number} ." for number in range(30)]


def test_europarl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command of the page, with few pieces, on small files named as in the archives."""
    (block,) = (block for block in PAGE.blocks("bash") if "europarl" in block)
    *_, command = block.replace("\\\n", "").splitlines()
    (tmp_path / "raw" / "training").mkdir(parents=True)
    (tmp_path / "raw" / "test").mkdir()
    for language, side, lines in (("de", "src", GERMAN), ("en", "ref", ENGLISH)):
        text = "".join(f"{line}\n" for line in lines)
        (tmp_path / "raw" / "training" / f"europarl-v7.de-en.{language}.gz").write_bytes(gzip.compress(text.encode()))
        marked = "".join(f'<seg id="{number}">{line}</seg>\n' for number, line in enumerate(lines, start=1))
        for year in (2016, 2017):
            (tmp_path / "raw" / "test" / f"newstest{year}-deen-{side}.{language}.sgm").write_text(marked)
    monkeypatch.chdir(tmp_path)
    assert cli.main([*shlex.split(command)[1:], "--pieces", "70", "--no-binarise"]) == 0
    assert lines_of(tmp_path / "data" / "europarl" / "text" / "test.en") == ENGLISH
