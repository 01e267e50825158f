"""Models without fairseq."""

from __future__ import annotations

from typing import Any

from torch import nn

from fairseq_stack.errors import UserError
from fairseq_stack.models.lstm import StackLSTMLanguageModel
from fairseq_stack.models.lstm.plain import plain_lstm
from fairseq_stack.models.transformer import StackTransformer, StackTransformerLanguageModel
from fairseq_stack.models.transformer.plain import plain_transformer
from fairseq_stack.networks import StackLSTMLM, StackTransformerLM
from fairseq_stack.networks import StackTransformer as PlainTransformer


def plain_model(model: nn.Module) -> StackLSTMLM | StackTransformerLM | PlainTransformer:
    """The network of :mod:`fairseq_stack.networks` that computes what a trained model does; its parameters are copies.

    Args:
        model: a model, or what ``from_pretrained`` returns.

    Raises:
        UserError: it is an ensemble, a model of another family, or has an option that plain networks do not have.
    """
    models: Any = getattr(model, "models", [model])
    if len(models) != 1:
        raise UserError(f"expected one model, got an ensemble of {len(models)}")
    if isinstance(models[0], StackLSTMLanguageModel):
        return plain_lstm(models[0])
    if isinstance(models[0], StackTransformer | StackTransformerLanguageModel):
        return plain_transformer(models[0])
    raise UserError(
        f"expected a stack_transformer, stack_transformer_lm or stack_lstm_lm, got {type(models[0]).__name__}"
    )
