"""What the stack of a language model does at a relative clause on the subject, when the sentence becomes a question.

python scripts/experiments/stack_at_clause.py CHECKPOINT PAIRS.csv OUT.json OUT.png [LIMIT]

PAIRS.csv is what fairseq-stack evaluate-transformations --csv wrote for the model: the first LIMIT of its pairs
(default: all) that ask for a question and whose subject has a relative clause. A stack's reading after a symbol is a
weighted sum of the vectors that were pushed; each measure is a weight in one such reading, or the probability that a
step pushes. The control is the same model with the linear layers of its stack drawn again. The table has the mean of
each measure, and how well it tells right pairs from wrong ones: the probability that it is greater for a right pair
than for a wrong one of the same structure and places of words (0.5 if it says nothing). A pair is right if the first
word is, or the whole sentence. Intervals are bootstrapped over pairs.
"""

from __future__ import annotations

import csv
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from fairseq_stack.evaluation.intervals import Intervals
from fairseq_stack.evaluation.markdown import MISSING, table
from fairseq_stack.evaluation.results import Estimate
from fairseq_stack.hub.interface import Hub, load
from fairseq_stack.inspection.stacks import inspect_stacks
from fairseq_stack.modules import StackAttention
from fairseq_stack.plots.panels import draw_weights
from fairseq_stack.plots.style import figure
from fairseq_stack_preprocess.progress import progress
from fairseq_stack_preprocess.transformations.class_weights import PREPOSITIONAL, SIMPLE
from fairseq_stack_preprocess.transformations.sentences import AUXILIARIES, DETERMINERS, NOUNS, PREPOSITIONS, PRONOUNS
from fairseq_stack_preprocess.transformations.tasks import QUESTION_FORMATION

CLASSES = {
    "the": DETERMINERS,
    "noun": NOUNS[0] + NOUNS[1],
    "aux": AUXILIARIES[0] + AUXILIARIES[1],
    "by": PREPOSITIONS,
    "that": PRONOUNS,
    ".": (".",),
    "question": QUESTION_FORMATION.markers[1:],
}
WORD, SENTENCE = "deciding_word", "full_sentence"  # columns of PAIRS.csv
CLASS_OF = {word: name for name, words in CLASSES.items() for word in words}
INTERVALS = Intervals(1000, 0.95, 0)
COMPARED = ("greater if the first word is right", "greater if the sentence is right")
KEYS = ("mean", *COMPARED)


@dataclass(frozen=True)
class Clause:
    """A sentence that becomes a question; places are those of words, from 0: a determiner, a noun, the clause.

    Attributes:
        words: the sentence and the marker.
        structure: the types of subject and verb phrase.
        right: whether the model finds the first word of the question, and whether it writes the whole question.
    """

    words: tuple[str, ...]
    structure: str
    right: tuple[bool, bool]

    @property
    def auxiliaries(self) -> tuple[int, int]:
        """The places of the clause's auxiliary and of the main one."""
        in_clause, main = islice((i for i, word in enumerate(self.words) if CLASS_OF.get(word) == "aux"), 2)
        return in_clause, main

    @property
    def matched(self) -> tuple[str, int, int, int]:
        """What pairs that are compared with each other share."""
        return self.structure, *self.auxiliaries, len(self.words)

    def measures(self, weights: NDArray[np.float64], pushes: NDArray[np.float64]) -> dict[str, float]:
        """The measures of a stack: weights, (words, words), a row for each reading, and pushes, (words,)."""
        in_clause, main = self.auxiliaries
        subject, clause, question = slice(0, 2), slice(2, main), len(self.words) - 1
        return {
            "push at the subject's noun": pushes[1],
            "push at the relative pronoun": pushes[2],
            "subject in the reading after the clause": weights[main - 1, subject].sum(),
            "clause in the reading after the clause": weights[main - 1, clause].sum(),
            "subject in the reading at the question": weights[question, subject].sum(),
            "clause in the reading at the question": weights[question, clause].sum(),
            "clause's auxiliary in the reading at the question": weights[question, in_clause],
            "main auxiliary in the reading at the question": weights[question, main],
        }


def read_clauses(path: Path, limit: int | None) -> list[Clause]:
    """The pairs of ``evaluate-transformations --csv`` that ask for a question, with a clause at the subject."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = (row for row in csv.DictReader(file) if row[WORD])
        clauses = (
            Clause(tuple(row["source"].split()), row["structure"], (row[WORD] == "1", row[SENTENCE] == "1"))
            for row in rows
            if row["structure"].split()[0] not in (SIMPLE, PREPOSITIONAL)
        )
        return list(islice(clauses, limit))


@dataclass(frozen=True, eq=False)
class Stack:
    """What a stack does in all sentences: the measures, (sentences,) each, and mean weights for the picture."""

    measures: Mapping[str, NDArray[np.float64]]
    weights: NDArray[np.float64]


def watch(hub: Hub, clauses: Sequence[Clause], drawn: tuple[str, int, int, int], label: str) -> dict[str, Stack]:
    """What each stack of a model does, by layer; the picture has the mean over the sentences that match ``drawn``."""
    measures: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    pictures = defaultdict(list)
    for clause in progress(clauses, label=label, total=len(clauses), unit="sentence"):
        for stack in inspect_stacks(hub, " ".join(clause.words), num_runs=0):
            words = len(clause.words)
            weights = stack.weights.numpy()[-words:, -words:]  # the beginning and the bottom are before the words
            pushes = stack.actions["push"].numpy()[-words:]
            for name, value in clause.measures(weights, pushes).items():
                measures[stack.layer][name].append(float(value))
            if clause.matched == drawn:
                pictures[stack.layer].append(weights)
    return {
        layer: Stack({name: np.array(values) for name, values in of_layer.items()}, np.mean(pictures[layer], axis=0))
        for layer, of_layer in measures.items()
    }


def draw_again(hub: Hub) -> None:
    """Draw the linear layers of all stacks of a model, as before training."""
    torch.manual_seed(0)
    for module in hub.models.modules():
        if isinstance(module, StackAttention):
            module.initialize_as_in_paper()


def probability_greater(
    values: NDArray[np.float64], right: NDArray[np.bool_], groups: NDArray[np.int64]
) -> Estimate | None:
    """How probable it is that a value is greater for a right pair than for a wrong one of the same group.

    Groups count by their number of such comparisons; None if there are none.
    """
    members = [np.flatnonzero(groups == group) for group in np.unique(groups)]
    members = [group for group in members if 0 < right[group].sum() < len(group)]
    if not members:
        return None
    generator = np.random.default_rng(INTERVALS.seed)
    resampled = [
        _greater(values, right, [generator.choice(group, len(group)) for group in members])
        for _ in range(INTERVALS.number)
    ]
    low, high = np.nanquantile(resampled, [(1 - INTERVALS.confidence) / 2, (1 + INTERVALS.confidence) / 2])
    return Estimate(_greater(values, right, members), float(low), float(high))


def _greater(values: NDArray[np.float64], right: NDArray[np.bool_], members: Sequence[NDArray[np.int64]]) -> float:
    greater = comparisons = 0.0
    for group in members:
        of_wrong = np.sort(values[group[~right[group]]])
        of_right = values[group[right[group]]]
        below, up_to = (np.searchsorted(of_wrong, of_right, side=side).sum() for side in ("left", "right"))
        greater += (below + up_to) / 2
        comparisons += len(of_wrong) * len(of_right)
    return greater / comparisons if comparisons else float("nan")


def estimates(stack: Stack, clauses: Sequence[Clause]) -> dict[str, dict[str, Estimate]]:
    """For each measure its mean, and how well it tells right pairs from wrong ones, if some are compared."""
    kinds = sorted({clause.matched for clause in clauses})
    groups = np.array([kinds.index(clause.matched) for clause in clauses])
    result: dict[str, dict[str, Estimate]] = {}
    for stream, (name, values) in enumerate(stack.measures.items()):
        result[name] = {"mean": INTERVALS.of_rate(list(values), [1] * len(values), stream)}
        for number, label in enumerate(COMPARED):
            greater = probability_greater(values, np.array([clause.right[number] for clause in clauses]), groups)
            if greater is not None:
                result[name][label] = greater
    return result


def main(checkpoint: str, pairs: str, numbers: str, picture: str, limit: str | None = None) -> None:
    """Write the numbers and the picture, and print the table."""
    clauses = read_clauses(Path(pairs), None if limit is None else int(limit))
    (drawn, _), *_ = Counter(clause.matched for clause in clauses).most_common()
    hub = load(checkpoint)
    stacks = {"trained": watch(hub, clauses, drawn, "trained")}
    draw_again(hub)
    stacks["untrained"] = watch(hub, clauses, drawn, "untrained")
    estimated = {
        model: {layer: estimates(stack, clauses) for layer, stack in of_model.items()}
        for model, of_model in stacks.items()
    }
    rows = [
        [layer, model, name, *(" (".join(means[key].cells(3)) + ")" if key in means else MISSING for key in KEYS)]
        for model, of_model in estimated.items()
        for layer, measures in of_model.items()
        for name, means in measures.items()
    ]
    right = [sum(of_pairs) for of_pairs in zip(*(clause.right for clause in clauses), strict=True)]
    summary = {"pairs": len(clauses), "right": dict(zip(COMPARED, right, strict=True)), "stacks": estimated}
    Path(numbers).write_text(json.dumps(summary, indent=2, default=asdict) + "\n", encoding="utf-8")
    draw(Path(picture), next(clause for clause in clauses if clause.matched == drawn), stacks)
    print(f"{len(clauses):,} pairs; the first word is right in {right[0]:,}, the sentence in {right[1]:,}\n")
    print(table(("layer", "stack", "measure", *KEYS), rows))


def draw(path: Path, example: Clause, stacks: Mapping[str, Mapping[str, Stack]]) -> None:
    """The mean weights of all sentences with the words of the example in the same places."""
    names = [CLASS_OF.get(word, "verb") for word in example.words]
    in_clause, main = example.auxiliaries
    names[1], names[in_clause], names[main] = "subject", "clause's aux", "main aux"
    layers = list(stacks["trained"])
    with figure(path, len(layers), len(stacks), (11, 4.6 * len(layers))) as panels:
        for row, layer in zip(panels, layers, strict=True):
            for axes, (model, of_model) in zip(row, stacks.items(), strict=True):
                draw_weights(axes, of_model[layer].weights.tolist(), rows=names, columns=names)
                axes.set_title(f"{layer}, {model}", loc="left", fontsize=9)
                axes.set_xlabel("vector pushed at")
                axes.set_ylabel("reading after")


if __name__ == "__main__":
    main(*sys.argv[1:])
