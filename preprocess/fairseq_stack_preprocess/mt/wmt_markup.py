"""The test sets of WMT: ``.sgm``, one file a side, and ``.xml``, both sides in one file.

Both are read as streams. Sides are paired by document and segment, and text that belongs to no pair is an
error that names file and line.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from xml.parsers import expat

from ..errors import PrepareError
from ..text.streams import check_separators, open_bytes, read_chunk, read_lines

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


def read_sgm_pairs(
    source: Path, target: Path, *, strip_cr: bool = False, keep_separators: bool = False
) -> Iterator[Pair]:
    """Yield the pairs of two ``.sgm`` files; documents and segments must agree, in the same order.

    The arguments are the same as for :func:`.streams.read_blocks`.

    Raises:
        PrepareError: the files disagree, a segment does not end or holds a tag, or see
            :func:`.streams.read_blocks`.
    """
    sides = (read_sgm(path, strip_cr=strip_cr, keep_separators=keep_separators) for path in (source, target))
    for ours, theirs in zip_longest(*sides):
        if ours is None or theirs is None:
            there, absent, segment = (target, source, theirs) if ours is None else (source, target, ours)
            raise PrepareError(f"{there}, line {segment.line}: {segment.name()} is missing in {absent}")
        if (ours.document, ours.number) != (theirs.document, theirs.number):
            raise PrepareError(
                f"{target}, line {theirs.line}: {theirs.name()}, but line {ours.line} of {source} has {ours.name()}"
            )
        yield ours.text, theirs.text


def read_sgm(path: Path, *, strip_cr: bool = False, keep_separators: bool = False) -> Iterator[Segment]:
    """Yield the segments of a ``.sgm`` file. Character references are resolved; spaces at the ends stay."""
    document, line = "?", 0
    segment: Segment | None = None
    for line, text in enumerate(read_lines(path, strip_cr=strip_cr, keep_separators=keep_separators), start=1):
        done = 0
        for tag in TAG.finditer(text):
            name, closing = tag[2].lower(), bool(tag[1])
            if segment is not None:
                if name != "seg" or not closing:
                    raise PrepareError(f"{path}, line {line}: the tag {tag[0]} within {segment.name()}")
                segment.text = _one_line(html.unescape(segment.text + text[done : tag.start()]))
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


def _one_line(text: str) -> str:
    """The text without the line breaks that a segment, or a character reference in it, may hold."""
    return text.replace("\r", " ").replace("\n", " ")


def _attributes(text: str) -> dict[str, str]:
    """The attributes of a tag, by their names in lower case."""
    return {name.lower(): html.unescape(a or b or c) for name, a, b, c in ATTRIBUTE.findall(text)}


def read_xml_pairs(path: Path, source: str, target: str, *, keep_separators: bool = False) -> Iterator[Pair]:
    """Yield the pairs of a ``.xml`` file of WMT (2021 and later), document by document.

    In each document the text is ``<src lang="source">`` and its translation the first ``<ref lang="target">``;
    further references and the systems' translations are ignored.

    Raises:
        PrepareError: the XML is broken, declares entities, or a document's sides disagree; or a sentence has
            one of :data:`.streams.SEPARATORS`, which are not to be kept.
    """
    reader = _XmlReader(path, source, target, keep_separators)
    with open_bytes(path) as file:
        while chunk := read_chunk(file, path, reader.line()):
            yield from reader.feed(chunk)
        yield from reader.feed(b"", last=True)


@dataclass
class _Document:
    """A document that is being read: its name, and the segments of its source and of its reference."""

    name: str
    sides: dict[str, list[Segment]] = field(default_factory=dict)


class _XmlReader:
    """Collects the segments of one document at a time, and hands out its pairs when it ends."""

    def __init__(self, path: Path, source: str, target: str, keep_separators: bool) -> None:
        self.path = path
        self.keep_separators = keep_separators
        self.languages = {"src": source, "ref": target}
        self.document = _Document("?")
        self.side: list[Segment] | None = None
        self.segment: Segment | None = None
        self.pairs: list[Pair] = []
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.characters
        self.parser.EntityDeclHandler = self.refuse_entity

    def line(self) -> int:
        """The line that is being read."""
        return int(self.parser.CurrentLineNumber)

    def feed(self, chunk: bytes, *, last: bool = False) -> list[Pair]:
        """Read on, and return the pairs of the documents that ended."""
        try:
            self.parser.Parse(chunk, last)
        except expat.ExpatError as error:
            problem = expat.errors.messages[error.code]
            raise PrepareError(f"{self.path}, line {error.lineno}: broken XML: {problem}") from error
        pairs, self.pairs = self.pairs, []
        return pairs

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        if self.segment is not None:
            raise self.error(self.line(), f"the tag <{name}> within {self.segment.name()}")
        if name == "doc":
            self.document = _Document(attributes.get("id", "?"))
        elif name in self.languages:
            if attributes.get("lang") == self.languages[name] and name not in self.document.sides:
                self.side = self.document.sides[name] = []
        elif name == "seg" and self.side is not None:
            self.segment = Segment(self.document.name, attributes.get("id", "?"), "", self.line())

    def characters(self, text: str) -> None:
        """A part of the text."""
        if self.segment is not None:
            self.segment.text += text

    def end(self, name: str) -> None:
        """An element ends."""
        if name == "seg" and self.segment is not None and self.side is not None:
            self.segment.text = _one_line(self.segment.text)
            if not self.keep_separators:
                check_separators(self.segment.text, self.path, self.segment.line, can_be_kept=True)
            self.side.append(self.segment)
            self.segment = None
        elif name in self.languages:
            self.side = None
        elif name == "doc":
            self.pairs.extend(self.paired())

    def paired(self) -> Iterator[Pair]:
        """The pairs of the document that ended."""
        for side, language in self.languages.items():
            if side not in self.document.sides:
                problem = f'document {self.document.name} has no <{side} lang="{language}">'
                raise self.error(self.line(), problem)
        for ours, theirs in zip_longest(self.document.sides["src"], self.document.sides["ref"]):
            if ours is None or theirs is None:
                there, side = (ours, "ref") if theirs is None else (theirs, "src")
                raise self.error(there.line, f"{there.name()} is missing in its <{side}>")
            if ours.number != theirs.number:
                raise self.error(theirs.line, f"{theirs.name()}, but line {ours.line} has {ours.name()}")
            yield ours.text, theirs.text

    def refuse_entity(self, name: str, *declaration: object) -> None:
        """The document declares an entity: WMT's do not, and such declarations can exhaust the memory."""
        raise self.error(self.line(), f"declares the entity {name}")

    def error(self, line: int, problem: str) -> PrepareError:
        return PrepareError(f"{self.path}, line {line}: {problem}")
