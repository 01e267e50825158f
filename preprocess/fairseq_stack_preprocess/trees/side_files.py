"""The side files and the text of a split, which all corpora of trees share.

Files in ``text/``, for each split, one line per sentence:

- ``.words``: the words, traces left out; ``.tags``: their tags; ``.trees``: the cleaned tree in brackets;
- ``.origin``: the file and, after a tab, the line in it where the tree begins;
- ``.spans`` and ``.attach``: the binary tree over the tokens of ``.txt``, see :mod:`.spans`;
- ``.txt``: the tokens that fairseq gets: words, or classes for rare ones, or SentencePiece's pieces.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from ..errors import PrepareError
from ..layout import SUFFIX
from ..progress import progress
from ..text.output import write_columns, write_lines
from ..text.streams import read_lines
from .brackets import Tree, clean, read_trees, tagged_words
from .spans import attachments, binary_spans, depths, format_spans
from .word_classes import known_or_class

SIDE_FILES = ("words", "tags", "trees", "origin", "spans", "attach")
MRG_SUFFIXES = (".mrg", ".mrg.gz")
NO_WORDS = "no word but traces"


@dataclass(frozen=True)
class TreeFile:
    """A file of trees.

    Attributes:
        path: where it is.
        name: its name in the manifest and in ``.origin``; not an absolute path.
    """

    path: Path
    name: str


@dataclass(frozen=True)
class Sentence:
    """A tree that is not cleaned yet, and its origin."""

    file: str
    line: int
    tree: Tree


@dataclass
class SplitReport:
    """What a split was made of.

    Attributes:
        sentences: number of sentences written.
        longest: words in the longest sentence.
        deepest: nodes above the deepest word, in the binary trees; the size a table of depths needs is this + 1.
        words: how often each word occurs.
        dropped: how many trees were dropped for which reason.
    """

    sentences: int = 0
    longest: int = 0
    deepest: int = 0
    words: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)

    def counts(self) -> dict[str, Any]:
        """For the manifest; words do not count the end of sentence."""
        return {
            "sentences": self.sentences,
            "words": self.words.total(),
            "distinct_words": len(self.words),
            "longest": self.longest,
            "deepest": self.deepest,
        }


def find_mrg_files(folder: Path) -> list[Path]:
    """All files in the folder, at any depth, that end in ``.mrg`` or ``.mrg.gz`` and are not hidden, sorted."""
    named = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    files = (name for name in named if name.lower().endswith(MRG_SUFFIXES) and "/." not in f"/{name}")
    return [named[name] for name in sorted(files)]


def read_sentences(files: Iterable[TreeFile]) -> Iterator[Sentence]:
    """The trees of the files, in their order.

    Raises:
        PrepareError: see :func:`.brackets.read_trees`.
    """
    for file in files:
        for line, tree in read_trees(file.path):
            yield Sentence(file.name, line, tree)


def write_split(
    text: Path,
    split: str,
    sentences: Iterable[Sentence],
    *,
    corpus: str,
    limit: int | None,
    dropped: Counter[str] | None = None,
) -> SplitReport:
    """Write all side files of a split into the folder ``text``, in one pass.

    Args:
        text: the folder.
        split: the split's name.
        sentences: its trees, read as they are needed.
        corpus: the corpus' name, for the progress.
        limit: the maximum number of sentences to write; None: all.
        dropped: counts trees that were dropped earlier.

    Raises:
        PrepareError: no sentence is left.
    """
    report = SplitReport(dropped=Counter() if dropped is None else dropped)
    trees = progress(islice(_cleaned(sentences, report), limit), label=f"{corpus}: {split}", total=None)
    rows = (_side_lines(sentence, tree, report) for sentence, tree in trees)
    write_columns([text / f"{split}.{name}" for name in SIDE_FILES], rows)
    if not report.sentences:
        raise PrepareError(f"{corpus}: no sentence of {split} is left of {report.dropped.total()} trees")
    return report


def _cleaned(sentences: Iterable[Sentence], report: SplitReport) -> Iterator[tuple[Sentence, Tree]]:
    for sentence in sentences:
        tree = clean(sentence.tree)
        if tree is None:
            report.dropped[NO_WORDS] += 1
        else:
            yield sentence, tree


def _side_lines(sentence: Sentence, tree: Tree, report: SplitReport) -> tuple[str, ...]:
    """The line of each of :data:`SIDE_FILES`; the sentence is counted in ``report``."""
    tags, words = zip(*tagged_words(tree), strict=True)
    spans = binary_spans(tree)
    report.sentences += 1
    report.longest = max(report.longest, len(words))
    report.deepest = max(report.deepest, *depths(spans, len(words)))
    report.words.update(words)
    origin = f"{sentence.file}\t{sentence.line}"
    return " ".join(words), " ".join(tags), str(tree), origin, *span_lines(spans, len(words))


def span_lines(spans: list[tuple[int, int]], tokens: int) -> tuple[str, str]:
    """The lines of ``.spans`` and ``.attach`` for a tree over this many tokens."""
    return format_spans(spans), " ".join(map(str, attachments(spans, tokens)))


def write_words_as_text(text: Path, split: str, token: Callable[[str], str]) -> Counter[str]:
    """Write ``.txt`` of a split from its ``.words``, with ``token(word)`` for each word; return the tokens' counts."""
    counts: Counter[str] = Counter()

    def lines() -> Iterator[str]:
        for line in read_lines(text / f"{split}.words"):
            tokens = [token(word) for word in line.split(" ")]
            counts.update(tokens)
            yield " ".join(tokens)

    write_lines(text / f"{split}.{SUFFIX}", lines())
    return counts


def write_classes_as_text(text: Path, split: str, known: frozenset[str]) -> Counter[str]:
    """Write ``.txt`` of a split with classes for all words that are not known; return the tokens' counts."""
    return write_words_as_text(text, split, cache(lambda word: known_or_class(word, known)))
