"""What sentences are like on average, within four standard errors of what the class weights imply."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice

import pytest

from fairseq_stack_preprocess.text.splits import stream
from fairseq_stack_preprocess.transformations.class_weights import ClassWeights, class_weights
from fairseq_stack_preprocess.transformations.tasks import TASKS, Pair
from fairseq_stack_preprocess.transformations.transformation_corpus import Options, ambiguous_draws, generate
from tests.preprocess.transformations.oracle import CLASS, QUESTIONS, TENSES, WORDS

DRAWS = 20_000
CHOICES = {"d": 6, "o": 8, "r": 2, "s": 26, "p": 26, "a": 2, "b": 2, "w": 9, "u": 9, ".": 1}
"""The number of words from which one of each class is drawn, all equally likely; a noun may have either number."""

# The types of subjects (simple, PP, RO, RSt, RSi) and of verb phrases (I, then the same types of objects).
PUBLISHED = ((3, 3, 1, 1, 1), (9, 3, 3, 1, 1, 1))
IN_TRAINING = {
    (QUESTIONS, "released"): ((36, 15, 10, 5, 5), (3, 3, 3, 1, 1, 2)),
    (QUESTIONS, "grammar"): PUBLISHED,
    (TENSES, "released"): ((3, 3, 1, 1, 1), (3, 3, 3, 1, 1, 1)),
    (TENSES, "grammar"): PUBLISHED,
}
IN_GEN = {
    (QUESTIONS, "released"): ((0, 0, 2, 2, 2), (3, 1, 1, 0, 0, 0)),
    (QUESTIONS, "grammar"): ((0, 0, 2, 2, 2), (3, 1, 1, 0, 0, 0)),
    (TENSES, "released"): ((0, 3, 1, 1, 0), (3, 3, 3, 1, 1, 1)),
    (TENSES, "grammar"): ((0, 3, 1, 1, 0), (9, 3, 3, 1, 1, 1)),
}
TYPES = ("simple", "PP", "RO", "RSt", "RSi")


def drawn(task: str, number: int = DRAWS, weights: ClassWeights | None = None) -> list[Pair]:
    """Pairs of train, in which some may occur twice."""
    weights = weights or Options(task).class_weights("train")
    return list(islice(ambiguous_draws(stream(5, "train"), TASKS[task], weights, Counter()), number))


def check_mean(values: Sequence[float], expected: float) -> None:
    error = statistics.stdev(values) / math.sqrt(len(values))
    assert abs(statistics.fmean(values) - expected) < 4 * error


def check_shares(counts: Mapping[str, int], weights: Mapping[str, float]) -> None:
    total = sum(counts.values())
    assert set(counts) == {name for name, weight in weights.items() if weight}
    for name, weight in weights.items():
        share = weight / sum(weights.values())
        assert abs(counts.get(name, 0) / total - share) <= 4 * math.sqrt(share * (1 - share) / total), name


def check_structures(pairs: Sequence[Pair], weights: tuple[Sequence[float], Sequence[float]]) -> None:
    subjects, verb_phrases = weights
    check_shares(Counter(pair.structure[0] for pair in pairs), dict(zip(TYPES, subjects, strict=True)))
    check_shares(Counter(pair.structure[1] for pair in pairs), dict(zip(("I", *TYPES), verb_phrases, strict=True)))


def test_questions() -> None:
    """With repetitions, a perfect language model pays 0.9926 nats per token for the authors' distribution."""
    pairs = drawn(QUESTIONS)
    check_mean([pair.source[-1] == "quest" for pair in pairs], 0.4180)
    check_mean([len(pair.source) - 1 for pair in pairs], 9.937)
    check_mean([len(pair.source + pair.target) + 1 for pair in pairs], 21.874)
    check_mean([len(pair.source) == 6 for pair in pairs], 36 / 71 * 3 / 13 / (1 - 10 / 71))
    check_mean([nats_of_question(pair) for pair in pairs], 21.711)


def nats_of_question(pair: Pair) -> float:
    """-log p of a line: its types, its words, and its marker, of which p excludes the pairs that are left out."""
    subjects, verb_phrases = IN_TRAINING[QUESTIONS, "released"]
    subject = subjects[TYPES.index(pair.structure[0])] / sum(subjects)
    verb_phrase = verb_phrases[("I", *TYPES).index(pair.structure[1])] / sum(verb_phrases)
    words = sum(math.log(CHOICES[CLASS[word]]) for word in pair.source[:-1])
    return words - math.log(subject * verb_phrase / 2 / (1 - 10 / 71))


def test_tenses() -> None:
    pairs = drawn(TENSES)
    check_mean([pair.source[-1] == "PRESENT" for pair in pairs], (1 - 5 / 18) / (2 - 5 / 18))
    four_words = 1 / 3 / 4 / (1 - 5 / 36)
    check_mean([len(pair.source) == 5 for pair in pairs], four_words)


@pytest.mark.parametrize(("task", "weights"), IN_TRAINING)
def test_types_of_phrases(task: str, weights: str) -> None:
    """In identity pairs, which are not filtered, and in the generalisation set."""
    options = Options(task, weights, train_size=1, valid_size=1, test_size=1, gen_size=3000)
    identity = TASKS[task].markers[0]
    pairs = [pair for pair in drawn(task, weights=options.class_weights("train")) if pair.source[-1] == identity]
    check_structures(pairs, IN_TRAINING[task, weights])
    check_structures(generate(options).splits["gen"], IN_GEN[task, weights])


@pytest.mark.parametrize("task", TASKS)
def test_words_of_a_class_are_equally_likely(task: str) -> None:
    counts = Counter(word for pair in drawn(task) for word in pair.source)
    nouns = f"{WORDS['s']} {WORDS['p']}"
    classes = [WORDS["d"], WORDS["o"], WORDS["r"], nouns]
    if task == QUESTIONS:
        classes += [WORDS["w"], WORDS["u"], f"{WORDS['a']} {WORDS['b']}"]
    for words in map(str.split, classes):
        check_shares({word: counts[word] for word in words}, dict.fromkeys(words, 1))


@pytest.mark.parametrize(("task", "lines"), [(QUESTIONS, 2 * 6 * 26 * 2 * 9), (TENSES, 2 * 6 * 26 * 9)])
def test_number_of_the_shortest_sentences(task: str, lines: int) -> None:
    """Train of the papers' size has them nearly all."""
    weights = class_weights((1, 0, 0, 0, 0), (1, 0, 0, 0, 0, 0))
    assert len({pair.source for pair in drawn(task, 16 * lines, weights)}) == lines
