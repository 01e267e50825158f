"""Reading in pieces equals reading at once, whatever else is in the batch. States cost nothing until they are used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fairseq_stack.modules import StackAttention, StackLSTM
from fairseq_stack.networks import LSTMOptions, StackLSTMLM, StackTransformer, StackTransformerLM, TransformerOptions
from tests.helpers import assert_normwise_close
from tests.models.building import DICTIONARY
from tests.networks.agreement import PAD, batch, randomized

VOCAB_SIZE = len(DICTIONARY)
SIZES: dict[str, Any] = {
    f"{side}_{name}": size for side in ("decoder", "encoder")
    for name, size in (("embed_dim", 8), ("ffn_embed_dim", 12), ("attention_heads", 2))
}  # fmt: skip
LAYERS = ["sdpa", "sup-5", "nd-2-3-5", "nd-2-3-5@3", "delta-2-3-4", "deltastack-2-3-4-5"]
STACKS = ["sup-5", "nd-2-3-5"]


class Translator(nn.Module):
    """A translation model that reads a source of its own, so that it can be called like a language model."""

    def __init__(self, model: StackTransformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        return self.model(sources(tokens), tokens, None, padding_mask)

    def extend(self, tokens: Tensor, state: Any = None, padding_mask: Tensor | None = None) -> Any:
        encoded = self.model.encode(sources(tokens)) if state is None else None
        return self.model.extend(tokens, state, encoded, padding_mask)


def sources(tokens: Tensor) -> Tensor:
    """As many different sources as there are rows, with padding on the left; the same for the same number of rows."""
    source = torch.arange(4 * len(tokens)).view(-1, 4) % 8 + DICTIONARY.nspecial
    return source.index_put((torch.arange(1, len(tokens), 2), torch.tensor(0)), torch.tensor(PAD))


def language_model(layers: str, **options: Any) -> StackTransformerLM:
    return randomized(StackTransformerLM(TransformerOptions(stack_layers=layers, **SIZES | options), VOCAB_SIZE))


def lstm(stack: str, **options: Any) -> StackLSTMLM:
    return randomized(StackLSTMLM(LSTMOptions(stack=stack, decoder_hidden_size=10, **options), VOCAB_SIZE), 3.0)


def translator(layers: str) -> Translator:
    options = TransformerOptions(stack_layers=layers, stack_encoder_layers="sup-3", **SIZES)
    return Translator(randomized(StackTransformer(options, VOCAB_SIZE)))


MODELS = {
    **{layer: lambda layer=layer: language_model(f"{layer},sdpa") for layer in LAYERS},
    **{f"lstm-{stack}": lambda stack=stack: lstm(stack) for stack in ("none", *STACKS)},
    "lstm-embeddings": lambda: lstm("sup-3+nd-2-2-3", decoder_embed_dim=6),
    "rnn-layers": lambda: lstm(
        "sup-3+nd-2-2-3", decoder_layers=3, controller="rnn", learned_initial_state=True, reading_in_output=True
    ),
    "lstm-stream": lambda: lstm("sup-3", first=6),
    "learned": lambda: language_model("nd-2-2-3", decoder_learned_pos=True),
    "interleaved": lambda: language_model("sup-3", stack_positions="interleaved"),
    "post-norm": lambda: language_model("sdpa,sup-3", decoder_normalize_before=False),
    "stacks beside attention": lambda: language_model("sdpa+nd-2-2-3,sdpa+sup-3"),
    "translator": lambda: translator("sdpa,nd-2-2-3"),
}
each_model = pytest.mark.parametrize("name", MODELS)


def in_pieces(model: Any, tokens: Tensor, *ends: int, state: Any = None, padding: Tensor | None = None) -> Any:
    """The logits of tokens that are read up to each of the ends, and the state after the last one."""
    pieces, begin = [], 0
    for end in ends:
        mask = None if padding is None else padding[:, begin:end]
        logits, state = model.extend(tokens[:, begin:end], state, mask)
        pieces.append(logits)
        begin = end
    return torch.cat(pieces, 1), state


def assert_same(actual: Tensor, expected: Tensor, tokens: Tensor) -> None:
    assert_normwise_close(actual[tokens.ne(PAD)], expected[tokens.ne(PAD)], 1e-11)


@torch.no_grad()
@each_model
def test_pieces_equal_the_whole(name: str) -> None:
    """Prompts begin at different columns; three of them have groups of one, two and two rows."""
    model = MODELS[name]()
    tokens = batch(8, 8, 5, 5, 3, left=True)
    whole = model(tokens)
    for ends in ((4, 5, 6, 7, 8, 9), (6, 9), (7, 8, 9)):
        pieces, _ = in_pieces(model, tokens, *ends)
        assert_same(pieces, whole, tokens)


@torch.no_grad()
@each_model
def test_padding_within_a_sequence(name: str) -> None:
    """On the right of a prompt, and in the middle of what follows it: tokens after it continue the sequence.

    It is the same whether tokens come in pieces or at once.
    """
    model = MODELS[name]()
    dense = batch(6, 6, 6, left=True)
    columns = torch.tensor([[0, 1, 2, 4, 6, 7, 8], [0, 1, 4, 5, 6, 7, 8], [0, 1, 2, 3, 4, 5, 8]])
    tokens = torch.full((3, 9), PAD).scatter(1, columns, dense)
    pieces, _ = in_pieces(model, tokens, 4, 7, 9)
    for outputs in (pieces, model(tokens)):
        assert_normwise_close(outputs[tokens.ne(PAD)].view(3, 7, -1), model(dense), 1e-11)


@torch.no_grad()
def test_padding_with_autocast() -> None:
    """One row begins with the second piece; the outputs of the two rows then have different types."""
    model = MODELS["lstm-embeddings"]().float()
    tokens = batch(8, 5, left=True)
    with torch.autocast("cpu", torch.bfloat16):
        outputs, _ = in_pieces(model, tokens, 4, 9)
    assert_normwise_close(outputs[tokens.ne(PAD)], model(tokens)[tokens.ne(PAD)], 0.02)


@torch.no_grad()
@each_model
@pytest.mark.parametrize("read", [6, 7], ids=["unread", "read"])
@pytest.mark.parametrize("index", [[3, 2, 2, 0, 0], [3, 1]], ids=["more", "fewer"])
def test_reordering(name: str, read: int, index: list[int]) -> None:
    """Rows of one batch that began at two columns are permuted, left out and repeated."""
    model = MODELS[name]()
    order = torch.tensor(index)
    tokens = batch(7, 5, 7, 4, left=True)
    _, state = in_pieces(model, tokens, *((6,) if read == 6 else (6, 7)))
    reordered = state.reorder(order)
    ends = range(1, 9 - read)
    expected, _ = in_pieces(model, tokens[:, read:], *ends, state=state)
    actual, _ = in_pieces(model, tokens[order][:, read:], *ends, state=reordered)
    assert_normwise_close(actual, expected[order], 1e-11)
    again, _ = in_pieces(model, tokens[:, read:], *ends, state=state)
    assert torch.equal(again, expected), "states are immutable"


@pytest.mark.parametrize("name", ["nd-2-3-5", "sup-5", "lstm-nd-2-3-5", "translator"])
def test_gradients_flow_through_states(name: str) -> None:
    model = MODELS[name]()
    tokens = batch(6, 6, 3, left=True)
    parameters = list(model.parameters())
    found = []
    for logits in (model(tokens), in_pieces(model, tokens, 4, 6, 7)[0]):
        loss = logits[tokens.ne(PAD)].log_softmax(-1)[:, 5].sum()
        found.append(torch.cat([x.flatten() for x in torch.autograd.grad(loss, parameters, materialize_grads=True)]))
    assert_normwise_close(found[1], found[0], 1e-11)


def tensors(state: Any) -> Iterator[Tensor]:
    """What a state holds."""
    if isinstance(state, Tensor):
        yield state
    elif isinstance(state, tuple) or hasattr(state, "__dict__"):
        for item in state if isinstance(state, tuple) else vars(state).values():
            yield from tensors(item)


@each_model
def test_no_gradient_flows_through_detached_states(name: str) -> None:
    model, tokens = MODELS[name](), batch(6, 6, 3, left=True)
    _, state = in_pieces(model, tokens, 4, 6)
    detached = state.detach()
    assert any(x.requires_grad for x in tensors(state)) and not any(x.requires_grad for x in tensors(detached))
    assert torch.equal(model.extend(tokens[:, 6:], detached)[0], model.extend(tokens[:, 6:], state)[0])


@each_model
def test_gradients_do_not_depend_on_how_a_prompt_was_read(name: str) -> None:
    """If they are not to flow to the prompt: its state is detached, or it was read without gradients."""
    model, tokens = MODELS[name](), batch(6, 6, 3, left=True)
    with torch.no_grad():
        _, of_one_piece = in_pieces(model, tokens, 4)
    states = [in_pieces(model, tokens, *ends)[1].detach() for ends in ((2, 4), (4,))]
    found = []
    for state in (*states, of_one_piece):
        loss = model.extend(tokens[:, 4:], state)[0][:, -1].log_softmax(-1)[:, 5].sum()
        gradients = torch.autograd.grad(loss, list(model.parameters()), materialize_grads=True)
        found.append(torch.cat([x.flatten() for x in gradients]))
    for gradient in found[1:]:
        assert_normwise_close(gradient, found[0], 1e-11)


@torch.no_grad()
@each_model
def test_states_keep_nothing_that_the_caller_may_change(name: str) -> None:
    model, tokens = MODELS[name](), batch(6, 4, left=True)
    expected, _ = in_pieces(model, tokens, 4, 7)
    prompt, padding = tokens[:, :4].clone(), tokens[:, :4].eq(PAD)
    _, state = model.extend(prompt, None, padding)
    prompt.fill_(5)
    padding.fill_(False)
    assert torch.equal(model.extend(tokens[:, 4:], state)[0], expected[:, 4:])


@torch.no_grad()
@each_model
def test_nothing_is_read(name: str) -> None:
    model, tokens = MODELS[name](), batch(6, 4, left=True)
    assert model(tokens[:, :0]).shape == (2, 0, VOCAB_SIZE)
    pieces, _ = in_pieces(model, tokens, 0, 4, 4, 7)
    assert_same(pieces, model(tokens), tokens)


@torch.no_grad()
@each_model
def test_masks_say_where_padding_is(name: str) -> None:
    model = MODELS[name]()
    tokens = batch(8, 5, 3, left=True)
    padding, garbage = tokens.eq(PAD), tokens.masked_fill(tokens.eq(PAD), DICTIONARY.nspecial)
    expected, _ = in_pieces(model, tokens, 6, 9)
    actual, _ = in_pieces(model, garbage, 6, 9, padding=padding)
    assert_same(actual, expected, tokens)


@pytest.fixture
def states(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The stacks and LSTMs that have begun from a state, or were stepped."""
    begun: list[str] = []
    classes = {type(module) for build in MODELS.values() for module in build().modules()}
    for cls in {cls for cls in classes if issubclass(cls, StackAttention | StackLSTM)} | {StackAttention}:
        for method in ("initial_state", "step"):
            original = getattr(cls, method)

            def counted(self: Any, *args: Any, original: Any = original) -> Any:
                begun.append(type(self).__name__)
                return original(self, *args)

            monkeypatch.setattr(cls, method, counted)
    return begun


@torch.no_grad()
@pytest.mark.parametrize("name", [*STACKS, "lstm-nd-2-3-5", "lstm-sup-5", "translator"])
def test_scoring_builds_no_state(name: str, states: list[str]) -> None:
    model = MODELS[name]()
    tokens = batch(8, 5, 3, left=True)
    model(tokens)
    _, state = model.extend(tokens)
    state.reorder(torch.tensor([1, 1, 0]))
    assert states == []
    model.extend(tokens[:, -1:], state)
    assert states


@torch.no_grad()
def test_wrong_arguments() -> None:
    model, translation, tokens = MODELS["sup-5"](), MODELS["translator"](), batch(4, 2, left=True)
    with pytest.raises(ValueError, match=r"padding_mask: expected a boolean tensor of shape \(2, 5\)"):
        model(tokens, tokens.ne(PAD).long())
    with pytest.raises(ValueError, match=r"padding_mask: .*got torch.bool of shape \(2, 3\)"):
        model(tokens, tokens[:, :3].eq(PAD))
    for of_any_kind in (model, MODELS["lstm-none"](), translation):
        _, state = of_any_kind.extend(tokens)
        with pytest.raises(ValueError, match="expected 2 rows, as the state has, got 1"):
            of_any_kind.extend(tokens[:1], state)
    _, state = in_pieces(MODELS["lstm-none"](), tokens, 2, 4)
    with pytest.raises(ValueError, match=r"row numbers from 0 to 1, got \[0, 2\]"):
        state.reorder(torch.tensor([0, 2]))
    with pytest.raises(ValueError, match=r"encoded: expected what encode\(\) returns"):
        translation.model.extend(tokens)


@torch.no_grad()
def test_too_long_sequences() -> None:
    """Padding is not counted."""
    model = language_model("sup-3", max_target_positions=5)
    tokens = batch(4, 4, left=True)
    assert_normwise_close(model(torch.cat([torch.full((2, 3), PAD), tokens], 1))[:, 3:], model(tokens), 1e-11)
    _, state = model.extend(tokens)
    whole = torch.tensor([[4, 5, 6, 7, 4, PAD], [PAD, 4, 5, 6, 7, 4]])
    _, full = model.extend(whole[:, :5])
    assert_normwise_close(model.extend(whole[:, 5:], full)[0][1], model(whole)[1, 5:], 1e-11)
    for call in (lambda: model(batch(5, left=True)), lambda: model.extend(tokens[:, :1], state)):
        with pytest.raises(ValueError, match=r"at most 5 symbols in a sequence \(max_target_positions\), got 6"):
            call()
