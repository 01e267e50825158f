"""Padding in decoders: a mask of it is left out where the causal mask hides it already."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from fairseq.modules import MultiheadAttention
from torch import Tensor

from fairseq_stack.models.transformer import layers
from tests.helpers import assert_normwise_close
from tests.models.building import DICTIONARY, build_opinionated_model, random_words, with_eos


@pytest.mark.parametrize("left_pad", [False, True], ids=["right", "left"])
def test_mask_is_left_out_only_if_no_token_would_see_padding(left_pad: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    model = build_opinionated_model("stack_transformer_lm_nd_cfl", ("--stack-layers=sdpa,nd-2-2-3,sdpa+sup-3",))
    tokens = with_eos([random_words(length) for length in (6, 3)], left_pad=left_pad)
    is_symbol = tokens.ne(DICTIONARY.pad())
    masks: list[Tensor | None] = []
    attend = MultiheadAttention.forward

    def watched(self: Any, *args: Any, key_padding_mask: Tensor | None = None, **kwargs: Any) -> Any:
        masks.append(key_padding_mask)
        return attend(self, *args, key_padding_mask=key_padding_mask, **kwargs)

    def outputs() -> Tensor:
        found: Tensor = model(tokens)[0][is_symbol]
        return found

    monkeypatch.setattr(MultiheadAttention, "forward", watched)
    quick = outputs()
    assert [mask is not None for mask in masks] == [left_pad, left_pad]
    monkeypatch.setattr(layers, "_is_in_the_future", lambda _: False)
    assert torch.equal(quick, outputs())


def test_cross_self_attention_never_sees_padding_of_sources() -> None:
    flags = ("--cross-self-attention", "--no-cross-attention")
    model = build_opinionated_model("stack_transformer_tf_small", flags)
    sources, targets = ([random_words(length) for length in lengths] for lengths in ((7, 3), (4, 4)))
    previous = torch.stack(targets)
    together = model(with_eos(sources, left_pad=True), torch.tensor([8, 4]), previous)[0]
    alone = model(with_eos(sources[1:], left_pad=True), torch.tensor([4]), previous[1:])[0]
    assert_normwise_close(together[1:], alone, 1e-12)
