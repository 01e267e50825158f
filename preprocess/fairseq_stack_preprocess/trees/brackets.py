"""Phrase-structure trees in brackets: reading, cleaning and writing them.

The form is the Penn Treebank's: ``(S (NP (DT The) (NN dog)) (VP (VBZ barks)))``, each word in brackets
with its tag. A tree may stand on one line or on several, be wrapped in brackets without a label, as in
``( (S ...))``, and follow another one on the same line; but an opening bracket in the first column of a line
always begins a new tree, which shows where an unbalanced tree ends. Nothing here is recursive: trees may be
of any depth.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from ..errors import PrepareError
from ..text.fairseq_words import check_white_space, check_word
from ..text.streams import read_lines

T = TypeVar("T")

TRACE = "-NONE-"
"""The tag of elements that are not spoken: traces, empty complementisers and the like."""

WRAPPERS = frozenset({"", "S1", "ROOT", "TOP", "VROOT"})
"""Labels of roots that only wrap the tree."""

TOKEN = re.compile(r"[()]|[^\s()]+")


@dataclass(frozen=True, slots=True)
class Tree:
    """A node and what is below it.

    Attributes:
        label: the label of a phrase, or the tag of a word; empty at a root without a label.
        children: trees; or one string, if this is a word with its tag.
    """

    label: str
    children: tuple[Tree, ...] | tuple[str]

    def __str__(self) -> str:
        """The tree in brackets, on one line; the time is linear in its length, however deep it is."""
        parts: list[str] = []
        pending: list[Tree | str] = [self]
        while pending:
            node = pending.pop()
            if isinstance(node, str):
                parts.append(node)
                continue
            parts.append(f"({node.label}")
            pending.append(")")
            children: tuple[Tree | str, ...] = node.children
            for child in reversed(children):
                pending += (child, " ")
        return "".join(parts)


def fold(tree: Tree, word: Callable[[str, str], T], phrase: Callable[[str, list[T]], T]) -> T:
    """Compute a value for each node from left to right, children before parents; return the root's value.

    Args:
        tree: the root.
        word: the value of a word, from its tag and itself.
        phrase: the value of a phrase, from its label and its children's values.
    """
    pending: list[tuple[Tree, Iterator[Tree | str], list[T]]] = [(tree, iter(tree.children), [])]
    while True:
        node, children, values = pending[-1]
        child = next(children, None)
        if isinstance(child, Tree):
            pending.append((child, iter(child.children), []))
            continue
        pending.pop()
        value = word(node.label, child) if isinstance(child, str) else phrase(node.label, values)
        if not pending:
            return value
        pending[-1][2].append(value)


def tagged_words(tree: Tree) -> list[tuple[str, str]]:
    """The words of the tree with their tags, as (tag, word), from left to right."""
    words: list[tuple[str, str]] = []
    fold(tree, lambda tag, word: words.append((tag, word)), lambda label, parts: None)
    return words


def clean(tree: Tree) -> Tree | None:
    """The tree without traces, the phrases that they leave empty, function tags, indices and wrapper.

    None if no word is left. Words are kept as they are, ``-LRB-`` included.
    """
    cleaned = fold(tree, _clean_word, _clean_phrase)
    while cleaned is not None and cleaned.label in WRAPPERS and len(cleaned.children) == 1:
        (child,) = cleaned.children
        if isinstance(child, str):
            break
        cleaned = child
    return cleaned


def _clean_word(tag: str, word: str) -> Tree | None:
    return None if tag == TRACE else Tree(base_label(tag), (word,))


def _clean_phrase(label: str, parts: list[Tree | None]) -> Tree | None:
    kept = tuple(part for part in parts if part is not None)
    return Tree(base_label(label), kept) if kept else None


def base_label(label: str) -> str:
    """The label up to the first ``-``, ``=`` or ``|`` behind its first character.

    >>> base_label("NP-SBJ-1"), base_label("ADVP|PRT"), base_label("-LRB-")
    ('NP', 'ADVP', '-LRB-')
    """
    if label.startswith("-"):
        return label
    return label[:1] + re.split(r"[-=|]", label[1:], maxsplit=1)[0]


def read_trees(path: Path) -> Iterator[tuple[int, Tree]]:
    r"""Yield (line, tree) for each tree of a file, plain or gzipped; ``line`` is where the tree begins.

    Args:
        path: the file.

    Raises:
        PrepareError: a tree is broken, there is text outside brackets, a word would mislead fairseq, the
            file holds no tree, or :func:`.streams.read_lines` raised it. The message names the file and
            the line.
        OSError: the file cannot be opened or read.
    """
    reader = _Reader(path)
    for line in read_lines(path):
        yield from reader.read(line)
    reader.end()


def parse_trees(text: str, name: str) -> list[Tree]:
    """The trees of a text, whose name errors have; see :func:`read_trees`."""
    reader = _Reader(name)
    trees = [tree for line in text.splitlines() for _, tree in reader.read(line)]
    reader.end()
    return trees


@dataclass(slots=True)
class _Open:
    """A bracket that is not closed yet."""

    label: str | None = None
    children: list[Tree] = field(default_factory=list)
    word: str | None = None


class _Reader:
    """Reads trees from lines; it holds the current position and the open brackets."""

    def __init__(self, path: Path | str) -> None:
        self.path = path
        self.number = 0
        self.begin = 0
        self.trees = 0
        self.brackets: list[_Open] = []

    def read(self, line: str) -> Iterator[tuple[int, Tree]]:
        """Yield the trees that end on the next line."""
        self.number += 1
        check_white_space(line, self._place())
        if self.brackets and line.startswith("("):
            raise self._unclosed(f"where line {self.number} begins another")
        for token in TOKEN.findall(line):
            if token == "(":
                self._open()
            elif token == ")":
                tree = self._close()
                if not self.brackets:
                    self.trees += 1
                    yield self.begin, tree
            else:
                self._text(token)

    def end(self) -> None:
        """Raise PrepareError if the file may not end here."""
        if self.brackets:
            raise self._unclosed("where the file ends")
        if not self.trees:
            raise self._error("the file holds no tree")

    def _open(self) -> None:
        if not self.brackets:
            self.begin = self.number
        else:
            parent = self.brackets[-1]
            if parent.word is not None:
                raise self._error(f"a bracket opens next to the word {parent.word!r}")
            if parent.label is None and len(self.brackets) > 1:
                raise self._error("a bracket without a label inside a tree")
        self.brackets.append(_Open())

    def _close(self) -> Tree:
        if not self.brackets:
            raise self._error("a closing bracket without an opening bracket")
        node = self.brackets.pop()
        label = node.label or ""
        if node.word is not None:
            tree = Tree(label, (node.word,))
        elif node.children:
            tree = Tree(label, tuple(node.children))
        else:
            raise self._error(f"an empty bracket: ({label})")
        if self.brackets:
            self.brackets[-1].children.append(tree)
        return tree

    def _text(self, text: str) -> None:
        if not self.brackets:
            raise self._error(f"text outside brackets: {text!r}")
        node = self.brackets[-1]
        if node.children:
            raise self._error(f"the word {text!r} needs its own brackets and tag")
        if node.word is not None:
            raise self._error(f"two words in one bracket: {node.word!r} and {text!r}")
        if node.label is None:
            node.label = text
        else:
            check_word(text, self._place())
            node.word = text

    def _place(self) -> str:
        return f"{self.path}, line {self.number}"

    def _unclosed(self, where: str) -> PrepareError:
        return PrepareError(f"{self.path}, line {self.begin}: the tree that begins here is not closed {where}")

    def _error(self, problem: str) -> PrepareError:
        return PrepareError(f"{self._place()}: {problem}")
