"""Translations, from the file that ``fairseq-generate --results-path`` writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fairseq_stack.errors import UserError
from fairseq_stack.files import read_text

from .scores import Score, own_method


@dataclass(frozen=True)
class Translation:
    """A sentence's translation, as blank-separated words."""

    source: str
    reference: str
    hypothesis: str

    @property
    def is_exact(self) -> bool:
        return self.hypothesis == self.reference


def read_translations(path: Path) -> list[Translation]:
    """The best translation of each sentence, in the order of the data set.

    Raises:
        UserError: a sentence has no source, reference or translation, or there is no sentence.
    """
    columns: dict[str, dict[int, str]] = {"S": {}, "T": {}, "H": {}}
    for line in read_text(path).split("\n"):
        label, _, rest = line.partition("\t")
        kind, _, number = label.partition("-")
        if kind in columns and number.isdigit():
            text = rest.partition("\t")[2] if kind == "H" else rest
            columns[kind].setdefault(int(number), text)
    numbers = range(len(columns["S"]))
    for kind, lines in columns.items():
        if not lines or sorted(lines) != list(numbers):
            raise UserError(f"{path}: {len(lines)} lines {kind}-..., expected one for each sentence 0, 1, ...")
    return [Translation(*(lines[number] for lines in columns.values())) for number in numbers]


def bleu(translations: Sequence[Translation], data: str) -> Score:
    """BLEU of tokenised words ("forced": no warning about tokenisation); ``data`` names the sentences."""
    from sacrebleu.metrics import BLEU  # takes long to load

    metric = BLEU(tokenize="none", force=True)
    hypotheses = [translation.hypothesis for translation in translations]
    references = [translation.reference for translation in translations]
    value = metric.corpus_score(hypotheses, [references]).score
    return Score("BLEU", value, "", data, str(metric.get_signature()))


def exact_match(translations: Sequence[Translation], data: str) -> Score:
    """The share of translations that equal the reference, word by word; ``data`` names the sentences."""
    return Score("exact match", _share(translations), "of the sentences", data, own_method(sentences=len(translations)))


def exact_match_by(translations: Sequence[Translation], groups: Sequence[int]) -> dict[int, float]:
    """The value of :func:`exact_match` for each group (say, each depth of nesting), by ascending group."""
    by_group: dict[int, list[Translation]] = {}
    for translation, group in zip(translations, groups, strict=True):
        by_group.setdefault(group, []).append(translation)
    return {group: _share(members) for group, members in sorted(by_group.items())}


def _share(translations: Sequence[Translation]) -> float:
    return sum(translation.is_exact for translation in translations) / len(translations)
