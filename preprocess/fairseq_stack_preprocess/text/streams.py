"""Reading text of any size in bounded memory: UTF-8, plain or ``.gz``, in lines that end in LF or CR LF.

Everything that would put two sides of a corpus out of step, now or in a program that reads what was written,
is an error that names file and line: bytes that are not UTF-8, NUL, other carriage returns, U+0085, U+2028 and the
like (unless they are to be kept like other characters), a gzip file that ends early, a file without lines.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

from ..errors import PrepareError

CHUNK_BYTES = 1 << 20
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

SEPARATORS = "\v\f\x1c\x1d\x1e\x85\u2028\u2029"
"""Characters at which other programs, such as Python's ``splitlines``, end a line without a line feed."""


def require_file(path: Path) -> None:
    """Raise PrepareError unless the path is a regular file, which can be read more than once."""
    if not path.is_file():
        raise PrepareError(f"{path} is not a file")


def open_bytes(path: Path) -> gzip.GzipFile | BufferedReader:
    """Open a file for reading, decompressed if its name ends in ``.gz``; errors as in :func:`require_file`."""
    require_file(path)
    return gzip.open(path, "rb") if path.suffix.lower() == ".gz" else open(path, "rb")


def read_chunk(file: gzip.GzipFile | BufferedReader, path: Path, line: int) -> bytes:
    """The next bytes of ``file``, which :func:`open_bytes` opened; empty at its end.

    Raises:
        PrepareError: the gzip file is damaged or ends early; ``line`` is where reading had got to.
    """
    try:
        # Not read(): that would lose what was decompressed before the damage, and with it the line.
        return file.read1(CHUNK_BYTES)
    except EOFError as error:
        raise PrepareError(f"{path}, line {line}: the gzip file ends early") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise PrepareError(f"{path}, line {line}: the gzip file is damaged ({error})") from error


def read_blocks(path: Path, *, keep_separators: bool | None = None) -> Iterator[str]:
    """Yield the text in blocks of whole lines that end in LF, each block without its last one.

    Args:
        path: the file; a byte order mark at its beginning is not part of the text.
        keep_separators: whether :data:`SEPARATORS` are characters like any others; None where users have no choice.

    Raises:
        PrepareError: see this module's description.
        OSError: the file cannot be opened or read.
    """
    line, rest = 1, [b""]  # whose sum would take time quadratic in the length of a line
    with open_bytes(path) as file:
        while chunk := read_chunk(file, path, line):
            if line == 1 and rest == [b""]:
                chunk = chunk.removeprefix(BYTE_ORDER_MARK)
            cut = chunk.rfind(b"\n") + 1
            if cut:
                block, rest = b"".join([*rest, chunk[:cut]]), [chunk[cut:]]
                yield _decode(block, path, line, keep_separators)
                line += block.count(b"\n")
            else:
                rest.append(chunk)
    if last := b"".join(rest):
        yield _decode(last, path, line, keep_separators)
    elif line == 1:
        raise PrepareError(f"{path} is empty: expected text in line 1")


def read_lines(path: Path, *, keep_separators: bool | None = None) -> Iterator[str]:
    """Yield the lines of a file; arguments and errors as in :func:`read_blocks`."""
    for block in read_blocks(path, keep_separators=keep_separators):
        yield from block.split("\n")


def check_separators(text: str, path: Path, first_line: int, *, can_be_kept: bool) -> None:
    """Raise PrepareError, with the line, if the text holds one of :data:`SEPARATORS`.

    ``can_be_kept``: whether the command has an option to keep them.
    """
    positions = [text.find(separator) for separator in SEPARATORS if separator in text]
    if positions:
        position = min(positions)
        line = first_line + text.count("\n", 0, position)
        advice = "--keep-separators keeps it" if can_be_kept else "remove it"
        raise PrepareError(
            f"{path}, line {line}: U+{ord(text[position]):04X}, which other programs treat as the end of a line; "
            f"{advice}"
        )


def _decode(block: bytes, path: Path, first_line: int, keep_separators: bool | None) -> str:
    """The text of whole lines; ``first_line`` is the number of the first of them."""

    def refuse(position: int, problem: str) -> PrepareError:
        line = first_line + block.count(b"\n", 0, position)
        return PrepareError(f"{path}, line {line}: {problem}")

    block = block.replace(b"\r\n", b"\n")
    if (position := block.find(b"\0")) >= 0:
        raise refuse(position, "a NUL character; is this text?")
    if (position := block.find(b"\r")) >= 0:
        raise refuse(position, "a carriage return within the line, which other programs treat as its end")
    try:
        text = block.removesuffix(b"\n").decode("utf-8")
    except UnicodeDecodeError as error:
        raise refuse(error.start, f"not UTF-8: {error.reason}, byte 0x{block[error.start]:02x}") from error
    if not keep_separators:
        check_separators(text, path, first_line, can_be_kept=keep_separators is not None)
    return text
