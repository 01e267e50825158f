"""The result of ``fairseq-stack evaluate-pushdown``, its parts, and how they are computed."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from fairseq_stack_preprocess.cfl.bounded_dyck import attachments

from .intervals import Intervals
from .markdown import table
from .results import Estimate, Result, Row
from .unlabelled_f1 import span_counts


@dataclass(frozen=True)
class ScoredParse:
    """What a model says about a string of n words, with its gold parse, the parses of a beam, or the best run.

    Attributes:
        nats: -log p of the words and the end; with a beam, of the sum over its parses.
        attachments: what the model finds that each word attaches to, n: after the gold parse of what is before the
            word, or in the best parse of the beam, or in the parse of the best run.
        choices: the most probable one of some symbols at the place of each word and of the end, n + 1, where the parses
            in a beam have their weights; None if no symbols were given.
        is_tree: whether the best parse of the beam, or of the best run, is one tree; None with the gold parse.
    """

    nats: float
    attachments: Sequence[int]
    choices: Sequence[str] | None
    is_tree: bool | None


@dataclass(frozen=True)
class Sentence:
    """A sentence and its scores.

    Attributes:
        words: the n tokens: words, or pieces of words.
        word_of: the number of the word that each token belongs to.
        attachments: the gold parse.
        punctuation: whether each token is punctuation; None if tags are not known.
        gold: with the gold parse of what is before each word; None for best runs.
        own: with the model's own parses, or its best run; None unless they are wanted.
    """

    words: Sequence[str]
    word_of: Sequence[int]
    attachments: Sequence[int]
    punctuation: Sequence[bool] | None
    gold: ScoredParse | None
    own: ScoredParse | None


Parsed = tuple[Sentence, ScoredParse]
"""A sentence, and what a model says about it with its gold parse or with its own."""


def with_parses(sentences: Sequence[Sentence]) -> tuple[list[Parsed], list[Parsed]]:
    """All sentences with their gold parses (none for best runs), and with the model's own (none if not wanted)."""
    gold = [(sentence, sentence.gold) for sentence in sentences if sentence.gold is not None]
    own = [(sentence, sentence.own) for sentence in sentences if sentence.own is not None]
    return gold, own


@dataclass(frozen=True)
class Scores:
    """The scores of a model with gold parses or with its own.

    Attributes:
        perplexity: of words and ends; with its own parses, of the sum over the parses of the beam, an upper bound; with
            best runs, which it does not depend on, exact.
        attachments: the share of words that the model attaches as the gold parse does.
    """

    perplexity: Estimate
    attachments: Estimate


@dataclass(frozen=True)
class ParseScores:
    """How well the best parses agree with the gold parses; unlabelled F1 over the spans of all sentences, in words.

    Attributes:
        trees: the share of parses that are one tree.
        f1: of all spans of at least two words.
        f1_without_sentence: the spans of whole sentences do not count.
        f1_without_punctuation: punctuation is deleted first, by tags, as EVALB does; None if there are no tags.
    """

    trees: Estimate
    f1: Estimate
    f1_without_sentence: Estimate
    f1_without_punctuation: Estimate | None


@dataclass(frozen=True)
class ClosingAccuracy:
    """How often the closing bracket that the model finds the most probable is right, where one comes next.

    Attributes:
        group: which closing brackets.
        brackets: how many there are.
        gold: the accuracy with gold parses, or None.
        own: the accuracy with the model's own parses, or None.
    """

    group: str
    brackets: int
    gold: Estimate | None
    own: Estimate | None


@dataclass(frozen=True)
class PushdownResult(Result):
    """A model that parses, on sentences whose parses are known.

    Attributes:
        split: the part of the corpus.
        beam: the number of parses that are kept: 1 if decisions are greedy, 0 if the model does not parse; None if its
            parse is the best run of a nondeterministic stack.
        sentences: number of sentences.
        words: number of words, without ends.
        gold: with gold parses; None for best runs.
        own: with the model's own parses, or None.
        parses: the model's own parses, or None.
        closings: of strings of brackets, the accuracy of closing ones; empty for other sentences.
    """

    kind: ClassVar[str] = "evaluate-pushdown"
    split: str
    beam: int | None
    sentences: int
    words: int
    gold: Scores | None
    own: Scores | None
    parses: ParseScores | None
    closings: tuple[ClosingAccuracy, ...]

    def lines(self) -> list[str]:
        own = {None: "best runs", 1: "greedy parses"}.get(self.beam, f"beam of {self.beam}")
        tables = [_table_of_scores({"gold parses": self.gold, own: self.own})]
        if self.parses is not None:
            tables.append(_table_of_parses(own, self.parses))
        if self.closings:
            tables.append(_table_of_closings(own, self.closings))
        return [self.model.on(self.split), *(line for each in tables for line in ("", each))]


def _table_of_scores(scores: Mapping[str, Scores | None]) -> str:
    rows = [[name, *of.perplexity.cells(2), *of.attachments.percent(2)] for name, of in scores.items() if of]
    return table(("parses", "perplexity", "interval", "attachments", "interval"), rows)


def _table_of_parses(own: str, parses: ParseScores) -> str:
    shares = {
        "F1": parses.f1,
        "F1 without the spans of sentences": parses.f1_without_sentence,
        "F1 without punctuation": parses.f1_without_punctuation,
        "parses that are one tree": parses.trees,
    }
    return table((own, "share", "interval"), [[name, *share.percent(2)] for name, share in shares.items() if share])


def _table_of_closings(own: str, closings: Sequence[ClosingAccuracy]) -> str:
    first = closings[0]
    shown = [(name, key) for name, key in (("gold parses", "gold"), (own, "own")) if getattr(first, key)]
    rows = [
        [each.group, f"{each.brackets:,}", *(cell for _, key in shown for cell in getattr(each, key).percent(2))]
        for each in closings
    ]
    return table(("closing brackets", "number", *(title for name, _ in shown for title in (name, "interval"))), rows)


def scores_of(parses: Sequence[Parsed], intervals: Intervals) -> Scores | None:
    """The scores of sentences with these parses; None for no sentences."""
    if not parses:
        return None
    rate = intervals.of_rate(
        [parse.nats for _, parse in parses], [len(sentence.words) + 1 for sentence, _ in parses], 0
    )
    same = [(_attached(sentence, parse), len(sentence.words)) for sentence, parse in parses]
    return Scores(Estimate(*map(math.exp, (rate.value, rate.low, rate.high))), _share(same, intervals, 1))


def _attached(sentence: Sentence, parse: ScoredParse) -> int:
    """How many tokens attach as in the gold parse."""
    return sum(map(operator.eq, parse.attachments, sentence.attachments))


def row_of_sentence(sentence: Sentence) -> Row:
    """The scores of a sentence, with gold parses and, unless there are none, with the model's own."""
    gold, own = sentence.gold, sentence.own
    row: dict[str, object] = {"sentence": " ".join(sentence.words), "tokens": len(sentence.words)}
    if gold is not None:
        row |= {"nats": gold.nats, "attached": _attached(sentence, gold)}
    if own is not None:
        f1 = span_counts(own.attachments, sentence.attachments, word_of=sentence.word_of).f1
        row |= {"own_nats": own.nats, "own_attached": _attached(sentence, own)}
        row |= {"own_f1": f1, "own_tree": own.is_tree}
    return row


def parse_scores(parses: Sequence[Parsed], intervals: Intervals) -> ParseScores | None:
    """How well the model's own parses agree with the gold parses; None for no sentences."""
    if not parses:
        return None

    def f1(stream: int, *, with_sentence: bool = True, punctuation: bool = True) -> Estimate:
        counts = [
            span_counts(
                parse.attachments,
                sentence.attachments,
                word_of=sentence.word_of,
                left_out=None if punctuation else sentence.punctuation,
                with_sentence=with_sentence,
            )
            for sentence, parse in parses
        ]
        return _share([(2 * each.matched, each.predicted + each.gold) for each in counts], intervals, stream)

    has_tags = any(sentence.punctuation is not None for sentence, _ in parses)
    return ParseScores(
        _share([(int(bool(parse.is_tree)), 1) for _, parse in parses], intervals, 2),
        f1(3),
        f1(4, with_sentence=False),
        f1(5, punctuation=False) if has_tags else None,
    )


@dataclass(frozen=True)
class Closing:
    """A closing bracket.

    Attributes:
        place: its place in the string, from 0 on.
        distance: how many symbols before it its opening bracket is.
        depth: how many brackets are open before it.
        is_last: whether it ends the string.
    """

    place: int
    distance: int
    depth: int
    is_last: bool


def closings(string: Sequence[str]) -> Iterator[Closing]:
    """The closing brackets of a string.

    Raises:
        ValueError: a closing bracket has no opening one of its type.
    """
    depth = 0
    for place, attached in enumerate(attachments(string)):
        distance = place + 1 - attached
        if distance:
            yield Closing(place, distance, depth, place == len(string) - 1)
        depth += -1 if distance else 1


def _at_distance(least: int) -> Callable[[Closing], bool]:
    return lambda closing: closing.distance >= least


GROUPS: dict[str, Callable[[Closing], bool]] = {
    "all": lambda closing: True,
    **{f"distance >= {least}": _at_distance(least) for least in (50, 100, 200, 300)},
    "depth 1 to 10": lambda closing: closing.depth <= 10,
    "depth 11 to 20": lambda closing: 10 < closing.depth <= 20,
    "depth > 20": lambda closing: closing.depth > 20,
    "last of a string": lambda closing: closing.is_last,
}
"""The groups of closing brackets whose accuracies are shown: by distance as in Murty et al. (2023), and by depth."""


def closing_accuracies(sentences: Sequence[Sentence], intervals: Intervals) -> Iterator[ClosingAccuracy]:
    """The accuracy of each group of closing brackets that occurs in strings of brackets."""
    brackets = [list(closings(sentence.words)) for sentence in sentences]
    gold, own = with_parses(sentences)
    for stream, (group, belongs) in enumerate(GROUPS.items(), start=10):
        places = [[closing.place for closing in string if belongs(closing)] for string in brackets]
        number = sum(map(len, places))
        if number:
            accuracies = [_accuracy(parses, places, intervals, stream) for parses in (gold, own)]
            yield ClosingAccuracy(group, number, *accuracies)


def _accuracy(
    parses: Sequence[Parsed], places: Sequence[Sequence[int]], intervals: Intervals, stream: int
) -> Estimate | None:
    """The share of the symbols at these places of each string that the model finds the most probable; None for no
    parses.
    """
    if not parses:
        return None
    pairs = []
    for (sentence, parse), of_string in zip(parses, places, strict=True):
        assert parse.choices is not None
        pairs.append((sum(parse.choices[place] == sentence.words[place] for place in of_string), len(of_string)))
    return _share(pairs, intervals, stream)


def _share(pairs: Sequence[tuple[int, int]], intervals: Intervals, stream: int) -> Estimate:
    """The share of all, from what each sentence has of it and of all; sentences that have nothing do not count."""
    sums, counts = zip(*([pair for pair in pairs if pair[1]] or [(1, 1)]), strict=True)
    return intervals.of_rate(sums, counts, stream)
