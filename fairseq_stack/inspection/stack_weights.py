"""What nondeterministic stack attention looks at: the weights W of the pushed vectors in each reading."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from fairseq_stack.errors import UserError
from fairseq_stack.modules import NondeterministicStackAttention
from fairseq_stack.ops import nondeterministic_stack


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
def decoder_stack_weights(checkpoint: Path, data: Path, source: str, target: str) -> Tensor:
    """The weights of the decoder's first nondeterministic layer while a translation model reads ``target``.

    Args:
        checkpoint: a checkpoint of ``stack_transformer``.
        data: the folder with the model's dictionaries.
        source: the sentence to translate, as blank-separated words.
        target: its translation.

    Returns:
        Weights (n + 1, n + 2) of the readings after 0..n words. The decoder's first input is the beginning of the
        sentence: column 0 belongs to the bottom of the stack, column 1 to the vector pushed at the beginning, and
        column i + 1 to the one pushed at the i-th word.

    Raises:
        UserError: the checkpoint cannot be loaded, or the decoder has no nondeterministic layer.
    """
    from fairseq import checkpoint_utils

    import fairseq_stack.models  # noqa: F401  (registers the architecture)

    try:
        (model,), _, task = checkpoint_utils.load_model_ensemble_and_task([str(checkpoint)], {"data": str(data)})
    except OSError:
        raise
    except Exception as error:  # torch and fairseq raise of every kind
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise UserError(f"{checkpoint} cannot be loaded with the data of {data}: {reason}") from error
    source_tokens = _encode(task.source_dictionary, source)
    target_tokens = _encode(task.target_dictionary, target)
    model.eval()
    with recorded_stack_weights(model) as weights:
        # What the decoder reads is shifted by one: it begins with </s>.
        model(source_tokens, torch.tensor([source_tokens.size(1)]), target_tokens.roll(1, dims=1))
    of_decoder = [layer for name, layer in weights.items() if name.startswith("decoder.")]
    if not of_decoder:
        raise UserError(f"{checkpoint}: the decoder has no nondeterministic stack attention")
    return of_decoder[0][0]


def _encode(dictionary: Any, sentence: str) -> Tensor:
    """The tokens of a sentence and its end, (1, n + 1)."""
    return dictionary.encode_line(sentence, add_if_not_exist=False).long().unsqueeze(0)
