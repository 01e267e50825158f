"""``fairseq.sequence_scorer``: no symbol is left out of a perplexity."""

from __future__ import annotations

from typing import Any

from fairseq_stack.compat.replacing import replaces
from fairseq_stack.compat.sequence_generator import is_left_padded
from fairseq_stack.errors import UserError


@replaces("fairseq.sequence_scorer:SequenceScorer.__init__")
def init(original: Any, self: Any, tgt_dict: Any, softmax_batch: int | None = None, *args: Any, **kwargs: Any) -> None:
    """Store the dictionary in the scorer of ``fairseq-eval-lm``, the only command that passes ``softmax_batch``.

    Unnecessary with a fairseq that reports an infinite perplexity.
    """
    original(self, tgt_dict, softmax_batch, *args, **kwargs)
    self.dictionary_of_eval_lm = None if softmax_batch is None else tgt_dict


@replaces("fairseq.sequence_scorer:SequenceScorer.generate")
def generate(original: Any, self: Any, models: Any, sample: dict[str, Any], **kwargs: Any) -> Any:
    """Reject targets that are padded on the left, of which fairseq scores the padding, and data with a symbol of
    probability 0, which ``fairseq-eval-lm`` leaves out of the perplexity.

    ``fairseq-generate --score-reference`` prints the score ``-inf`` of such data, which is right.

    Unnecessary with a fairseq that skips the padding, and reports an infinite perplexity.
    """
    dictionary = getattr(self, "dictionary_of_eval_lm", None)
    if dictionary is None and is_left_padded(sample.get("target"), self.pad):
        raise UserError("--score-reference needs targets that are padded on the right: leave out --left-pad-target")
    hypotheses = original(self, models, sample, **kwargs)
    if dictionary is not None:
        for (hypothesis,) in hypotheses:
            impossible = hypothesis["tokens"][hypothesis["positional_scores"].isinf()]
            if len(impossible) > 0:
                raise UserError(
                    f"the model gives probability zero to {dictionary[int(impossible[0])]!r}, which is in the data, so "
                    "the perplexity is infinite: expected data whose symbols all have a probability (if it is <unk>, "
                    "train with --compact-vocab-unk)"
                )
    return hypotheses
