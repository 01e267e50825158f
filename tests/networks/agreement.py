"""Models of fairseq with random parameters, and batches of sequences with padding on either side."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from tests.helpers import assert_normwise_close
from tests.models.building import DICTIONARY, random_words

PAD, EOS = DICTIONARY.pad(), DICTIONARY.eos()


def randomized(model: Any, scale: float = 1.0) -> Any:
    """The model in float64 and evaluation mode, with random parameters: also those that begin as 0 or 1."""
    model.double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=scale * (1, *parameter.shape)[-1] ** -0.5)
    return model


def batch(*lengths: int, left: bool, end: bool = False) -> Tensor:
    """Random sentences of these lengths, of which </s> is the first symbol, or the last one."""
    special = torch.tensor([EOS])
    rows = [
        torch.cat([random_words(length), special] if end else [special, random_words(length)]) for length in lengths
    ]
    return pad_sequence(rows, batch_first=True, padding_value=PAD, padding_side="left" if left else "right")


def assert_same_logits(plain: nn.Module, model: Any, *inputs: Tensor, tolerance: float = 1e-12) -> None:
    """Assert that a network and fairseq's model agree at symbols; where there is padding does not matter."""
    if len(inputs) == 2:
        source, target = inputs
        expected, _ = model(source, source.ne(PAD).sum(1), target)
    else:
        expected, _ = model(*inputs)
    is_symbol = inputs[-1].ne(PAD)
    assert_normwise_close(plain(*inputs)[is_symbol], expected[is_symbol], tolerance)
    garbage = [tokens.masked_fill(tokens.eq(PAD), DICTIONARY.nspecial) for tokens in inputs]
    masked = plain(*garbage, *(tokens.eq(PAD) for tokens in inputs))
    assert_normwise_close(masked[is_symbol], expected[is_symbol], tolerance)
