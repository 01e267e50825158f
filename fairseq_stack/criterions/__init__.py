"""Losses that fairseq lacks. Importing this package registers them.

- ``torch_cross_entropy``: label smoothing as PyTorch defines it, over the symbols that can occur (Appendices F and G of
  DuSell & Chiang, 2024);
- ``pushdown_cross_entropy``: the loss of words and of what they attach to (Murty et al., 2023, Eq. 7);
- ``operation_cross_entropy``: the loss of words and of a nondeterministic stack's operations, by gold parses;
- ``stack_incentives``: the loss of words, with incentives to use a nondeterministic stack;
- ``classification_cross_entropy``: the loss of prompts and their labels, and how often labels are right (2023);
- ``transduction``: the mean over strings, summed over positions, and accuracy (Hao et al., 2018).

Each is one file: the options, then ``forward``, which computes the loss of a batch, then ``reduce_metrics``, which adds
up what workers have logged. This package imports ``modules``, ``label_scores`` and ``compat``.
"""

from fairseq_stack import compat

compat.apply()

from fairseq_stack.criterions import (  # noqa: E402, F401  (each registers its criterion)
    classification_cross_entropy,
    operation_cross_entropy,
    pushdown_cross_entropy,
    stack_incentives,
    torch_cross_entropy,
    transduction,
)
