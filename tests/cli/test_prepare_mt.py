"""fairseq-stack prepare mt: the preset and its text."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from fairseq_stack import cli
from fairseq_stack_preprocess.mt.presets import PRESETS
from tests.documents import Document
from tests.preprocess.corpus_folders import lines_of, manifest_of

GERMAN = [f"Das ist der Satz Nummer {number} ." for number in range(30)]
ENGLISH = [f"this is sentence number {number} ." for number in range(30)]
TEXT = {"de": GERMAN, "en": ENGLISH}
PRESET = "europarl-dusell-2024"


def sgm(lines: list[str]) -> str:
    return "".join(f'<seg id="{number}">{line}</seg>\n' for number, line in enumerate(lines, start=1))


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """A folder with small files named as in the archives, and with the corpus ``c``."""
    for name in ("training/europarl-v7.de-en", "c"):
        for language, lines in TEXT.items():
            path = tmp_path / "raw" / f"{name}.{language}.gz"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))
    (tmp_path / "raw" / "test").mkdir()
    for year in (2016, 2017):
        for side, lines in {"src.de": GERMAN, "ref.en": ENGLISH}.items():
            (tmp_path / "raw" / "test" / f"newstest{year}-deen-{side}.sgm").write_text(sgm(lines))
    return tmp_path / "raw"


def test_preset(raw: Path, tmp_path: Path) -> None:
    arguments = ["prepare", "mt", str(tmp_path / "out"), "--preset", PRESET, "--raw", str(raw), "--no-binarise"]
    assert cli.main(arguments) == 0
    assert lines_of(tmp_path / "out" / "text" / "test.en") == ENGLISH


def test_preset_with_text_and_options_of_one_s_own(raw: Path, tmp_path: Path) -> None:
    """What is given explicitly takes the place of the preset's."""
    (raw / "test" / "newstest2017-deen-ref.en.sgm").unlink()
    arguments = ["prepare", "mt", str(tmp_path / "out"), "--preset", PRESET, "--raw", str(raw)]
    assert cli.main([*arguments, "--test", str(raw / "c"), "--sample", "5", "--pieces", "70", "--no-binarise"]) == 0
    manifest = manifest_of(tmp_path / "out")
    assert list(manifest["inputs"])[2:] == [
        "valid/newstest2016-deen-src.de.sgm",
        "valid/newstest2016-deen-ref.en.sgm",
        "test/c.de.gz",
        "test/c.en.gz",
    ]
    options = manifest["options"]
    assert (options["sample"], options["pieces"], options["piece_threshold"], options["seed"]) == (5, 70, 50, 123)


def test_preset_without_its_text(raw: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = raw / "test" / "newstest2017-deen-ref.en.sgm"
    missing.unlink()
    assert cli.main(["prepare", "mt", str(tmp_path / "out"), "--preset", PRESET, "--raw", str(raw)]) == 2
    error = capsys.readouterr().err
    assert f"{missing} is missing" in error and f"Unpack {PRESETS[PRESET].archives['test']} in --raw" in error


def test_the_test_sets_are_sacrebleu_s() -> None:
    from sacrebleu.dataset import DATASETS

    page, preset = Document("docs/data.md").text, PRESETS[PRESET]
    for split, name in (("valid", "wmt16"), ("test", "wmt17")):
        theirs = DATASETS[name]
        assert [preset.archives[split]] == theirs.data
        assert [f"{preset.prefixes[split]}-{side}.sgm" for side in ("src.de", "ref.en")] == theirs.langpairs["de-en"]
        assert f"raw/{name}-test.tgz {preset.archives[split]}\n" in page
        assert f"| `{name}-test.tgz` | md5 `{(theirs.md5 or [''])[0]}` | sacrebleu |" in page
    assert f" {preset.archives['train']}\n" in page
