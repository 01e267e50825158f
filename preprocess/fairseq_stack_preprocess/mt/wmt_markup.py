"""The test sets of WMT up to 2020: ``.sgm``, one file a side.

They are read as streams. Sides are paired by document and segment, and text that belongs to no pair is an
error that names file and line.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from ..errors import PrepareError
from ..text.streams import check_separators, read_lines

Pair = tuple[str, str]

TAG = re.compile(r"<(/?)([A-Za-z]\w*)\b([^>]*)>")
ATTRIBUTE = re.compile(r"""(\w+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")


@dataclass
class Segment:
    """One ``<seg>``: its document and number, its text, and the line where it begins."""

    document: str
    number: str
    text: str
    line: int

    def name(self) -> str:
        """The segment's name in error messages."""
        return f"segment {self.number} of document {self.document}"


def read_sgm_pairs(source: Path, target: Path, *, keep_separators: bool = False) -> Iterator[Pair]:
    """Yield the pairs of two ``.sgm`` files; documents and segments must agree, in the same order.

    The arguments are the same as for :func:`.streams.read_blocks`.

    Raises:
        PrepareError: the files disagree, a segment does not end or holds a tag, or see
            :func:`.streams.read_blocks`.
    """
    sides = (read_sgm(path, keep_separators=keep_separators) for path in (source, target))
    for ours, theirs in zip_longest(*sides):
        if ours is None or theirs is None:
            there, absent, segment = (target, source, theirs) if ours is None else (source, target, ours)
            raise PrepareError(f"{there}, line {segment.line}: {segment.name()} is missing in {absent}")
        if (ours.document, ours.number) != (theirs.document, theirs.number):
            raise PrepareError(
                f"{target}, line {theirs.line}: {theirs.name()}, but line {ours.line} of {source} has {ours.name()}"
            )
        yield ours.text, theirs.text


def read_sgm(path: Path, *, keep_separators: bool = False) -> Iterator[Segment]:
    """Yield the segments of a ``.sgm`` file. Character references are resolved; spaces at the ends stay."""
    document, line = "?", 0
    segment: Segment | None = None
    for line, text in enumerate(read_lines(path, keep_separators=keep_separators), start=1):
        done = 0
        for tag in TAG.finditer(text):
            name, closing = tag[2].lower(), bool(tag[1])
            if segment is not None:
                if name != "seg" or not closing:
                    raise PrepareError(f"{path}, line {line}: the tag {tag[0]} within {segment.name()}")
                unescaped = html.unescape(segment.text + text[done : tag.start()])
                segment.text = unescaped.replace("\r", " ").replace("\n", " ")  # which a character reference may be
                if not keep_separators:
                    check_separators(segment.text, path, segment.line, can_be_kept=True)
                yield segment
                segment = None
            elif name == "doc" and not closing:
                document = _attributes(tag[3]).get("docid", "?")
            elif name == "seg" and not closing:
                segment = Segment(document, _attributes(tag[3]).get("id", "?"), "", line)
                done = tag.end()
        if segment is not None:
            segment.text += text[done:] + " "
    if segment is not None:
        raise PrepareError(f"{path}, line {segment.line}: {segment.name()} does not end")


def _attributes(text: str) -> dict[str, str]:
    """The attributes of a tag, by their names in lower case."""
    return {name.lower(): html.unescape(a or b or c) for name, a, b, c in ATTRIBUTE.findall(text)}
