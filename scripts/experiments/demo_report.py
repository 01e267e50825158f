"""The demo's report: its table, its pictures, and all its results as JSON.

python scripts/experiments/demo_report.py FOLDER

FOLDER holds ``nested-translation/`` and ``dyck/``. In each there are ``corpus/``, which ``fairseq-stack prepare``
wrote, and for each kind of model a folder with ``train.log`` (``fairseq-train --log-file``), ``checkpoint_best.pt``
and ``generate-test.txt`` (translation) or ``test.json`` (language modelling: ``fairseq-stack evaluate-cfl --json``).
The report is table.md, results.json, demo.png and demo-stack.png in FOLDER; the table is printed.
"""

from __future__ import annotations

import json
import logging
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from demo_picture import draw_results  # type: ignore[import-not-found]  # the file next to this one
from sacrebleu.metrics import BLEU

from fairseq_stack.errors import UserError
from fairseq_stack.evaluation.cfl_comparison import Labelled, compare
from fairseq_stack.evaluation.cfl_result import CFLResult
from fairseq_stack.evaluation.markdown import MISSING, table
from fairseq_stack.evaluation.scores import Score, method_of
from fairseq_stack.evaluation.training_log import TrainingLog, read_training_log
from fairseq_stack.files import read_lines, read_text, written_whole
from fairseq_stack.hub.interface import load
from fairseq_stack.inspection.pictures import draw_runs
from fairseq_stack.inspection.sentences import sentences_of_split
from fairseq_stack.inspection.stacks import inspect_stacks
from fairseq_stack.kinds import kinds
from fairseq_stack.modules import InspectedAutomaton

NO_STACK = "tf"
"""The name of the model without a stack; the others have the names of kinds of layers."""

TRANSLATION_COLUMNS = ("model", "parameters", "updates", "training", "valid ppl", "BLEU", "exact match")
DYCK_COLUMNS = ("model", "parameters", "updates", "training")

MOST_LENGTHS = 6
"""The table has at most so many of the lengths of strings."""

BRACKETS = 24
"""The length of the string in the picture of the stack."""

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
    """The results of the demo, by kind of model."""

    translation: Mapping[str, TranslationResult]
    dyck: Mapping[str, LanguageModelResult]


def read_experiment(folder: Path) -> Experiment:
    """Read the results in ``folder``.

    Raises:
        UserError: a file does not hold what it should, or language models are scored on different lengths of strings.
    """
    dyck = _of_each_kind(read_language_model, folder / "dyck")
    compare([Labelled(kind, f"dyck/{kind}", result.scores) for kind, result in dyck.items()], mean=False)
    return Experiment(_of_each_kind(read_translation_model, folder / "nested-translation"), dyck)


def _of_each_kind(read: Callable[[Path], Result], task: Path) -> dict[str, Result]:
    return {kind: read(task / kind) for kind in model_names() if (task / kind).is_dir()}


def model_names() -> dict[str, str]:
    """The models that a report can compare, in its order, and what each of them is called in a picture."""
    stacks = {kind.name: kind.title.removesuffix(" stack attention") for kind in kinds() if kind.op is not None}
    return {name: f"{name}: {what}" for name, what in {NO_STACK: "no stack", **stacks}.items()}


def read_translation_model(folder: Path) -> TranslationResult:
    """The result of a model, whose folder is next to the one of its corpus."""
    references, hypotheses = read_translations(folder / "generate-test.txt")
    depths = [int(line) for line in read_lines(folder.parent / "corpus/text/test.depth")]
    data = f"{folder.parent.name}/test"
    exact = [hypothesis == reference for hypothesis, reference in zip(hypotheses, references, strict=True)]
    by_depth: dict[int, list[bool]] = {}
    for depth, is_exact in zip(depths, exact, strict=True):
        by_depth.setdefault(depth, []).append(is_exact)
    return TranslationResult(
        training=read_training_log(folder / "train.log"),
        bleu=bleu(hypotheses, references, data),
        exact_match=Score("exact match", _share(exact), "", data, method_of(sentences=len(exact))),
        exact_match_by_depth={depth: _share(group) for depth, group in sorted(by_depth.items())},
    )


def read_translations(path: Path) -> tuple[list[str], list[str]]:
    """References and the best translations, in the order of the data, as ``fairseq-generate`` wrote them.

    Raises:
        UserError: a sentence has no reference or no translation.
    """
    columns: dict[str, dict[int, str]] = {"T": {}, "H": {}}
    for line in read_text(path).split("\n"):
        label, _, text = line.partition("\t")
        kind, _, number = label.partition("-")
        if kind in columns:
            columns[kind].setdefault(int(number), text.partition("\t")[2] if kind == "H" else text)
    references, hypotheses = ([of[number] for number in sorted(of)] for of in columns.values())
    if sorted(columns["T"]) != sorted(columns["H"]):
        raise UserError(f"{path}: {len(references)} references and {len(hypotheses)} translations")
    return references, hypotheses


def bleu(hypotheses: Sequence[str], references: Sequence[str], data: str) -> Score:
    """BLEU of tokenised words ("forced": no warning about tokenisation); ``data`` names the sentences."""
    metric = BLEU(tokenize="none", force=True)
    value = metric.corpus_score(hypotheses, [references]).score
    return Score("BLEU", value, "", data, str(metric.get_signature()))


def _share(values: Sequence[bool]) -> float:
    return sum(values) / len(values)


def read_language_model(folder: Path) -> LanguageModelResult:
    """The result of a model."""
    return LanguageModelResult(read_training_log(folder / "train.log"), CFLResult.read(folder / "test.json"))


def read_run(folder: Path) -> InspectedAutomaton:
    """What the stack of the trained ``nd`` language model does while it reads a test string.

    It is the first string with :data:`BRACKETS` brackets, or with as many as the longest has if they are fewer.
    """
    checkpoint, corpus = folder / "dyck/nd/checkpoint_best.pt", folder / "dyck/corpus"
    lengths = [len(line.split()) for line in read_lines(corpus / "text/test.txt")]
    line = lengths.index(min(BRACKETS, max(lengths))) + 1
    hub = load(checkpoint, corpus / "data-bin")
    (sentence,) = sentences_of_split(hub, corpus / "data-bin", "test", line, 1)
    for stack in inspect_stacks(hub, sentence):
        if isinstance(stack, InspectedAutomaton) and stack.runs:
            return stack
    raise UserError(f"{checkpoint}: expected a model with a nondeterministic stack that has a run")


def as_markdown(experiment: Experiment) -> str:
    """A table for each corpus, also readable as plain text."""
    a_translation = next(iter(experiment.translation.values()))
    scores = next(iter(experiment.dyck.values())).scores
    by_length = [score.length for score in scores.by_length]
    lengths = by_length[:: -(-len(by_length) // MOST_LENGTHS)]  # at equal distances, the first one among them
    low, high = scores.train_lengths
    return "\n\n".join(
        [
            "Nested translation, German-like to English-like (test set):",
            table(TRANSLATION_COLUMNS, [_translation_row(*item) for item in experiment.translation.items()]),
            "\n".join(f"{score.name}|{score.signature}" for score in (a_translation.bleu, a_translation.exact_match)),
            f"Language modelling of Dyck strings (test set): nats per symbol above the lower bound by length, after "
            f"training on lengths {low} to {high}, and the share of the model's own samples that are Dyck strings:",
            table(
                (*DYCK_COLUMNS, *map(str, lengths), "samples"),
                [_dyck_row(*item, lengths) for item in experiment.dyck.items()],
            ),
            f"cross-entropy difference|{scores.signature}",
        ]
    )


def _translation_row(kind: str, result: TranslationResult) -> list[str]:
    return [
        *_training_cells(kind, result.training),
        f"{math.exp(result.training.best.loss):.3f}",
        f"{result.bleu.value:.1f}",
        f"{100 * result.exact_match.value:.1f} %",
    ]


def _dyck_row(kind: str, result: LanguageModelResult, lengths: Sequence[int]) -> list[str]:
    differences = {score.length: score.difference.value for score in result.scores.by_length}
    samples = result.scores.samples
    return [
        *_training_cells(kind, result.training),
        *(f"{differences[length]:.3f}" for length in lengths),
        MISSING if samples is None else f"{100 * samples.share:.0f} %",
    ]


def _training_cells(kind: str, training: TrainingLog) -> list[str]:
    return [kind, f"{training.parameters:,}", f"{training.updates:,}", f"{training.seconds} s"]


def as_json(experiment: Experiment) -> dict[str, Any]:
    """All results, with the course of training, for ``json.dump``."""
    return {
        "translation": {
            kind: {
                "training": asdict(result.training),
                "bleu": result.bleu.value,
                "signature": result.bleu.method,
                "exact_match": result.exact_match.value,
                "exact_match_by_depth": result.exact_match_by_depth,
            }
            for kind, result in experiment.translation.items()
        },
        "dyck": {kind: asdict(result) for kind, result in experiment.dyck.items()},
    }


def main(folder: Path) -> None:
    """Write the report, and print its table."""
    logging.getLogger().setLevel(logging.WARNING)  # fairseq would log everything
    experiment = read_experiment(folder)
    markdown, names = as_markdown(experiment), model_names()
    for name, text in (("results.json", json.dumps(as_json(experiment), indent=2)), ("table.md", markdown)):
        with written_whole(folder / name) as file:
            file.write(f"{text}\n".encode())
    draw_results(
        {names[kind]: result.scores for kind, result in experiment.dyck.items()},
        {kind: result.exact_match_by_depth for kind, result in experiment.translation.items()},
        folder / "demo.png",
    )
    draw_runs([read_run(folder)], folder / "demo-stack.png", "The stack of nd on a Dyck string of the test set")
    print(markdown)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
