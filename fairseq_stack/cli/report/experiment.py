"""The results of the demo: three models on two generated corpora.

The folder of an experiment holds ``nested-translation/`` and ``dyck/``. In each there are ``corpus/``, which
``fairseq-stack prepare`` wrote, and for each kind of model a folder with ``train.log`` (``fairseq-train
--log-file``), ``checkpoint_best.pt`` and ``generate-test.txt`` (translation) or ``test.json`` (language modelling:
``fairseq-stack evaluate-cfl --json``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from fairseq_stack.errors import UserError
from fairseq_stack.evaluation.cfl_comparison import Labelled, compare
from fairseq_stack.evaluation.cfl_result import CFLResult, read_cfl_result
from fairseq_stack.evaluation.scores import Score
from fairseq_stack.evaluation.training_log import TrainingLog, read_training_log
from fairseq_stack.evaluation.translations import bleu, exact_match, exact_match_by, read_translations
from fairseq_stack.files import read_lines
from fairseq_stack_preprocess.layout import DATA_BIN, SUFFIX, TEXT
from fairseq_stack_preprocess.nested import nested_corpus as nested_translation
from fairseq_stack_preprocess.text.numbers import read_numbers

if TYPE_CHECKING:
    from fairseq_stack.inspection.stacks import InspectedAutomaton

DYCK = "dyck"
"""The folder of the formal language."""

NO_STACK = "tf"
"""The name of the model without a stack; the others have the names of kinds of layers."""

TRAINING_LOG = "train.log"
CHECKPOINT = "checkpoint_best.pt"
TRANSLATIONS = "generate-test.txt"
STRING_SCORES = "test.json"

Result = TypeVar("Result")


@dataclass(frozen=True)
class TranslationResult:
    """A translation model on the test set.

    Attributes:
        training: the course of its training.
        bleu: sacrebleu's BLEU of the words as they are.
        exact_match: share of the translations that equal the reference, word by word.
        exact_match_by_depth: the same for each depth of nesting.
    """

    training: TrainingLog
    bleu: Score
    exact_match: Score
    exact_match_by_depth: Mapping[int, float]


@dataclass(frozen=True)
class LanguageModelResult:
    """A language model on the test strings.

    Attributes:
        training: the course of its training.
        scores: its cross-entropy difference, for each length and for all strings, and the share of its own strings that
            are in the language.
    """

    training: TrainingLog
    scores: CFLResult


@dataclass(frozen=True)
class Experiment:
    """The results of an experiment, by kind of model.

    Attributes:
        translation: on nested translation.
        dyck: on balanced brackets.
    """

    translation: Mapping[str, TranslationResult]
    dyck: Mapping[str, LanguageModelResult]


def read_experiment(folder: Path) -> Experiment:
    """Read the results in ``folder``.

    Raises:
        UserError: a file is missing, or does not hold what it should.
    """
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder; expected the one that scripts/demo.sh wrote")
    try:
        return _read_experiment(folder)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
        raise UserError(
            f"{folder} does not hold the results of scripts/demo.sh: {error.filename} is missing or not a file"
        ) from error


def _read_experiment(folder: Path) -> Experiment:
    return Experiment(
        translation=_of_each_kind(read_translation_result, folder / nested_translation.CORPUS),
        dyck=read_language_models(folder / DYCK),
    )


def read_translation_result(task: Path, kind: str) -> TranslationResult:
    """The result of one kind of model; ``task`` is the folder of the corpus and its models."""
    translations = read_translations(task / kind / TRANSLATIONS)
    depths = read_numbers(task / "corpus" / TEXT / "test.depth", int)
    require_as_many(task / kind / TRANSLATIONS, len(translations), len(depths))
    data = f"{task.name}/test"
    return TranslationResult(
        training=read_training_log(task / kind / TRAINING_LOG),
        bleu=bleu(translations, data),
        exact_match=exact_match(translations, data),
        exact_match_by_depth=exact_match_by(translations, depths),
    )


def read_language_models(task: Path) -> dict[str, LanguageModelResult]:
    """The results of all kinds of models.

    Raises:
        UserError: a file is not what it should be, or the results are not on the same lengths of strings.
    """
    found = _of_each_kind(read_language_model_result, task)
    results = [Labelled(kind, str(task / kind / STRING_SCORES), result.scores) for kind, result in found.items()]
    compare(results, mean=False)
    return found


def read_language_model_result(task: Path, kind: str) -> LanguageModelResult:
    """The result of one kind of model; ``task`` is the folder of the corpus and its models."""
    return LanguageModelResult(
        training=read_training_log(task / kind / TRAINING_LOG),
        scores=read_cfl_result(task / kind / STRING_SCORES),
    )


def require_as_many(path: Path, number: int, expected: int) -> None:
    """Raise UserError unless what was read from ``path`` has as many sentences as the corpus."""
    if number != expected:
        raise UserError(f"{path}: {number} sentences, expected {expected}, as many as in the corpus")


def read_run(folder: Path, length: int) -> InspectedAutomaton:
    """What the stack of the trained ``nd`` language model does while it reads a test string.

    It is the first string with ``length`` brackets, or with as many as the longest has if they are fewer.
    """
    from fairseq_stack.hub.interface import load  # loads torch and fairseq
    from fairseq_stack.inspection.sentences import sentences_of_split
    from fairseq_stack.inspection.stacks import InspectedAutomaton, inspect_stacks

    task = folder / DYCK
    checkpoint, data = task / "nd" / CHECKPOINT, task / "corpus" / DATA_BIN
    lengths = [len(line.split()) for line in read_lines(task / "corpus" / TEXT / f"test.{SUFFIX}")]
    line = lengths.index(min(length, max(lengths))) + 1
    hub = load(checkpoint, data)
    (sentence,) = sentences_of_split(hub, data, "test", line, 1)
    for stack in inspect_stacks(hub, sentence):
        if isinstance(stack, InspectedAutomaton) and stack.runs:
            return stack
    raise UserError(f"{checkpoint}: expected a model with a nondeterministic stack that has a run")


def model_names() -> dict[str, str]:
    """The models that a report can compare, in its order, and what each of them is called in a picture."""
    from fairseq_stack.kinds import kinds  # loads torch

    stacks = {kind.name: kind.title.removesuffix(" stack attention") for kind in kinds() if kind.op is not None}
    return {name: f"{name}: {what}" for name, what in {NO_STACK: "no stack", **stacks}.items()}


def _of_each_kind(read: Callable[[Path, str], Result], task: Path) -> dict[str, Result]:
    found = [name for name in model_names() if (task / name).is_dir()]
    if not found:
        raise UserError(
            f"{task.parent} does not hold the results of scripts/demo.sh: {task} has none of the folders "
            f"{', '.join(model_names())}"
        )
    return {name: read(task, name) for name in found}
