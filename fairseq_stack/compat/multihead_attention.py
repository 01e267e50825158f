"""``fairseq.modules.multihead_attention``: dropout of attention weights does not take longer than attention."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from fairseq_stack.compat.replacing import replaces
from fairseq_stack.ops import draws_factors

_MASK = 7  # the place of attn_mask among the arguments


@replaces("fairseq.modules.multihead_attention:MultiheadAttention.__call__")
def call(original: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    """On a CPU, train with fairseq's own attention, and not PyTorch's, if weights are dropped.

    PyTorch's attention draws the random numbers of dropout itself, one at a time. fairseq's computes the same with
    its own module for dropout; it is what fairseq uses if heads may have been pruned (``skip_embed_dim_check``). But
    it adds the mask to the scores: PyTorch's attention stays for boolean masks, and for masks with an axis of heads.

    Unnecessary with a PyTorch that draws several random numbers at a time on CPUs.
    """
    pruned = self.skip_embed_dim_check
    mask = args[_MASK] if len(args) > _MASK else kwargs.get("attn_mask")
    self.skip_embed_dim_check = pruned or (_draws(self) and _can_be_added(mask))
    try:
        return original(self, *args, **kwargs)
    finally:
        self.skip_embed_dim_check = pruned


def _draws(attention: Any) -> bool:
    drops = attention.training and attention.dropout_module.p > 0 and not getattr(attention, "use_xformers", False)
    return drops and draws_factors(attention.out_proj.weight)


def _can_be_added(mask: Tensor | None) -> bool:
    return mask is None or (mask.is_floating_point() and mask.dim() == 2)
