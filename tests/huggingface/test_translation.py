"""Exported translation models compute, translate and learn as the models that they were made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("transformers")


from transformers import AutoModelForSeq2SeqLM

from fairseq_stack.huggingface import StackTransformerConfig, StackTransformerForConditionalGeneration
from fairseq_stack.huggingface.export import TARGET_TOKENIZER
from tests.helpers import assert_normwise_close
from tests.huggingface.conftest import EXAMPLES

NESTED = "tf-nd-nested-translation"
NESTED_SENTENCES = [
    "das Mädchen , das den Lehrer sieht , lacht .",
    "der Hund schläft .",
    "heute hat die Katze die Maus gejagt .",
    "der Koch , der die Königin , die der Vogel kennt , malt , singt oft .",
    "die Frauen , denen das Kind dankt , haben dort gewartet .",
]
PIECE_SENTENCES = ["Der „Satz“ Nummer\u20093 ist eﬃzient", "Satz  Satz\tΩ", "zweiΨ", "Der", "ist ist ist ist ist ist ."]


@pytest.fixture(scope="module", params=[NESTED, "every-kind", "pieces"])
def model(request: pytest.FixtureRequest, exported: Any) -> Any:
    fixtures = {"every-kind": "translation_model", "pieces": "piece_model"}
    name = request.param
    return exported(request.getfixturevalue(fixtures[name]) if name in fixtures else EXAMPLES / name)


def sentences_for(hub: Any) -> list[str]:
    """Sentences of different lengths."""
    if "Hund" in hub.src_dict:
        return NESTED_SENTENCES
    return PIECE_SENTENCES if hub.companions else ["a b c d", "d d", "c a b c d a", "b", "a d c"]


@torch.no_grad()
@pytest.mark.parametrize("side", ["left", "right"])
def test_logits(model: Any, side: str) -> None:
    sentences = sentences_for(model.hub)
    sources = model.tokenizer()(sentences, padding=True, padding_side=side, return_tensors="pt")
    assert [row[row.ne(1)].tolist() for row in sources.input_ids] == [model.hub.encode(s).tolist() for s in sentences]
    translations = ["the dog , that sees", "A B C A", "B", "the “sentence” number\u00a03 is eﬃcient .", "cows"]
    targets = model.tokenizer(TARGET_TOKENIZER)(translations, padding=True, return_tensors="pt")
    expected_ids = [model.hub.encode_target(translation).tolist() for translation in translations]
    assert [row[row.ne(1)].tolist() for row in targets.input_ids] == expected_ids
    labels = targets.input_ids.masked_fill(targets.attention_mask.eq(0), -100)
    network = model.model()
    outputs = network(**sources, labels=labels)
    (fairseq_model,) = model.hub.models
    before = network.prepare_decoder_input_ids_from_labels(labels)
    expected, _ = fairseq_model(sources.input_ids, sources.attention_mask.sum(1), before)
    symbols = labels.ne(-100)
    assert_normwise_close(outputs.logits[symbols], expected[symbols], 1e-6)
    of_symbols = expected.log_softmax(2)[symbols].gather(1, labels[symbols].unsqueeze(1))
    assert_normwise_close(outputs.loss, -of_symbols.mean(), 1e-6)
    assert torch.equal(network(**sources, labels=labels, use_cache=False).logits, outputs.logits)


@pytest.mark.parametrize("beam", [1, 5])
def test_translation(model: Any, beam: int) -> None:
    """In a batch with padding, alone, and without a cache, as fairseq for one sentence after the other."""
    sentences, most = sentences_for(model.hub), 40
    expected = [model.hub.translate(sentence, beam=beam, max_len_a=0, max_len_b=most) for sentence in sentences]
    network, tokenizer, target_tokenizer = model.model(), model.tokenizer(), model.tokenizer(TARGET_TOKENIZER)

    def translated(sentences: list[str], **settings: Any) -> list[str]:
        inputs = tokenizer(sentences, padding=True, return_tensors="pt")
        tokens = network.generate(**{**inputs, **settings}, num_beams=beam, max_length=most + 2)
        translations: list[str] = target_tokenizer.batch_decode(tokens, skip_special_tokens=True)
        return translations

    assert network.generation_config.early_stopping is True
    assert network.generation_config.suppress_tokens == [1], "the padding"
    assert translated(sentences) == expected
    assert translated(sentences, attention_mask=None) == expected
    assert [translation for sentence in sentences for translation in translated([sentence])] == expected
    assert translated(sentences[:2], use_cache=False) == expected[:2]


def test_training(model: Any) -> None:
    sources = model.tokenizer()(sentences_for(model.hub), padding=True, return_tensors="pt")
    network, start = model.model(), torch.full((len(sources.input_ids), 1), 2)
    (possible,) = network(**sources, decoder_input_ids=start).logits[0, 0].isfinite().nonzero(as_tuple=True)
    labels = possible[torch.randint(len(possible), (len(start), 5))]
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    losses = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = network(**sources, labels=labels).loss
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < losses[0]


def test_a_model_with_one_table(tmp_path: Path) -> None:
    sizes = {
        f"{side}_{name}": size
        for side in ("encoder", "decoder")
        for name, size in (("embed_dim", 8), ("ffn_embed_dim", 8), ("attention_heads", 2))
    }
    model = StackTransformerForConditionalGeneration(
        StackTransformerConfig(
            vocab_size=9, stack_layers="sdpa", stack_encoder_layers="sdpa", share_all_embeddings=True, **sizes
        )
    ).eval()
    model.save_pretrained(tmp_path)
    loaded, tokens = AutoModelForSeq2SeqLM.from_pretrained(tmp_path), torch.tensor([[2, 4, 5]])
    first, second = (each(tokens, decoder_input_ids=tokens).logits for each in (model, loaded))
    torch.testing.assert_close(first, second)
