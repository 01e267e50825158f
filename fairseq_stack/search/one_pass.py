"""The output of models that need no search, because all positions are independent given the input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from fairseq.data import Dictionary
from torch import Tensor, nn


class OnePassGenerator:
    """Writes the most probable word at each scored position, and blanks elsewhere, as a generator of fairseq.

    A model is not trained to write anything where nothing is scored.

    Args:
        dictionary: the dictionary of the output, of whose words the models give the probabilities.
        blank: the number of the blank; None if there is none: the most probable word then stands at all positions.
    """

    symbols_to_strip_from_output: frozenset[int] = frozenset()

    def __init__(self, dictionary: Dictionary, blank: int | None) -> None:
        self.first_word: int = dictionary.nspecial
        self.blank = blank

    @torch.no_grad()
    def generate(self, models: Sequence[nn.Module], sample: dict[str, Any]) -> list[list[dict[str, Any]]]:
        """The output for each input of a batch.

        Args:
            models: the model, or an ensemble, whose probabilities are averaged.
            sample: ``net_input`` has the inputs (B, n) and their lengths; ``is_scored`` (B, n), where outputs count.

        Returns:
            For each input a list with one hypothesis: ``tokens``, as many as the input has, their log-probabilities
            ``positional_scores``, and the mean of these where outputs count (or of all), ``score``.
        """
        log_probs = self._log_probs(models, sample)
        words, is_scored = log_probs.argmax(2), sample["is_scored"]
        if self.blank is not None:
            words = words.where(is_scored, self.blank - self.first_word)
        scores = log_probs.gather(2, words.unsqueeze(2)).squeeze(2)
        outputs = []
        for row, length in enumerate(sample["net_input"]["src_lengths"].tolist()):
            of_words, counts = scores[row, :length], is_scored[row, :length]
            hypothesis = {
                "tokens": words[row, :length] + self.first_word,
                "score": (of_words[counts] if counts.any() else of_words).mean(),
                "positional_scores": of_words,
                "attention": None,
                "alignment": None,
            }
            outputs.append([hypothesis])
        return outputs

    def _log_probs(self, models: Sequence[Any], sample: dict[str, Any]) -> Tensor:
        for model in models:
            model.eval()
        together = torch.stack(
            [
                model.get_normalized_probs(model(**sample["net_input"]), log_probs=True, sample=sample)
                for model in models
            ]
        )
        return together[0] if len(together) == 1 else together.logsumexp(0) - torch.tensor(len(together)).log()


class AccuracyScorer:
    """The accuracy of scored words, as a scorer of ``fairseq-generate``.

    Args:
        is_scored: whether each word of the dictionary is scored, (V,).
    """

    def __init__(self, is_scored: Tensor) -> None:
        self.is_scored = is_scored
        self.correct = self.scored = 0

    def add(self, target: Tensor, output: Tensor) -> None:
        """Count the words of an output that are right, where those of the target, as many, are scored."""
        counts = self.is_scored[target.long()]
        self.scored += int(counts.sum())
        self.correct += int((counts & target.eq(output)).sum())

    def result_string(self) -> str:
        """The accuracy, for the last line of the command."""
        if not self.scored:
            return "no scored symbol"
        return f"accuracy {self.correct / self.scored:.2%}, {self.correct:,} of {self.scored:,} scored symbols"
