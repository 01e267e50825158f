"""Exported language models compute, generate and learn as the models that they were made of."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

pytest.importorskip("transformers")

from transformers import AutoModelForCausalLM

from fairseq_stack.hub.strings import draw_strings
from fairseq_stack.huggingface import StackLSTMLMConfig, StackTransformerLMConfig
from tests.helpers import assert_normwise_close
from tests.huggingface.conftest import EXAMPLES

PAD = 1
NEW = 20
MODELS = {
    "tf-nd": EXAMPLES / "tf-nd-padded-reversal",
    "lstm-sup": EXAMPLES / "lstm-sup-marked-reversal",
    "every-kind": "language_model",
    "stream": "stream_model",
}


@pytest.fixture(scope="module", params=MODELS)
def model(request: pytest.FixtureRequest, exported: Any) -> Any:
    checkpoint = MODELS[request.param]
    return exported(request.getfixturevalue(checkpoint) if isinstance(checkpoint, str) else checkpoint)


def texts_for(hub: Any, number: int, longest: int) -> list[str]:
    """Random texts of different lengths."""
    end = hub.tgt_dict[hub.tgt_dict.eos()]
    words = [word for word in hub.tgt_dict.symbols[4:] if word != end and not word.startswith("madeupword")]
    generator = torch.Generator().manual_seed(1)
    lengths = torch.randint(0, longest + 1, (number,), generator=generator).tolist()
    return [" ".join(words[i] for i in torch.randint(len(words), (n,), generator=generator)) for n in lengths]


def prompts_for(hub: Any) -> list[str]:
    """Strings that a model draws, without a few symbols at the end."""
    longest = min(80, hub.max_positions - NEW)
    samples = draw_strings(hub, 30, max_length=longest, seed=1, batch_size=30)
    drawn = [sample.symbols for sample in samples if sample.is_finished and not {"<s>", "<pad>"} & {*sample.symbols}]
    prompts = [symbols[: len(symbols) - 1 - number % 5] for number, symbols in enumerate(drawn)]
    return [" ".join(prompt) for prompt in prompts if prompt][:6]


def without_ends(tokens: Tensor) -> list[list[int]]:
    """The symbols of each row, from the first to the end."""
    rows = [[token for token in row if token != PAD] for row in tokens.tolist()]
    return [row[1 : row.index(row[0], 1) if row[0] in row[1:] else None] for row in rows]


@torch.no_grad()
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("use_cache", [False, True])
def test_logits(model: Any, side: str, use_cache: bool) -> None:
    tokenizer = model.tokenizer()
    inputs = tokenizer(texts_for(model.hub, 12, 20), padding=True, padding_side=side, return_tensors="pt")
    symbols = inputs.attention_mask.bool()
    (fairseq_model,) = model.hub.models
    expected, _ = fairseq_model(inputs.input_ids, src_lengths=symbols.sum(1))
    inputs.input_ids[~symbols] = 4  # a word: only the mask says where padding is
    logits = model.model()(**inputs, use_cache=use_cache).logits
    assert_normwise_close(logits[symbols], expected[symbols], 1e-6)


@pytest.mark.parametrize("beam", [1, 4])
def test_generation(model: Any, beam: int) -> None:
    """In a batch with padding, alone, and without a cache, as fairseq for one prompt after the other."""
    prompts = prompts_for(model.hub)
    lengths = [len(model.hub.encode(prompt)) - 1 for prompt in prompts]
    expected, ended = [], []
    for prompt, length in zip(prompts, lengths, strict=True):
        settings = {"beam": beam, "lenpen": 0, "max_len_a": 0, "max_len_b": length + NEW}
        hypotheses = [each["tokens"][:-1].tolist() for each in model.hub.generate(model.hub.encode(prompt), **settings)]
        expected.append(hypotheses[0])
        # At the limit fairseq ends hypotheses itself and counts that, so that a beam may rank them otherwise.
        ended.append(beam == 1 or all(len(tokens) < length + NEW for tokens in hypotheses))
    assert sum(ended) >= 3
    network, tokenizer = model.model(), model.tokenizer()

    def generated(prompts: list[str], **settings: Any) -> list[list[int]]:
        inputs = tokenizer(prompts, padding=True, return_tensors="pt")
        if beam > 1:
            settings |= {"num_beams": beam, "length_penalty": 0.0, "early_stopping": True}
        settings |= {"do_sample": False, "max_new_tokens": NEW}
        return without_ends(network.generate(**inputs, **settings))

    alone = [row for prompt in prompts for row in generated([prompt])]
    assert [row for row, end in zip(alone, ended, strict=True) if end] == [
        row for row, end in zip(expected, ended, strict=True) if end
    ]
    assert generated(prompts) == alone
    assert generated(prompts[:3], use_cache=False) == alone[:3]


def test_continuing_a_generation(model: Any) -> None:
    network, inputs = model.model(), model.tokenizer()(texts_for(model.hub, 1, 5), return_tensors="pt")
    once = network.generate(**inputs, max_new_tokens=8, do_sample=False, eos_token_id=None)
    first = network.generate(
        **inputs, max_new_tokens=4, do_sample=False, eos_token_id=None, return_dict_in_generate=True
    )
    cache = first.get("cache", first.get("past_key_values"))
    ones = torch.ones_like(first.sequences)
    name = "cache" if "cache" in first else "past_key_values"
    rest = network.generate(
        first.sequences, attention_mask=ones, max_new_tokens=4, do_sample=False, eos_token_id=None, **{name: cache}
    )
    assert torch.equal(rest, once)


def test_the_readme_names_the_end(model: Any) -> None:
    """Of a stream it is the word <eos>."""
    end = model.tokenizer().eos_token
    text = (model.folder / "README.md").read_text(encoding="utf-8")
    assert f"`{end}` begins and ends every text" in text
    (prompt,) = re.findall(r"tokenizer\(\['(.*)'\]", text)
    assert end not in prompt.split()


@torch.no_grad()
def test_padding_after_a_cache_is_read(model: Any) -> None:
    """Without a mask: a sequence that has ended does not fall behind the others."""
    network = model.model()
    begun = torch.full((2, 1), network.config.bos_token_id)
    last = torch.tensor([[PAD], [begun[0, 0]]])
    first = network(input_ids=begun, use_cache=True)
    expected = network(
        input_ids=last, past_key_values=first.past_key_values, attention_mask=torch.ones(2, 2, dtype=torch.long)
    )
    again = network(input_ids=begun, use_cache=True)
    actual = network(input_ids=last, past_key_values=again.past_key_values)
    assert torch.equal(actual.logits, expected.logits)


@pytest.mark.parametrize("side", ["left", "right"])
@torch.no_grad()
def test_the_loss_is_of_what_texts_predict(model: Any, side: str) -> None:
    """Padding before a text predicts nothing, with a mask and without."""
    network, texts = model.model(), texts_for(model.hub, 8, 10)
    inputs = model.tokenizer()(texts, padding=True, padding_side=side, return_tensors="pt")
    labels = inputs.input_ids.masked_fill(inputs.attention_mask.eq(0), -100)
    nats = number = 0.0
    for text in texts:
        ids = model.tokenizer()(text, return_tensors="pt").input_ids
        nats -= float(network(ids).logits[0, :-1].log_softmax(1).gather(1, ids[0, 1:, None]).sum())
        number += ids.size(1) - 1
    for mask in (inputs.attention_mask, None):
        loss = network(inputs.input_ids, attention_mask=mask, labels=labels).loss
        assert float(loss) == pytest.approx(nats / number, rel=1e-5)


def test_low_precision(model: Any) -> None:
    inputs = model.tokenizer()(texts_for(model.hub, 8, 10), padding=True, return_tensors="pt")
    labels = inputs.input_ids.masked_fill(inputs.attention_mask.eq(0), -100)
    with torch.no_grad():
        single, half = (model.model(dtype=dtype)(**inputs, labels=labels).loss for dtype in (None, torch.bfloat16))
    assert float(half) == pytest.approx(float(single), rel=0.1)


def test_the_options_of_another_network_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^StackLSTMLMConfig: stack_layers is not one of its LSTMOptions$"):
        StackLSTMLMConfig(stack_layers="sup-4")


CONFIGURATIONS = [
    StackTransformerLMConfig(
        vocab_size=20, stack_layers="nd-2-2-3,sup-4,deltastack-2-3-3-5", decoder_embed_dim=64, decoder_ffn_embed_dim=32,
        decoder_attention_heads=2, stack_init="paper", compact_vocab=True, share_decoder_input_output_embed=True,
    ),
    StackLSTMLMConfig(
        vocab_size=20, stack="nd-2-2-3", decoder_layers=3, controller="rnn", decoder_hidden_size=64,
        learned_initial_state=True, reading_in_output=True, compact_vocab=True,
    ),
]  # fmt: skip


@pytest.mark.parametrize("config", CONFIGURATIONS, ids=["transformer", "rnn"])
def test_a_new_model_is_initialised_as_a_network(config: Any, tmp_path: Path) -> None:
    torch.manual_seed(3)
    made = AutoModelForCausalLM.from_config(config)
    torch.manual_seed(3)
    network = type(made).network_class(config.options(), config.vocab_size)
    for name, parameter in network.named_parameters():
        assert torch.equal(made.get_parameter(f"model.{name}"), parameter), name
    assert made.model.decoder.output_projection.possible.all()
    made.save_pretrained(tmp_path)
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert loaded.config.options() == config.options()
    for name, tensor in made.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], tensor), name
    tokens = torch.tensor([[2, 4, 5]])
    # Products of matrices are rounded by how these lie in memory.
    torch.testing.assert_close(loaded.eval()(tokens).logits, made.eval()(tokens).logits)
    if config.share_decoder_input_output_embed:
        assert loaded.get_output_embeddings().weight is loaded.get_input_embeddings().weight
    drawn = []
    for use_cache in (False, True):
        torch.manual_seed(0)
        rows = tokens.repeat(40, 1)  # in some of which <pad> would be drawn
        drawn.append(loaded.double().generate(rows, do_sample=True, max_new_tokens=12, use_cache=use_cache))
    assert torch.equal(*drawn)


def test_further_symbols(exported: Any) -> None:
    network = exported(MODELS["tf-nd"]).model()
    tokens, size = torch.tensor([[2, 4, 5]]), network.config.vocab_size
    before = network(tokens).logits
    network.resize_token_embeddings(size + 3)
    after = network(torch.tensor([[2, 4, 5, size + 1]])).logits
    assert_normwise_close(after[:, :3, :size], before, 1e-6)
    assert after[..., size:].isfinite().all()
    with pytest.raises(NotImplementedError, match="reads one-hot vectors"):
        exported(MODELS["lstm-sup"]).model().resize_token_embeddings(size + 3)


def test_what_is_refused(exported: Any, tmp_path: Path) -> None:
    network = exported(MODELS["tf-nd"]).model()
    prompt = torch.tensor([[2, 4, 5]])
    with pytest.raises(ValueError, match="not supported with stateful models"):
        network.generate(prompt, max_new_tokens=2, prompt_lookup_num_tokens=2)
    too_long = torch.full((1, network.config.max_target_positions + 1), 4)
    with pytest.raises(ValueError, match=f"at most {network.config.max_target_positions} symbols"):
        network(too_long)
    with pytest.raises(ValueError, match=r"attention_mask: expected shape \(B, 3\), got \(1, 4\)"):
        network(prompt, attention_mask=torch.ones(1, 4))
    kept = {"model.decoder.embed_tokens.weight": network.get_input_embeddings().weight}
    network.save_pretrained(tmp_path, state_dict=kept)
    with pytest.raises(ValueError, match=r"lacks parameters of the model, such as model\.decoder\."):
        AutoModelForCausalLM.from_pretrained(tmp_path)
