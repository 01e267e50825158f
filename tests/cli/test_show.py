"""fairseq-stack show: corpora of every kind, decoded, with their lengths and manifest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fairseq_stack import cli
from fairseq_stack_preprocess.cfl import language_corpus
from fairseq_stack_preprocess.mt import translation_corpus as mt
from fairseq_stack_preprocess.nested import nested_corpus as nested_translation
from fairseq_stack_preprocess.transformations import transformation_corpus as transformations
from tests.preprocess.corpus_folders import lines_of, small

PAIRS = [(f"Satz Nummer {i} :\x85 {'ja ' * i}.", f"sentence number {i} : {'yes ' * (2 * i)}.") for i in range(30)]


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders ``mt`` and ``reversal`` binarised, and ``nested`` and ``text-reversal`` as text only."""
    folder = tmp_path_factory.mktemp("corpora")
    for side, language in enumerate(("de", "en")):
        (folder / f"c.{language}").write_bytes("".join(f"{pair[side]}\n" for pair in PAIRS).encode())
    prefix = folder / "c"
    mt.prepare(
        mt.Options("de", "en", (prefix,), prefix, prefix, pieces=60, max_chars=140, keep_separators=True), folder / "mt"
    )
    sizes: dict[str, Any] = {"train_size": 60, "valid_size": 9, "test_size": 9}
    nested_translation.prepare(nested_translation.Options(**sizes, binarise=False), folder / "nested")
    language_corpus.prepare(small(binarise=True), folder / "reversal")
    language_corpus.prepare(small(), folder / "text-reversal")
    return folder


def show(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[str]:
    """What the command prints, as lines."""
    assert cli.main(["show", *map(str, arguments)]) == 0
    return capsys.readouterr().out.split("\n")


def examples(lines: list[str], split: str) -> dict[int, dict[str, str]]:
    """The printed examples: for each number, the text by the name of its column."""
    results: dict[int, dict[str, str]] = {}
    for index, line in enumerate(lines):
        words = line.split()
        if len(words) == 2 and words[0] == split and words[1].isdigit() and not line.startswith(" "):
            rows = lines[index + 1 : lines.index("", index) if "" in lines[index:] else None]
            results[int(words[1])] = {row.split()[0]: " ".join(row.split()[1:]) for row in rows}
    return results


@pytest.mark.parametrize("binarise", [True, False])
def test_generalisation_set(binarise: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A fourth split; of a corpus with lines and pairs, text alone has the lines as its column."""
    sizes: dict[str, Any] = {"train_size": 5, "valid_size": 3, "test_size": 3, "gen_size": 4, "binarise": binarise}
    transformations.prepare(transformations.Options("question-formation", **sizes), tmp_path / "out")
    rows = examples(show(capsys, tmp_path / "out", "--split", "gen"), "gen")
    for name in ("source", "target", "linear", "structure"):
        assert [row[name] for row in rows.values()] == lines_of(tmp_path / "out" / "text" / f"gen.{name}")


@pytest.mark.parametrize("folder", ["mt", "nested"])
def test_pieces_are_decoded_and_side_files_are_shown(
    folder: str, corpora: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    actual = examples(show(capsys, corpora / folder, "--split", "test", "--first", "2", "--examples", "4"), "test")
    assert list(actual) == [2, 3, 4, 5]
    names = ("de", "en", "align", "depth") if "nested" in folder else ("de", "en")
    for number, columns in actual.items():
        assert columns == {
            name: " ".join(lines_of(corpora / folder / "text" / f"test.{name}")[number].split()) for name in names
        }


@pytest.mark.parametrize(("folder", "name"), [("reversal", "text"), ("text-reversal", "txt")])
def test_language_modelling(folder: str, name: str, corpora: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = show(capsys, corpora / folder, "--examples", "1")
    columns = {name: "txt", "logp": "logp", "nll": "nll"}
    assert examples(lines, "train") == {
        0: {column: lines_of(corpora / folder / "text" / f"train.{suffix}")[0] for column, suffix in columns.items()}
    }
    assert f"tokens in a sentence, train {name}:" in lines


@pytest.mark.parametrize("folder", ["mt", "reversal"])
def test_lengths_are_those_of_the_tokens(folder: str, corpora: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = show(capsys, corpora / folder)
    rows = {tuple(line.split()[:2]): line.split()[2:] for line in lines if line.startswith(("train ", "test "))}
    text = corpora / folder / ("pieces" if folder == "mt" else "text")
    for split in ("train", "test"):
        for name in ("text",) if folder == "reversal" else ("de", "en"):
            sentences = lines_of(text / f"{split}.{'txt' if name == 'text' else name}")
            lengths = sorted(len(sentence.split()) for sentence in sentences)
            assert rows[split, name] == [
                f"{len(lengths):,}",
                f"{sum(lengths):,}",
                str(lengths[0]),
                str(lengths[(len(lengths) - 1) // 2]),
                f"{sum(lengths) / len(lengths):.1f}",
                str(lengths[-1]),
            ]


def test_summary_of_the_manifest(corpora: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = show(capsys, corpora / "mt", "--examples", "0")
    manifest = json.loads((corpora / "mt" / "manifest.json").read_text(encoding="utf-8"))
    assert lines[0] == "corpus: mt"
    assert any(line.startswith("options: source de, target en, ") and "max_chars 140" in line for line in lines)
    assert any(line.startswith("versions: ") and "sentencepiece" in line for line in lines)
    dropped = manifest["dropped"]["train"]["too long"]
    assert dropped > 0
    assert f"  dropped: too long {dropped}" in lines
    size = manifest["vocabulary"]["de_dictionary"]
    assert f"dictionary of de: {size} symbols" in lines


def test_data_of_fairseq_preprocess_alone(corpora: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bin").symlink_to(corpora / "mt" / "data-bin")
    lines = show(capsys, tmp_path / "bin", "--examples", "1")
    assert lines[0] == f"corpus: {tmp_path / 'bin'} (without a manifest)"
    assert set(examples(lines, "train")[0]) == {"de", "en"}


def test_data_bin_within_a_corpus_finds_the_manifest(corpora: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert show(capsys, corpora / "mt" / "data-bin") == show(capsys, corpora / "mt")


def test_picture(corpora: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("one", "two"):
        lines = show(capsys, corpora / "mt", "--png", tmp_path / name)
        assert lines[-2] == f"picture: {tmp_path / name}"
    content = (tmp_path / "one").read_bytes()
    assert content.startswith(b"\x89PNG")
    assert int.from_bytes(content[16:20], "big") > 1000
    assert (tmp_path / "two").read_bytes() == content


def test_mistakes(corpora: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "lost").mkdir()
    (tmp_path / "lost" / "train.idx").write_bytes(b"")
    (tmp_path / "cut").mkdir()
    for path in (corpora / "reversal" / "data-bin").iterdir():
        (tmp_path / "cut" / path.name).write_bytes(path.read_bytes()[: 10 if path.suffix == ".bin" else None])
    (tmp_path / "odd" / "text").mkdir(parents=True)
    (tmp_path / "odd" / "text" / "train.txt").write_text("a\n")
    (tmp_path / "odd" / "manifest.json").write_text('{"corpus": 3, "options": [1], "splits": {"train": 4}}')
    (tmp_path / "dictionary").mkdir()
    (tmp_path / "dictionary" / "train.idx").write_bytes(b"x")
    (tmp_path / "dictionary" / "dict.txt").write_text("one two three\n")
    cases: list[tuple[list[object], str]] = [
        ([tmp_path / "odd"], "is not a manifest"),
        ([tmp_path / "dictionary"], "dictionary/dict.txt "),
        ([tmp_path / "empty"], "empty holds no corpus"),
        ([tmp_path / "lost"], "dict.txt is missing; train.idx needs it"),
        ([tmp_path / "cut"], "train.bin: sentence 0 cannot be read"),
        ([corpora / "mt", "--split", "dev"], "has no split dev; it has train, valid, test"),
        ([corpora / "reversal", "--split", "test", "--first", "10"], "--first 10: the sentences of test are 0 to 9"),
    ]
    for arguments, message in cases:
        assert cli.main(["show", *map(str, arguments)]) == 2, message
        captured = capsys.readouterr()
        assert captured.out == ""
        assert len(captured.err.splitlines()) == 1
        assert message in captured.err
