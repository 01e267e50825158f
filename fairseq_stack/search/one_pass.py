"""The output of models that need no search, because all positions are independent given the input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from fairseq.data import Dictionary
from torch import Tensor, nn


class OnePassGenerator:
    """Writes the most probable word at each position of the input, as a generator of fairseq.

    Args:
        dictionary: the dictionary of the output, of whose words the models give the probabilities.
    """

    symbols_to_strip_from_output: frozenset[int] = frozenset()

    def __init__(self, dictionary: Dictionary) -> None:
        self.first_word: int = dictionary.nspecial

    @torch.no_grad()
    def generate(
        self,
        models: Sequence[nn.Module],
        sample: dict[str, Any],
        prefix_tokens: Tensor | None = None,
        constraints: Tensor | None = None,
        bos_token: int | None = None,
    ) -> list[list[dict[str, Any]]]:
        """The output for each input of a batch.

        Args:
            models: the model, or an ensemble, whose probabilities are averaged.
            sample: ``net_input`` has the inputs (B, n) and their lengths.
            prefix_tokens: not used, like the arguments after it.
            constraints: not used.
            bos_token: not used.

        Returns:
            For each input a list with one hypothesis: ``tokens``, as many as the input has, their log-probabilities
            ``positional_scores``, and the mean of these, ``score``.
        """
        words, scores = self.best_words(models, sample)
        found = []
        for row, length in enumerate(sample["net_input"]["src_lengths"].tolist()):
            own = scores[row, :length]
            hypothesis = {
                "tokens": words[row, :length],
                "score": own.mean(),
                "positional_scores": own,
                "attention": None,
                "alignment": None,
            }
            found.append([hypothesis])
        return found

    def best_words(self, models: Sequence[Any], sample: dict[str, Any]) -> tuple[Tensor, Tensor]:
        """The most probable word at each position, (B, n), and its log-probability; of words that tie, the first."""
        for model in models:
            model.eval()
        together = torch.stack(
            [
                model.get_normalized_probs(model(**sample["net_input"]), log_probs=True, sample=sample)
                for model in models
            ]
        )
        log_probs = together[0] if len(together) == 1 else together.logsumexp(0) - torch.tensor(len(together)).log()
        words = log_probs.argmax(2)
        return words + self.first_word, log_probs.gather(2, words.unsqueeze(2)).squeeze(2)
