"""Text is read as a stream, split at LF and CR LF only, and what is broken is named with file and line."""

from __future__ import annotations

import gzip
import sys
import tracemalloc
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies

from fairseq_stack_preprocess.errors import PrepareError
from fairseq_stack_preprocess.text import streams
from fairseq_stack_preprocess.text.streams import SEPARATORS, read_blocks, read_lines

LINE = strategies.text(strategies.characters(codec="utf-8", exclude_characters="\n\r\0"), max_size=8)


def lines_of(path: Path, **settings: bool) -> list[str]:
    return list(read_lines(path, **settings))


@pytest.mark.parametrize("chunk_bytes", [3, 1 << 20])
@hypothesis.given(lines=strategies.lists(LINE, min_size=1, max_size=6), ends=strategies.booleans())
def test_lines_are_what_is_between_line_feeds(
    chunk_bytes: int, lines: list[str], ends: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    text = "\n".join(lines) + "\n" * ends
    hypothesis.assume(text.strip("\ufeff") not in ("", "\n"))
    path = tmp_path_factory.mktemp("lines") / "text"
    path.write_bytes(text.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streams, "CHUNK_BYTES", chunk_bytes)

        assert lines_of(path, keep_separators=True) == text.removeprefix("\ufeff").removesuffix("\n").split("\n")


def test_separators_are_where_python_splits_lines() -> None:
    everything = (chr(code) for code in range(sys.maxunicode + 1))
    splits = {character for character in everything if len(f"a{character}b".splitlines()) > 1}
    assert set(SEPARATORS) == splits - {"\n", "\r"}


def test_other_line_separators_are_refused_with_their_line(tmp_path: Path) -> None:
    for character in SEPARATORS:
        (tmp_path / "text").write_bytes(f"a\n\nb{character}\n{SEPARATORS}".encode())
        with pytest.raises(PrepareError, match=rf"text, line 3: U\+{ord(character):04X}, which"):
            lines_of(tmp_path / "text")


def test_gzip_is_read_like_plain_text(tmp_path: Path) -> None:
    text = "".join(f"Zeile {number} ä\n" for number in range(50_000))
    (tmp_path / "text.gz").write_bytes(gzip.compress(text[:99].encode()) + gzip.compress(text[99:].encode()))
    assert lines_of(tmp_path / "text.gz") == text.split("\n")[:-1]


def test_byte_order_mark_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"\xef\xbb\xbfa\nb\n")
    assert lines_of(tmp_path / "text") == ["a", "b"]


@pytest.mark.parametrize("before", [3, 70_000], ids="{} lines before".format)
@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (b"a\xffb\n", "not UTF-8: invalid start byte, byte 0xff"),
        (b"a\xc3\n", "not UTF-8: invalid continuation byte, byte 0xc3"),
        (b"a\0b\n", "a NUL character; is this text?"),
        (b"a\rb\n", "a carriage return within the line, which other programs treat as its end"),
        (b"a\xe2\x82", "not UTF-8: unexpected end of data, byte 0xe2"),
    ],
    ids=["start-byte", "continuation", "nul", "cr", "cut-off"],
)
def test_broken_text_is_named_with_file_and_line(before: int, broken: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "text"
    after = b"" if not broken.endswith(b"\n") else b"more\n" * 5
    path.write_bytes(b"Zeile\n" * before + broken + after)
    with pytest.raises(PrepareError) as caught:
        lines_of(path)
    assert str(caught.value) == f"{path}, line {before + 1}: {message}"


@pytest.mark.parametrize("chunk_bytes", [1, 2, 3, 1 << 20])
def test_cr_lf_ends_a_line(chunk_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "CHUNK_BYTES", chunk_bytes)
    (tmp_path / "text").write_bytes(b"a\r\nb\n\r\nc\r\n")
    assert lines_of(tmp_path / "text") == ["a", "b", "", "c"]
    for broken in (b"a\r\nb\rc\r\n", b"a\r\nb\r\r\n", b"a\r\nb\r"):
        (tmp_path / "text").write_bytes(broken)
        with pytest.raises(PrepareError, match="line 2: a carriage return within the line"):
            lines_of(tmp_path / "text")


def test_gzip_that_ends_early(tmp_path: Path) -> None:
    """What is complete before the end is read, so that the line is the one that is cut."""
    lines = [f"{number * 7919 % 100_003}" for number in range(100_000)]
    path = tmp_path / "text.gz"
    path.write_bytes(gzip.compress("\n".join(lines).encode())[:-1000])
    read: list[str] = []
    with pytest.raises(PrepareError) as caught:
        for line in read_lines(path):
            read.append(line)
    assert read == lines[: len(read)]
    assert len(read) > 90_000
    assert str(caught.value) == f"{path}, line {len(read) + 1}: the gzip file ends early"


@pytest.mark.parametrize(
    "content", [b"plain text\n", gzip.compress(b"a\n" * 9, mtime=0)[:-8] + b"12345678"], ids=["plain", "checksum"]
)
def test_damaged_gzip(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "text.gz").write_bytes(content)
    with pytest.raises(PrepareError, match=r"text\.gz, line \d+: the gzip file is damaged"):
        lines_of(tmp_path / "text.gz")


@pytest.mark.parametrize("name", ["text", "text.gz"])
def test_empty_file(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(gzip.compress(b"") if name.endswith("gz") else b"")
    with pytest.raises(PrepareError, match=rf"{name} is empty: expected text in line 1"):
        lines_of(tmp_path / name)


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"A sentence of some length, as they are in a corpus.\n" * 600_000)
    tracemalloc.start()
    count = sum(block.count("\n") + 1 for block in read_blocks(tmp_path / "text"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 600_000
    assert peak < 8 << 20
