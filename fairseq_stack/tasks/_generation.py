"""The choice between fairseq's beam search and the paper's, for every task that generates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairseq.tasks import FairseqTask
from torch import nn

from fairseq_stack.search import LENGTH_NORMALIZED, build_length_normalized_generator


class BeamSearchChoice(FairseqTask):
    """Mix-in, to be named before the fairseq task: ``build_generator`` heeds ``--beam-search``."""

    beam_search: str

    def build_generator(
        self,
        models: list[nn.Module],
        args: Any,
        seq_gen_cls: type | None = None,
        extra_gen_cls_kwargs: dict[str, Any] | None = None,
        prefix_allowed_tokens_fn: Callable[..., Any] | None = None,
    ) -> Any:
        """As in :class:`fairseq.tasks.FairseqTask`, and the paper's search if ``--beam-search`` says so.

        ``--score-reference`` gives fairseq's scorer whatever the search.

        Raises:
            ValueError: an option is set that the paper's search does not have.
        """
        if self.beam_search != LENGTH_NORMALIZED or getattr(args, "score_reference", False):
            return super().build_generator(models, args, seq_gen_cls, extra_gen_cls_kwargs, prefix_allowed_tokens_fn)
        extra = dict(extra_gen_cls_kwargs or {})
        if extra.get("lm_model") is None:
            extra.pop("lm_weight", None)  # fairseq-generate always passes one
        return build_length_normalized_generator(
            self,
            models,
            args,
            seq_gen_cls=seq_gen_cls,
            prefix_allowed_tokens_fn=prefix_allowed_tokens_fn,
            **extra,
        )
