"""fairseq's beam search finds for each sentence of a batch what it finds for the sentence alone."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from fairseq.search import DiverseBeamSearch, DiverseSiblingsSearch, LengthConstrainedBeamSearch
from fairseq.sequence_generator import SequenceGenerator
from fairseq.sequence_scorer import SequenceScorer
from torch import Tensor, nn

from fairseq_stack.compat import sequence_generator
from fairseq_stack.errors import UserError
from fairseq_stack.models.incremental import ReadsAhead
from fairseq_stack.search import LengthNormalizedBeamSearchGenerator
from tests.models.building import DICTIONARY, build_opinionated_model, random_words

PAD, EOS = DICTIONARY.pad(), DICTIONARY.eos()
TINY = (
    *("--encoder-embed-dim=16", "--encoder-ffn-embed-dim=16", "--encoder-attention-heads=2"),
    *("--decoder-embed-dim=16", "--decoder-ffn-embed-dim=16", "--decoder-attention-heads=2"),
)
LENGTHS = [0, 2, 5, 11]
Hypothesis = tuple[list[int], float, list[float]]


def translation_model(kind: str = "tf") -> nn.Module:
    return reluctant_to_end(build_opinionated_model(f"stack_transformer_{kind}_small", TINY))


def reluctant_to_end(model: Any) -> Any:
    """Make EOS improbable, so that many hypotheses reach their maximum length."""
    if not hasattr(model.decoder, "layer_norm"):
        model.decoder.output_projection.bias.data[EOS] -= 3.0
        return model
    end = model.decoder.output_projection.weight[EOS].detach()
    model.decoder.layer_norm.bias.data.copy_(-3.0 * end / end.square().sum())
    return model


def with_end(words: Tensor) -> Tensor:
    return torch.cat([words, torch.tensor([EOS])])


def pad_rows(rows: list[Tensor], side: str) -> Tensor:
    return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD, padding_side=side)


def search(
    models: list[nn.Module], sources: list[Tensor], prefixes: list[Tensor] | None, side: str = "left", **options: Any
) -> list[list[Hypothesis]]:
    """Tokens, score and scores of the tokens of all hypotheses for a batch of source sentences."""
    batch = pad_rows(sources, side)
    number = 7 + torch.arange(len(sources))  # in the data, of which the batch is a part
    sample = {"id": number, "net_input": {"src_tokens": batch, "src_lengths": batch.ne(PAD).sum(1)}}
    forced = None if prefixes is None else pad_rows(prefixes, "right")
    actual = SequenceGenerator(models, DICTIONARY, **options).generate(models, sample, prefix_tokens=forced)
    return [
        [(one["tokens"].tolist(), float(one["score"]), one["positional_scores"].tolist()) for one in sentence]
        for sentence in actual
    ]


def check(
    models: list[nn.Module], sources: list[Tensor], prefixes: list[Tensor] | None, side: str = "left", **options: Any
) -> list[list[Hypothesis]]:
    """Assert that a batch gives what its sentences give alone; returns that."""
    together = search(models, sources, prefixes, side, **options)
    for row, source in enumerate(sources):
        (alone,) = search(models, [source], None if prefixes is None else [prefixes[row]], side, **options)
        assert [tokens for tokens, *_ in together[row]] == [tokens for tokens, *_ in alone], f"sentence {row}"
        for (_, *scores), (_, *expected) in zip(together[row], alone, strict=True):
            assert scores[0] == pytest.approx(expected[0], abs=1e-6)
            assert scores[1] == pytest.approx(expected[1], abs=1e-5)
    return together


def translate_as_alone(models: list[nn.Module], prefix_size: int = 0, **options: Any) -> list[list[Hypothesis]]:
    words = [random_words(length) for length in LENGTHS]
    prefixes = None
    if prefix_size:
        prefixes = [with_end(random_words(1 + row % 4))[:prefix_size] for row in range(len(words))]
    return check(models, [with_end(row) for row in words], prefixes, **options)


def test_translation() -> None:
    actual = translate_as_alone([translation_model("nd")], beam_size=4, max_len_a=1.5, max_len_b=2)
    longest = [max(len(tokens) - 1 for tokens, *_ in sentence) for sentence in actual]
    limits = [int(1.5 * (length + 1) + 2) for length in LENGTHS]
    assert all(length <= limit for length, limit in zip(longest, limits, strict=True))
    assert sum(length == limit for length, limit in zip(longest, limits, strict=True)) >= 2


@pytest.mark.parametrize("preset", ["stack_transformer_lm_sup_cfl", "stack_lstm_lm_ns_2020"])
def test_language_model_with_prefixes(preset: str) -> None:
    """Prefixes that are longer than the maximum length, and than the other prefixes, are among them."""
    model = reluctant_to_end(build_opinionated_model(preset))
    prefixes = [random_words(length) for length in LENGTHS]
    sources = [torch.cat([torch.tensor([EOS]), prefix]) for prefix in prefixes]
    check([model], sources, prefixes, side="right", beam_size=3, max_len_a=0.5, max_len_b=3, min_len=3)


@pytest.mark.parametrize("generator", [SequenceGenerator, LengthNormalizedBeamSearchGenerator])
@pytest.mark.parametrize("preset", ["stack_transformer_lm_nd_cfl", "stack_lstm_lm_sup_cfl"])
def test_prompts_are_read_at_once(preset: str, generator: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As much as the shortest prompt has, by all models of an ensemble; the results are those of single steps."""
    models: list[Any] = [build_opinionated_model(preset), build_opinionated_model(preset)]
    prompts = pad_rows([random_words(length) for length in (5, 7, 6)], "right")
    sample = {"net_input": {"src_tokens": prompts}}
    read: list[Tensor] = []
    read_ahead = ReadsAhead.read_ahead

    def recorded(decoder: ReadsAhead, tokens: Tensor, state: dict[str, Any]) -> None:
        read.append(tokens)
        read_ahead(decoder, tokens, state)

    monkeypatch.setattr(ReadsAhead, "read_ahead", recorded)

    def generate() -> list[Any]:
        made = generator(models, DICTIONARY, beam_size=3, max_len_b=10)
        return made.generate(models, sample, prefix_tokens=prompts)

    actual = generate()
    begun = torch.cat([torch.full((3, 1), EOS), prompts[:, :5]], 1)
    assert len(read) == 2 and all(torch.equal(tokens, begun) for tokens in read)
    monkeypatch.setattr(sequence_generator, "_read_ahead", lambda ensemble: False)
    expected = generate()
    assert len(read) == 2
    for hypotheses, others in zip(actual, expected, strict=True):
        assert [x["tokens"].tolist() for x in hypotheses] == [x["tokens"].tolist() for x in others]
        for one, other in zip(hypotheses, others, strict=True):
            assert one["positional_scores"].tolist() == pytest.approx(other["positional_scores"].tolist(), abs=1e-5)


def test_a_prompt_may_be_empty() -> None:
    """Alone and in a batch with others."""
    model = build_opinionated_model("stack_transformer_lm_nd_cfl")
    prompts = pad_rows([random_words(length) for length in (0, 3)], "right")
    sample = {"net_input": {"src_tokens": prompts}, "target": prompts}
    empty, _ = SequenceGenerator([model], DICTIONARY, max_len_b=6).generate([model], sample, prefix_tokens=prompts)
    (alone,) = SequenceGenerator([model], DICTIONARY, max_len_b=6).generate(
        [model], {"net_input": {"src_tokens": prompts[:1, :0]}}
    )
    assert empty[0]["tokens"].tolist() == alone[0]["tokens"].tolist()


OPTIONS: list[dict[str, Any]] = [
    {"beam_size": 1},
    {"side": "right", "len_penalty": 0.3},
    {"normalize_scores": False, "unk_penalty": 1.0, "temperature": 0.5},
    {"min_len": 3, "max_len_b": 3},
    {"no_repeat_ngram_size": 2},
    {"prefix_size": 3, "max_len_b": 1, "max_len_a": 0.5},
    {"prefix_size": 2, "min_len": 4, "max_len_b": 5, "tokens_to_suppress": ("w3",)},
    {"match_source_len": True, "search_strategy": LengthConstrainedBeamSearch(DICTIONARY, 1, 0, 1, 0)},
    {"search_strategy": DiverseSiblingsSearch(DICTIONARY, 0.5)},
    {"search_strategy": DiverseBeamSearch(DICTIONARY, 2, 0.7)},
    {"max_len_a": -0.5, "max_len_b": 9},
    {"max_len": 9},
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "-".join(options))
def test_options(options: dict[str, Any]) -> None:
    translate_as_alone([translation_model()], **{"beam_size": 4, "max_len_a": 1, "max_len_b": 2, **options})


def test_ensemble() -> None:
    models = [translation_model(), translation_model("sup")]
    translate_as_alone(models, beam_size=4, max_len_a=1, max_len_b=2)


def test_generator_is_left_as_it_was() -> None:
    generator = SequenceGenerator([translation_model()], DICTIONARY, beam_size=2, max_len_a=1, max_len_b=2)
    strategy = generator.search
    source = with_end(random_words(3))[None]
    for _ in range(2):
        generator.generate(None, {"net_input": {"src_tokens": source}})
        assert (generator.search, generator.max_len_a, generator.max_len_b) == (strategy, 1, 2)


def test_minimal_length_above_the_maximal_length_of_one_sentence() -> None:
    sources = [with_end(random_words(length)) for length in (9, 1)]
    message = "--min-len 5 is more than the maximum length of a sentence, 4, which --max-len-a, --max-len-b"
    with pytest.raises(UserError, match=message):
        search([translation_model()], sources, None, max_len_a=1, max_len_b=2, min_len=5)


def test_model_that_returns_nan() -> None:
    model = translation_model()
    model.decoder.layer_norm.weight.data.fill_(torch.nan)
    with pytest.raises(UserError, match=r"^sentence 7: the search found no output of up to 4 tokens with"):
        search([model], [with_end(random_words(1)), with_end(random_words(5))], None, max_len_a=1, max_len_b=2)


def test_prefixes_of_left_padded_targets() -> None:
    """fairseq-generate would take the padding for the prefix, or score it."""
    target = pad_rows([with_end(random_words(length)) for length in (1, 3)], "left")
    sample = {"net_input": {"src_tokens": target}, "target": target}
    generator = SequenceGenerator([translation_model()], DICTIONARY)
    with pytest.raises(UserError, match=r"^--prefix-size .* leave out --left-pad-target"):
        generator.generate(None, sample, prefix_tokens=target[:, :1])
    with pytest.raises(UserError, match=r"^--score-reference .* leave out --left-pad-target"):
        SequenceScorer(DICTIONARY).generate([translation_model()], sample)


@pytest.mark.parametrize("size", [1, 3])
def test_no_ngram_is_repeated(size: int) -> None:
    model = build_opinionated_model("stack_transformer_lm_tf_cfl")
    start = torch.tensor([EOS])
    ((free, *_),) = search([model], [start], None, beam_size=2, max_len_b=8, len_penalty=0)
    ((tokens, *_),) = search([model], [start], None, beam_size=2, max_len_b=8, len_penalty=0, no_repeat_ngram_size=size)
    assert repeats(free[0], size)
    assert not repeats(tokens[0], size)


def test_a_prefix_may_repeat_itself() -> None:
    model = build_opinionated_model("stack_transformer_lm_tf_cfl")
    prefix = random_words(2).repeat(3)
    start = torch.cat([torch.tensor([EOS]), prefix])
    ((best, *_),) = search([model], [start], [prefix], side="right", beam_size=2, max_len_b=9, no_repeat_ngram_size=2)
    assert best[0][:6] == prefix.tolist()


def repeats(tokens: list[int], size: int) -> bool:
    ngrams = [tuple(tokens[i : i + size]) for i in range(len(tokens) - size + 1)]
    return len(set(ngrams)) < len(ngrams)
