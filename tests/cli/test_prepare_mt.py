"""fairseq-stack prepare mt: presets and their text, which is downloaded from files of this machine."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from fairseq_stack import cli
from fairseq_stack_preprocess.mt import presets
from fairseq_stack_preprocess.text.download import Archive
from tests.preprocess.corpus_folders import manifest_of
from tests.preprocess.text.test_download import tgz

GERMAN = [f"Das ist der Satz Nummer {number} ." for number in range(30)]
ENGLISH = [f"this is sentence number {number} ." for number in range(30)]
TEXT = {"de": GERMAN, "en": ENGLISH}
PRESET = "europarl-dusell-2024"


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """A folder with the corpus ``raw/c`` of 30 pairs."""
    (tmp_path / "raw").mkdir()
    for language, lines in TEXT.items():
        (tmp_path / "raw" / f"c.{language}").write_text("".join(f"{line}\n" for line in lines))
    return tmp_path / "raw"


def sgm(lines: list[str]) -> str:
    return "".join(f'<seg id="{number}">{line}</seg>\n' for number, line in enumerate(lines, start=1))


def save_archive(path: Path, members: dict[str, str]) -> str:
    """Write a .tgz and return its checksum."""
    path.write_bytes(tgz(members))
    return f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"


@pytest.fixture
def small_preset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The preset, with archives like the real ones but small, as files of this machine."""
    (tmp_path / "web").mkdir()
    preset = presets.PRESETS[PRESET]
    contents = {
        "train": {f"training/europarl-v7.de-en.{side}": "\n".join(lines) + "\n" for side, lines in TEXT.items()},
        "valid": {"test/newstest2016-deen-src.de.sgm": sgm(GERMAN), "test/newstest2016-deen-ref.en.sgm": sgm(ENGLISH)},
        "test": {"test/newstest2017-deen-src.de.sgm": sgm(GERMAN), "test/newstest2017-deen-ref.en.sgm": sgm(ENGLISH)},
    }
    archives = {}
    for split, members in contents.items():
        assert set(members) == set(preset.archives[split].members)
        checksum = save_archive(tmp_path / "web" / f"{split}.tgz", members)
        archives[split] = Archive(
            (tmp_path / "web" / f"{split}.tgz").as_uri(), preset.archives[split].name, checksum, tuple(members)
        )
    monkeypatch.setitem(presets.PRESETS, PRESET, replace(preset, archives=archives))


@pytest.mark.usefixtures("small_preset")
def test_preset_is_downloaded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["prepare", "mt", str(tmp_path / "out"), "--preset", PRESET, "--no-binarise"]
    assert cli.main([*arguments, "--dry-run"]) == 0
    printed = capsys.readouterr().out
    assert f"/train.tgz into {tmp_path / 'out.raw'}\nvalid: download " in printed
    assert not (tmp_path / "out.raw").exists()
    assert cli.main(arguments) == 0
    assert (tmp_path / "out" / "text" / "test.en").read_text().split("\n")[:-1] == ENGLISH
    raw_files = {path.name for path in (tmp_path / "out.raw").rglob("*") if path.is_file()}
    assert len(raw_files) == 6
    capsys.readouterr()
    assert cli.main([*arguments, "--dry-run", "--force"]) == 0
    assert f"train: read {tmp_path / 'out.raw' / 'training' / 'europarl-v7.de-en.de'} (" in capsys.readouterr().out


@pytest.mark.usefixtures("small_preset")
def test_nothing_is_downloaded_for_a_folder_that_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    assert cli.main(["prepare", "mt", str(tmp_path / "out"), "--preset", PRESET]) == 2
    assert not (tmp_path / "out.raw").exists()


def test_preset_with_text_and_options_of_one_s_own(raw: Path, tmp_path: Path) -> None:
    """What is in --raw under other names is read, and what is given explicitly takes the place of the preset's."""
    for name in ("europarl-v7.de-en", "newstest2016"):
        for language, lines in TEXT.items():
            (raw / f"{name}.{language}.gz").write_bytes(gzip.compress("".join(f"{s}\n" for s in lines).encode()))
    arguments = ["prepare", "mt", str(tmp_path / "out"), "--preset", PRESET, "--raw", str(raw), "--no-download"]
    assert cli.main([*arguments, "--test", str(raw / "c"), "--sample", "5", "--pieces", "70", "--no-binarise"]) == 0
    manifest = manifest_of(tmp_path / "out")
    assert list(manifest["inputs"])[2:] == [
        "valid/newstest2016.de.gz",
        "valid/newstest2016.en.gz",
        "test/c.de",
        "test/c.en",
    ]
    options = manifest["options"]
    assert (options["sample"], options["pieces"], options["piece_threshold"], options["seed"]) == (5, 70, 50, 123)


def test_checksums_of_the_test_sets_are_sacrebleu_s() -> None:
    from sacrebleu.dataset import DATASETS

    for split, name in (("valid", "wmt16"), ("test", "wmt17")):
        archive, theirs = presets.PRESETS[PRESET].archives[split], DATASETS[name]
        assert [archive.url] == theirs.data
        assert [archive.checksum.removeprefix("md5:")] == theirs.md5
        assert list(archive.members) == theirs.langpairs["de-en"]
