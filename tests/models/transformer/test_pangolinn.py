"""pangolinn's test cases for padding and causality, for encoder and decoder layers of every kind."""

from __future__ import annotations

import unittest
from typing import Any

import pytest
import torch
from fairseq.models.transformer import TransformerConfig
from pangolinn import seq2seq
from torch import Tensor, nn

from fairseq_stack.kinds import STRATIFICATION, Layer, kinds
from fairseq_stack.models.transformer.layers import build_decoder_layer, build_encoder_layer
from fairseq_stack.models.transformer.transformer_options import option_defaults

SIZE = 8


def config() -> TransformerConfig:
    cfg = TransformerConfig()
    for part in (cfg.encoder, cfg.decoder):
        part.embed_dim, part.ffn_embed_dim, part.attention_heads = SIZE, 2 * SIZE, 2
        part.normalize_before = True
    for name, value in option_defaults().items():
        setattr(cfg, name, value)
    return cfg


class Wrapper(seq2seq.PangolinnSeq2SeqModuleWrapper):
    """What is tested, with inputs and outputs (B, n, d) and true lengths (B,)."""

    attention: Layer

    @property
    def num_input_channels(self) -> int:
        return SIZE

    def build_module(self) -> nn.Module:
        """In float64, with parameters that make biases and weights of normalisation matter."""
        torch.manual_seed(0)
        module = self.build()
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.add_(torch.randn_like(parameter))
        return module.double()

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """With scaled inputs: behind layer normalisation, gradients of components would sum to 0 but for rounding."""
        x = x.double() * torch.linspace(0.5, 1.5, SIZE)
        padding = torch.arange(x.size(1)) >= lengths.unsqueeze(1)
        return self.run(x.transpose(0, 1), padding if padding.any() else None).transpose(0, 1).float()

    def build(self) -> nn.Module:
        raise NotImplementedError

    def run(self, x: Tensor, padding: Tensor | None) -> Tensor:
        raise NotImplementedError


class EncoderLayer(Wrapper):
    def build(self) -> nn.Module:
        return build_encoder_layer(config(), self.attention, return_fc=False)

    def run(self, x: Tensor, padding: Tensor | None) -> Tensor:
        output: Tensor = self._module(x, padding)
        return output


class DecoderLayer(Wrapper):
    def build(self) -> nn.Module:
        return build_decoder_layer(config(), self.attention, no_encoder_attn=True)

    def run(self, x: Tensor, padding: Tensor | None) -> Tensor:
        future = x.new_full((len(x), len(x)), -torch.inf).triu(1)
        output: Tensor = self._module(x, self_attn_mask=future, self_attn_padding_mask=padding)[0]
        return output


# pytest would also collect them if they were names of this module.
CASES = [
    (tester, name)
    for tester in (seq2seq.EncoderPaddingTestCase, seq2seq.CausalTestCase)
    for name in unittest.TestLoader().getTestCaseNames(tester)
]


@pytest.mark.parametrize(("tester", "name"), CASES, ids=[name for _, name in CASES])
@pytest.mark.parametrize("wrapper", [EncoderLayer, DecoderLayer])
@pytest.mark.parametrize(
    "attention", [Layer(kind, kind.examples[0]) for kind in kinds() if kind.build is not None], ids=str
)
def test_stacks(attention: Layer, wrapper: type[Wrapper], tester: Any, name: str) -> None:
    if attention.kind is STRATIFICATION and name == "test_gradient_not_flowing_from_future":
        pytest.skip("also asserts that every output depends on earlier inputs, which a stack may have popped")
    of_layer = type(wrapper.__name__, (wrapper,), {"attention": attention})
    type(tester.__name__, (tester,), {"module_wrapper_class": of_layer})(name).debug()
