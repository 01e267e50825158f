"""Prompts: a template with the columns of a table in braces, and what follows it as the label."""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from ..errors import PrepareError
from ..text.penn import penn_splitter
from ..trees.tokens import Tokens

LABEL = "label"
_AT_THE_END = f" {{{LABEL}}}"


@dataclass(frozen=True)
class Prompt:
    """A prompt without its label.

    Attributes:
        parts: text, and the name of the column that follows it; "" after the last text.
        penn: whether texts are split into words as in the Penn Treebank, and not only at white space.
    """

    parts: tuple[tuple[str, str], ...]
    penn: bool

    @property
    def columns(self) -> list[str]:
        """The columns of the sentences."""
        return [column for _, column in self.parts if column]

    def words(self, row: Mapping[str, str]) -> list[str]:
        """The words of a prompt, with the sentences of a row."""
        texts = [text for before, column in self.parts for text in (before, row.get(column, ""))]
        return words_of(texts, self.penn)


def words_of(texts: Iterable[str], penn: bool) -> list[str]:
    """The words of texts that follow each other; as in the Penn Treebank, each text is split by itself."""
    return list(chain.from_iterable(map(penn_splitter(), texts))) if penn else "".join(texts).split()


def parse_template(template: str, *, has_label: bool, penn: bool) -> Prompt:
    """The prompt of a template.

    Raises:
        PrepareError: it names no column, or ``{label}`` is not exactly at its end, where labels are.
    """
    place = f"--template {template!r}"
    if template.endswith(_AT_THE_END) != has_label:
        expected = f"{_AT_THE_END!r} at the end" if has_label else f"no {{{LABEL}}}, since a regression has no --labels"
        raise PrepareError(f"{place}: expected {expected}")
    try:
        parsed = list(string.Formatter().parse(template.removesuffix(_AT_THE_END)))
    except ValueError as error:
        raise PrepareError(f"{place}: {error}") from error
    prompt = Prompt(tuple((text, column or "") for text, column, *_ in parsed), penn)
    if any(column == "" or form or conversion for _, column, form, conversion in parsed):
        raise PrepareError(f"{place}: expected the name of a column, and nothing else, in each pair of braces")
    if not prompt.columns or LABEL in prompt.columns:
        raise PrepareError(f"{place}: expected columns of sentences in braces, and {{{LABEL}}} only at the end")
    return prompt


def parse_labels(labels: Sequence[str]) -> dict[str, str]:
    """What the prompt has for each label, of ``LABEL=TEXT``.

    Raises:
        PrepareError: there are not two labels or more, or two that are the same.
    """
    pairs = [(name.strip(), text.strip()) for name, _, text in (label.partition("=") for label in labels)]
    named = dict(pairs)
    if (
        not all(chain.from_iterable(pairs))
        or not len(pairs) == len(named) == len(set(named.values()))
        or len(pairs) < 2
    ):
        raise PrepareError(f"--labels: expected LABEL=TEXT for two different labels or more, got {' '.join(labels)}")
    return named


def label_tokens(labels: Iterable[str], tokens: Tokens, prompt: Prompt) -> dict[str, list[str]]:
    """The tokens of the text of each label, after a prompt.

    Raises:
        PrepareError: a token is not in the dictionary, or a label begins with all tokens of another one, which
            would always be at least as probable.
    """
    before = prompt.words(dict.fromkeys(prompt.columns, "x"))[-1:]  # A word is cut as the first one only there.
    cut = {
        text: list(chain.from_iterable(tokens.cut([*before, *words_of([text], prompt.penn)], "--labels")[1:]))
        for text in labels
    }
    for text, pieces in cut.items():
        unknown = [piece for piece in pieces if piece not in tokens.symbols]
        if unknown:
            raise PrepareError(f"--labels: {text!r} has the token {unknown[0]!r}, which {tokens.dictionary} lacks")
        for other, of_other in cut.items():
            if other != text and of_other[: len(pieces)] == pieces:
                raise PrepareError(
                    f"--labels: the tokens of {other!r}, {' '.join(of_other)}, begin with those of {text!r}; "
                    "choose other texts"
                )
    return cut
