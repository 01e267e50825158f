"""A trained language model behind the interface that lm-evaluation-harness expects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import torch
from lm_eval.api.model import LM
from lm_eval.api.registry import register_model
from lm_eval.models.utils import normalize_gen_kwargs
from torch import Tensor

from fairseq_stack.errors import UserError
from fairseq_stack.hub.interface import load
from fairseq_stack.hub.language_model import Cutter
from fairseq_stack.hub.paths import import_packages
from fairseq_stack.hub.strings import predictions_of_tokens


@register_model("fairseq-stack")
class FairseqStackLM(LM):
    """A checkpoint as a model of lm-eval.

    Each string begins where a sentence begins, with ``</s>``, which is not scored. Context and continuation are
    tokenised together.

    Args:
        checkpoint: a checkpoint, a folder of one, or an ensemble, as in :func:`fairseq_stack.hub.interface.load`.
        data: a corpus of fairseq-stack prepare, or the folder with the dictionaries (default: the folder of the
            checkpoint).
        user_dir: the folder of the user's own package that the model needs (default: the one used in training).
        add_end: whether the end of the sentence is scored after a continuation, as ``fairseq-stack evaluate-blimp``
            does.
        max_tokens: the maximum number of tokens at a time, with padding (a single string may have more).
        batch_size: the maximum number of strings at a time; ``"auto"`` or None for ``max_batch_size``.
        max_batch_size: the same; None for any number.
        device: where the model computes; by default on a GPU, and always on the CPU where there is none.

    Raises:
        UserError: the checkpoint cannot be loaded, or holds no language model that reads from left to right.
    """

    def __init__(
        self,
        checkpoint: str,
        data: str | None = None,
        user_dir: str | None = None,
        *,
        add_end: bool = False,
        max_tokens: int = 2000,
        batch_size: int | str | None = None,
        max_batch_size: int | None = None,
        device: str | None = None,
    ) -> None:
        super().__init__()
        is_free = batch_size is None or str(batch_size).startswith("auto")
        self._sizes = {"batch_size": max_batch_size if is_free else int(str(batch_size)), "max_tokens": max_tokens}
        self._add_end = add_end
        import_packages(None if user_dir is None else Path(user_dir), Path(checkpoint))
        self._hub = load(checkpoint, data, **self._sizes).as_language_model()
        if self._hub.parses_sentences:
            raise UserError(f"{checkpoint} holds a model that parses: evaluate it with fairseq-stack evaluate-blimp")
        self._device = torch.device(device or "cuda") if torch.cuda.is_available() else torch.device("cpu")
        self._hub.to(self._device)
        self._cutter = Cutter(self._hub)

    def loglikelihood(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        """For each (context, continuation), log p(continuation | context), and whether each token is the best one.

        Raises:
            UserError: a string is longer than the model accepts, or has a word that it cannot predict; or the context
                ends within a token.
        """
        answers = self._scores([request.args for request in requests])
        self._keep("loglikelihood", requests, answers)
        return answers

    def loglikelihood_rolling(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[float]:
        """For each (string,), log p(string).

        Raises:
            UserError: as :meth:`loglikelihood`: no string is cut into windows, since no string that the model was
                trained on begins in the middle.
        """
        answers = [score for score, _ in self._scores([("", request.args[0]) for request in requests])]
        self._keep("loglikelihood_rolling", requests, answers)
        return answers

    def generate_until(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[str]:
        """For each (context, options), the greedy continuation up to the first of the strings ``until``.

        It ends where the model ends the sentence, after ``max_gen_toks`` tokens, or when the model accepts no more.

        Raises:
            UserError: the options ask for samples or beams; or a context is as in :meth:`loglikelihood`.
        """
        options = [_checked(normalize_gen_kwargs(request.args[1])) for request in requests]
        sizes = sorted((option["max_gen_toks"], place) for place, option in enumerate(options))
        texts: dict[int, str] = {}
        for size, group in groupby(sizes, key=itemgetter(0)):
            places = [place for _, place in group]
            contexts = [self._encode(requests[place].args[0], place) for place in places]
            texts |= zip(places, self._continuations(contexts, size), strict=True)
        answers = [_until(texts[place], option["until"]) for place, option in enumerate(options)]
        self._keep("generate_until", requests, answers)
        return answers

    def _scores(self, strings: Sequence[tuple[str, str]]) -> list[tuple[float, bool]]:
        tokens, starts = [], []
        for place, (context, continuation) in enumerate(strings):
            tokens.append(self._encode(context + continuation, place))
            starts.append(self._length_of_context(context, tokens[-1], place))
        scores: dict[int, tuple[float, bool]] = {}
        for place, prediction in predictions_of_tokens(self._hub, tokens, **self._sizes):
            scored = slice(starts[place], None if self._add_end else -1)
            log_probability = float(prediction.log_probabilities[scored].sum())
            scores[place] = log_probability, bool(prediction.is_best[scored].all())
        return [scores[place] for place in range(len(strings))]

    def _length_of_context(self, context: str, tokens: Tensor, place: int) -> int:
        begin = self._encode(context, place)[:-1]
        if not tokens[: len(begin)].equal(begin):
            raise UserError(
                f"request {place + 1}: the context ends within a token of the whole string; expected a continuation "
                "that begins with a space"
            )
        return len(begin)

    def _continuations(self, contexts: Sequence[Tensor], size: int) -> Iterable[str]:
        # fairseq's limit counts the context and the symbol before it.
        hypotheses = self._hub.generate(list(contexts), beam=1, max_len_a=1, max_len_b=size - 1)
        for context, (best, *_) in zip(contexts, hypotheses, strict=True):
            yield self._hub.decode(best["tokens"][len(context) - 1 :])

    def _encode(self, text: str, place: int) -> Tensor:
        """The tokens of a text and ``</s>``."""
        _, tokens = self._cutter.encode(text, place + 1)
        return tokens

    def _keep(self, method: str, requests: Sequence[Any], answers: Sequence[Any]) -> None:
        """Keep the answers where lm-eval caches them."""
        for request, answer in zip(requests, answers, strict=True):
            self.cache_hook.add_partial(method, request.args, answer)


def _checked(options: dict[str, Any]) -> dict[str, Any]:
    if options["do_sample"] or options.get("num_beams", 1) != 1:
        raise UserError("generation is greedy: expected do_sample false and no beams (num_beams)")
    if options["max_gen_toks"] < 1:
        raise UserError(f"max_gen_toks: expected at least 1, got {options['max_gen_toks']}")
    return options


def _until(text: str, ends: Iterable[str]) -> str:
    for end in filter(None, ends):
        text = text.partition(end)[0]
    return text
