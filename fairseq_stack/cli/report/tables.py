"""The results of an experiment as Markdown and as JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from fairseq_stack.evaluation.markdown import MISSING, table
from fairseq_stack.evaluation.scores import Score

from .experiment import Experiment, LanguageModelResult, TranslationResult

TRANSLATION_COLUMNS = ("model", "parameters", "updates", "training", "valid ppl", "BLEU", "exact match")
DYCK_COLUMNS = ("model", "parameters", "updates", "training")

MOST_LENGTHS = 6
"""The table has at most so many of the lengths of strings."""


def as_markdown(experiment: Experiment) -> str:
    """A table for each corpus, also readable as plain text."""
    translation = [_translation_row(kind, result) for kind, result in experiment.translation.items()]
    a_translation = next(iter(experiment.translation.values()))
    scores = next(iter(experiment.dyck.values())).scores
    lengths = _shown([found.length for found in scores.by_length])
    dyck = [_dyck_row(kind, result, lengths) for kind, result in experiment.dyck.items()]
    low, high = scores.train_lengths
    return "\n\n".join(
        [
            "Nested translation, German-like to English-like (test set):",
            table(TRANSLATION_COLUMNS, translation),
            _signatures(a_translation.bleu, a_translation.exact_match),
            f"Language modelling of Dyck strings (test set): nats a token above the lower bound by length, after "
            f"training on lengths {low} to {high}, and the share of the model's own samples that are Dyck strings:",
            table((*DYCK_COLUMNS, *map(str, lengths), "samples"), dyck),
            f"cross-entropy difference|{scores.signature}",
        ]
    )


def _shown(lengths: Sequence[int]) -> Sequence[int]:
    """Lengths at equal distances, the first one among them."""
    return lengths[:: max(1, -(-len(lengths) // MOST_LENGTHS))]


def _signatures(*scores: Score) -> str:
    """A line for each score, which is the same for all models."""
    return "\n".join(f"{score.name}|{score.signature}" for score in scores)


def as_json(experiment: Experiment) -> dict[str, Any]:
    """All results, with the course of training, for ``json.dump``."""
    return {
        "translation": {kind: _translation_json(result) for kind, result in experiment.translation.items()},
        "dyck": {kind: asdict(result) for kind, result in experiment.dyck.items()},
    }


def _translation_json(result: TranslationResult) -> dict[str, Any]:
    return {
        "training": asdict(result.training),
        "bleu": result.bleu.value,
        "signature": result.bleu.method,
        "exact_match": result.exact_match.value,
        "exact_match_by_depth": result.exact_match_by_depth,
    }


def _translation_row(kind: str, result: TranslationResult) -> list[str]:
    return [
        *_training_cells(kind, result),
        f"{math.exp(result.training.best.loss):.3f}",
        f"{result.bleu.value:.1f}",
        f"{100 * result.exact_match.value:.1f} %",
    ]


def _dyck_row(kind: str, result: LanguageModelResult, lengths: Sequence[int]) -> list[str]:
    differences = {found.length: found.difference.value for found in result.scores.by_length}
    samples = result.scores.samples
    return [
        *_training_cells(kind, result),
        *(f"{differences[length]:.3f}" for length in lengths),
        MISSING if samples is None else f"{100 * samples.share:.0f} %",
    ]


def _training_cells(kind: str, result: TranslationResult | LanguageModelResult) -> list[str]:
    training = result.training
    return [kind, f"{training.parameters:,}", f"{training.updates:,}", f"{training.seconds} s"]
