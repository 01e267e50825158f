"""The results of the demo: three models on two generated corpora.

The folder of an experiment holds ``nested-translation/`` and ``reversal/``. In each there are ``corpus/``, which
``fairseq-stack prepare`` wrote, and for each kind of model a folder with ``train.log`` (``fairseq-train
--log-file``), ``checkpoint_best.pt`` and ``generate-test.txt`` (translation) or ``score.out`` (language modelling).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from fairseq_stack_preprocess.cfl import reversal
from fairseq_stack_preprocess.cfl.string_sets import read_numbers
from fairseq_stack_preprocess.nested import corpus as nested_translation
from fairseq_stack_preprocess.text.binarise import DATA_BIN, SUFFIX, TEXT

from .errors import AnalysisError
from .files import read_text
from .training_log import TrainingLog, read_training_log
from .translations import bleu, exact_match, exact_match_by, read_translations
from .word_scores import cross_entropy, excess, excess_by_length, read_word_scores

KINDS = ("tf", "sup", "nd")
"""The kinds of models: without a stack, with superposition and with nondeterministic stack attention."""

TRAINING_LOG = "train.log"
CHECKPOINT = "checkpoint_best.pt"
TRANSLATIONS = "generate-test.txt"
WORD_SCORES = "score.out"

Result = TypeVar("Result")
Number = TypeVar("Number", int, float)


@dataclass(frozen=True)
class TranslationResult:
    """A translation model on the test set.

    Attributes:
        training: the course of its training.
        bleu: sacrebleu's BLEU of the words as they are.
        signature: sacrebleu's signature.
        exact_match: share of the translations that are the reference, word by word.
        exact_match_by_depth: the same for each depth of nesting.
    """

    training: TrainingLog
    bleu: float
    signature: str
    exact_match: float
    exact_match_by_depth: Mapping[int, float]


@dataclass(frozen=True)
class LanguageModelResult:
    """A language model on the test set; all in nats a token, the end of a string being one.

    Attributes:
        training: the course of its training.
        cross_entropy: negative log-likelihood.
        excess: cross-entropy less that of the distribution from which the strings were drawn.
        excess_by_length: the same for each length of strings.
    """

    training: TrainingLog
    cross_entropy: float
    excess: float
    excess_by_length: Mapping[int, float]


@dataclass(frozen=True)
class Experiment:
    """The results of an experiment, by kind of model.

    Attributes:
        translation: on nested translation.
        reversal: on strings w w^R.
        valid_bound: the least cross-entropy on the validation strings, in nats a token: that of their distribution.
    """

    translation: Mapping[str, TranslationResult]
    reversal: Mapping[str, LanguageModelResult]
    valid_bound: float


def read_experiment(folder: Path) -> Experiment:
    """Read the results in ``folder``.

    Raises:
        AnalysisError: a file is missing, or does not hold what it should.
    """
    if not folder.is_dir():
        raise AnalysisError(f"{folder} is not a folder; expected the one that scripts/demo.sh wrote")
    try:
        return _read_experiment(folder)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
        raise AnalysisError(
            f"{folder} does not hold the results of scripts/demo.sh: {error.filename} is missing or not a file"
        ) from error


def _read_experiment(folder: Path) -> Experiment:
    valid_bounds = _read_bounds(folder / reversal.CORPUS, "valid")
    valid_lines = _lines(folder / reversal.CORPUS / "corpus" / TEXT / f"valid.{SUFFIX}")
    tokens = sum(len(line.split()) + 1 for line in valid_lines)
    return Experiment(
        translation=_of_each_kind(read_translation_result, folder / nested_translation.CORPUS),
        reversal=_of_each_kind(read_language_model_result, folder / reversal.CORPUS),
        valid_bound=sum(valid_bounds) / tokens,
    )


def read_translation_result(task: Path, kind: str) -> TranslationResult:
    """The result of one kind of model; ``task`` is the folder of the corpus and its models."""
    translations = read_translations(task / kind / TRANSLATIONS)
    depths = _numbers(task / "corpus" / TEXT / "test.depth", int)
    _check_equal(task / kind / TRANSLATIONS, len(translations), len(depths))
    score, signature = bleu(translations)
    return TranslationResult(
        training=read_training_log(task / kind / TRAINING_LOG),
        bleu=score,
        signature=signature,
        exact_match=exact_match(translations),
        exact_match_by_depth=exact_match_by(translations, depths),
    )


def read_language_model_result(task: Path, kind: str) -> LanguageModelResult:
    """The result of one kind of model; ``task`` is the folder of the corpus and its models."""
    scores = read_word_scores(task / kind / WORD_SCORES)
    bounds = _read_bounds(task, "test")
    _check_equal(task / kind / WORD_SCORES, len(scores), len(bounds))
    return LanguageModelResult(
        training=read_training_log(task / kind / TRAINING_LOG),
        cross_entropy=cross_entropy(scores),
        excess=excess(scores, bounds),
        excess_by_length=excess_by_length(scores, bounds),
    )


@dataclass(frozen=True)
class DecoderReading:
    """What the stack attention in a decoder looks at while it reads a sentence.

    Attributes:
        inputs: what the decoder reads: the beginning of the sentence, and its words.
        weights: for the reading after each of the inputs, the weights of the bottom of the stack and of the vectors
            pushed at each of the inputs.
    """

    inputs: tuple[str, ...]
    weights: tuple[tuple[float, ...], ...]


def read_decoder(folder: Path, depth: int) -> DecoderReading:
    """The stack attention of the trained ``nd`` translation model on the reference of a test sentence.

    It is the first sentence with a nesting of ``depth``, or of the greatest that there is if that is less.
    """
    from .stack_weights import decoder_stack_weights  # loads torch and fairseq

    task = folder / nested_translation.CORPUS
    text = task / "corpus" / TEXT
    depths = _numbers(text / "test.depth", int)
    number = depths.index(min(depth, max(depths)))
    source, target = (
        _lines(text / f"test.{language}")[number] for language in (nested_translation.SOURCE, nested_translation.TARGET)
    )
    weights = decoder_stack_weights(task / "nd" / CHECKPOINT, task / "corpus" / DATA_BIN, source, target)
    return DecoderReading(("</s>", *target.split()), tuple(tuple(row) for row in weights.tolist()))


def _of_each_kind(read: Callable[[Path, str], Result], task: Path) -> dict[str, Result]:
    return {kind: read(task, kind) for kind in KINDS}


def _read_bounds(task: Path, split: str) -> list[float]:
    """For each string of a split -log p(string and its end), in nats."""
    return read_numbers(task / "corpus" / TEXT / f"{split}.nll")


def _numbers(path: Path, kind: Callable[[str], Number]) -> list[Number]:
    """The number in each line."""
    numbers = []
    for line, text in enumerate(_lines(path), start=1):
        try:
            numbers.append(kind(text))
        except ValueError as error:
            raise AnalysisError(f"{path}, line {line}: expected a number, got {text!r}") from error
    return numbers


def _lines(path: Path) -> list[str]:
    return read_text(path).removesuffix("\n").split("\n")


def _check_equal(path: Path, number: int, expected: int) -> None:
    if number != expected:
        raise AnalysisError(f"{path}: {number} sentences, expected {expected}, as many as in the corpus")
