"""The results of an experiment as Markdown and as JSON."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from fairseq_stack.evaluation.markdown import table
from fairseq_stack.evaluation.scores import Score

from .experiment import Experiment, LanguageModelResult, TranslationResult

TRANSLATION_COLUMNS = ("model", "parameters", "updates", "training", "valid ppl", "BLEU", "exact match")
REVERSAL_COLUMNS = ("model", "parameters", "updates", "training", "test ppl", "nats a token", "above the bound")


def as_markdown(experiment: Experiment) -> str:
    """A table for each corpus, also readable as plain text."""
    translation = [_translation_row(kind, result) for kind, result in experiment.translation.items()]
    reversal = [_reversal_row(kind, result) for kind, result in experiment.reversal.items()]
    a_translation = next(iter(experiment.translation.values()))
    a_reversal = next(iter(experiment.reversal.values()))
    return "\n\n".join(
        [
            "Nested translation, German-like to English-like (test set):",
            table(TRANSLATION_COLUMNS, translation),
            _signatures(a_translation.bleu, a_translation.exact_match),
            "Language modelling of w w^R (test set; the bound is the entropy of the strings' distribution):",
            table(REVERSAL_COLUMNS, reversal),
            _signatures(a_reversal.cross_entropy, a_reversal.excess),
        ]
    )


def _signatures(*scores: Score) -> str:
    """A line for each score, which is the same for all models."""
    return "\n".join(f"{score.name}|{score.signature}" for score in scores)


def as_json(experiment: Experiment) -> dict[str, Any]:
    """All results, with the course of training, for ``json.dump``."""
    return {
        "translation": {kind: _translation_json(result) for kind, result in experiment.translation.items()},
        "reversal": {kind: _reversal_json(result) for kind, result in experiment.reversal.items()},
        "valid_bound": experiment.valid_bound,
    }


def _translation_json(result: TranslationResult) -> dict[str, Any]:
    return {
        "training": asdict(result.training),
        "bleu": result.bleu.value,
        "signature": result.bleu.method,
        "exact_match": result.exact_match.value,
        "exact_match_by_depth": result.exact_match_by_depth,
    }


def _reversal_json(result: LanguageModelResult) -> dict[str, Any]:
    return {
        "training": asdict(result.training),
        "cross_entropy": result.cross_entropy.value,
        "excess": result.excess.value,
        "excess_by_length": result.excess_by_length,
    }


def _translation_row(kind: str, result: TranslationResult) -> list[str]:
    return [
        *_training_cells(kind, result),
        f"{math.exp(result.training.best.loss):.3f}",
        f"{result.bleu.value:.1f}",
        f"{100 * result.exact_match.value:.1f} %",
    ]


def _reversal_row(kind: str, result: LanguageModelResult) -> list[str]:
    return [
        *_training_cells(kind, result),
        f"{math.exp(result.cross_entropy.value):.3f}",
        f"{result.cross_entropy.value:.3f}",
        f"{result.excess.value:.3f}",
    ]


def _training_cells(kind: str, result: TranslationResult | LanguageModelResult) -> list[str]:
    training = result.training
    return [kind, f"{training.parameters:,}", f"{training.updates:,}", f"{training.seconds} s"]
