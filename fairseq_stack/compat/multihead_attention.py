"""``fairseq.modules.multihead_attention``: dropout of attention weights does not take longer than attention."""

from __future__ import annotations

from typing import Any

from fairseq_stack.compat.replacing import replaces
from fairseq_stack.ops import draws_factors


@replaces("fairseq.modules.multihead_attention:MultiheadAttention.train")
def train(original: Any, self: Any, mode: bool = True) -> Any:
    """On a CPU, train with fairseq's own attention, and not PyTorch's, if weights are dropped.

    PyTorch's attention draws the random numbers of dropout itself, one at a time. fairseq's computes the same with
    its own module for dropout; it is what fairseq uses if heads may have been pruned (``skip_embed_dim_check``).

    Unnecessary with a PyTorch that draws several random numbers at a time on CPUs.
    """
    drops = self.dropout_module.p > 0 and draws_factors(self.out_proj.weight)
    self.skip_embed_dim_check = mode and drops and not getattr(self, "use_xformers", False)
    return original(self, mode)
