"""What nondeterministic stack attention looks at: the weights W of the pushed vectors in each reading."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from fairseq_stack.modules import NondeterministicStackAttention
from fairseq_stack.ops import nondeterministic_stack

from .errors import AnalysisError


@contextmanager
def recorded_stack_weights(model: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Record the weights of every nondeterministic stack attention of ``model`` within the block.

    Yields:
        A mapping that each call of the model fills: from the sublayer's name in ``model`` to weights (B, n, n + 1),
        summed over states and stack symbols. ``weights[b, t - 1, i]`` is the share of the reading after t inputs that
        comes from the vector pushed at input i (0: the bottom of the stack); over i they sum to 1.
    """
    weights: dict[str, Tensor] = {}

    def record(name: str) -> Any:
        def hook(attention: NondeterministicStackAttention, inputs: tuple[Tensor, ...]) -> None:
            weights[name] = _stack_weights(attention, *inputs)

        return hook

    handles = [
        module.register_forward_pre_hook(record(name))
        for name, module in model.named_modules()
        if isinstance(module, NondeterministicStackAttention)
    ]
    try:
        yield weights
    finally:
        for handle in handles:
            handle.remove()


@torch.no_grad()
def _stack_weights(attention: NondeterministicStackAttention, inputs: Tensor) -> Tensor:
    actions = attention.actions(inputs).double()
    values = attention.pushed_values(inputs).double()
    push, replace, pop = attention.transitions(actions)
    bottom = attention.bottom().double()
    _, weights = nondeterministic_stack(push, replace, pop, values, bottom, return_weights=True)
    return weights.sum((-2, -1))


@torch.no_grad()
def stack_weights_of_string(checkpoint: Path, data: Path, string: str) -> Tensor:
    """The weights of the first nondeterministic layer of a language model when it reads ``string``.

    Args:
        checkpoint: a checkpoint of ``stack_transformer_lm``.
        data: the folder with the model's ``dict.txt``.
        string: blank-separated words.

    Returns:
        Weights (n + 1, n + 2) of the readings after 0..n words. Input 1 is the beginning of the string, so column
        i + 1 belongs to the vector pushed at the i-th word, column 1 to the beginning and column 0 to the bottom.

    Raises:
        AnalysisError: the model has no nondeterministic layer.
    """
    from fairseq import checkpoint_utils

    import fairseq_stack.models  # noqa: F401  (registers the architecture)

    (model,), _, task = checkpoint_utils.load_model_ensemble_and_task([str(checkpoint)], {"data": str(data)})
    words = task.source_dictionary.encode_line(string, append_eos=False, add_if_not_exist=False).long()
    tokens = torch.cat([words.new_tensor([task.source_dictionary.eos()]), words])
    model.eval()
    with recorded_stack_weights(model) as weights:
        model(tokens.unsqueeze(0))
    if not weights:
        raise AnalysisError(f"{checkpoint}: the model has no nondeterministic stack attention")
    return next(iter(weights.values()))[0]
