"""Reading text of any size in bounded memory: UTF-8, plain or ``.gz``, split at line feeds only.

Everything that would put two sides of a corpus out of step, now or in a program that reads what was written,
is an error that names file and line: bytes that are no UTF-8, NUL, carriage returns, a gzip file that ends
early, a file without lines. U+0085, U+2028 and the like are characters as any other here.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from .errors import PrepareError

CHUNK_BYTES = 1 << 20
LONGEST_LINE_BYTES = 1 << 24
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def open_bytes(path: Path) -> BinaryIO:
    """Open a file for reading, decompressed if its name ends in ``.gz``."""
    return cast(BinaryIO, gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb"))


def read_chunk(file: BinaryIO, path: Path, line: int) -> bytes:
    """The next bytes of ``file``, which :func:`open_bytes` opened; empty at its end.

    Raises:
        PrepareError: the gzip file is damaged or ends early; ``line`` is where reading had got to.
    """
    try:
        # Not read(): that would lose what was decompressed before the damage, and with it the line.
        return file.read1(CHUNK_BYTES)  # type: ignore[attr-defined]
    except EOFError as error:
        raise PrepareError(f"{path}, line {line}: the gzip file ends early") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise PrepareError(f"{path}, line {line}: the gzip file is damaged ({error})") from error


def read_blocks(path: Path, *, strip_cr: bool = False) -> Iterator[str]:
    r"""Yield the text in blocks of whole lines, each block without its last line feed.

    Args:
        path: the file; a byte order mark at its beginning is no part of the text.
        strip_cr: whether ``\r\n`` is read as ``\n``.

    Raises:
        PrepareError: see this module's description.
        OSError: the file cannot be opened or read.
    """
    line, rest = 1, b""
    with open_bytes(path) as file:
        while chunk := read_chunk(file, path, line):
            if line == 1 and not rest:
                chunk = chunk.removeprefix(BYTE_ORDER_MARK)
            cut = chunk.rfind(b"\n") + 1
            if cut:
                block, rest = rest + chunk[:cut], chunk[cut:]
                yield _decode(block, path, line, strip_cr)
                line += block.count(b"\n")
            else:
                rest += chunk
                if len(rest) > LONGEST_LINE_BYTES:
                    raise PrepareError(f"{path}, line {line}: longer than {LONGEST_LINE_BYTES} bytes; is this text?")
    if rest:
        yield _decode(rest, path, line, strip_cr)
    elif line == 1:
        raise PrepareError(f"{path} is empty: expected a sentence in line 1")


def read_lines(path: Path, *, strip_cr: bool = False) -> Iterator[str]:
    """Yield the lines of a file; errors as in :func:`read_blocks`."""
    for block in read_blocks(path, strip_cr=strip_cr):
        yield from block.split("\n")


def _decode(block: bytes, path: Path, first_line: int, strip_cr: bool) -> str:
    """The text of whole lines; ``first_line`` is the number of the first of them."""

    def refuse(position: int, problem: str) -> PrepareError:
        line = first_line + block.count(b"\n", 0, position)
        return PrepareError(f"{path}, line {line}: {problem}")

    if strip_cr:
        block = block.replace(b"\r\n", b"\n")
    if (position := block.find(b"\0")) >= 0:
        raise refuse(position, "a NUL character; is this text?")
    if (position := block.find(b"\r")) >= 0:
        if block[position : position + 2] == b"\r\n":
            raise refuse(position, "ends in CR LF, as on Windows, expected LF; --strip-cr reads such files")
        raise refuse(position, "a carriage return within the line, which other programs take for its end")
    try:
        return block.removesuffix(b"\n").decode("utf-8")
    except UnicodeDecodeError as error:
        raise refuse(error.start, f"no UTF-8: {error.reason}, byte 0x{block[error.start]:02x}") from error
