"""Trained models in Python: what the README's snippet does, and more."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.hub_utils import GeneratorHubInterface

from fairseq_stack.errors import UserError
from fairseq_stack.hub.interface import LanguageModelHub, TranslationHub, load
from fairseq_stack.hub.surprisals import surprisals
from fairseq_stack.inspection.sentences import sentence_of_text
from fairseq_stack.models import StackTransformer, StackTransformerLanguageModel
from fairseq_stack_preprocess.mt.translation_corpus import prepare
from tests.conftest import REPOSITORY
from tests.end_to_end.conftest import Corpora
from tests.end_to_end.fairseq_commands import GENERATION, TRAINING, TRANSLATION, run
from tests.preprocess.mt.pairs import options_for, write_pairs

STRINGS = ["a b", "c d a", "b"]


@pytest.fixture(scope="module")
def handed_on(translation_model: Path, language_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders of both models where nothing else of their training is."""
    folder = tmp_path_factory.mktemp("elsewhere")
    for name, checkpoint in (("mt", translation_model), ("lm", language_model)):
        shutil.copytree(checkpoint.parent, folder / name)
    return folder


@pytest.fixture(scope="module")
def translator(handed_on: Path) -> TranslationHub:
    hub = StackTransformer.from_pretrained(handed_on / "mt")
    assert isinstance(hub, TranslationHub)
    return hub


@pytest.fixture(scope="module")
def scorer(handed_on: Path) -> LanguageModelHub:
    hub = StackTransformerLanguageModel.from_pretrained(str(handed_on / "lm"), "checkpoint_last.pt")
    assert isinstance(hub, LanguageModelHub)
    return hub


def test_an_ensemble_of_language_models_averages_probabilities(handed_on: Path) -> None:
    path = handed_on / "lm" / "checkpoint_last.pt"
    hub = load(f"{path}:{path}")
    assert isinstance(hub, LanguageModelHub)
    both = hub.models
    for parameter in both[1].parameters():
        parameter.data += 0.5 * torch.randn_like(parameter)
    targets = torch.tensor([hub.encode(text).tolist() for text in ("a b c", "d a a")])
    together, alone = hub.log_probabilities(targets), []
    for model in both:
        hub.models = torch.nn.ModuleList([model])
        alone.append(hub.log_probabilities(targets).exp())
    assert not torch.allclose(alone[0], alone[1], atol=0.01)
    assert torch.allclose(together.exp(), (alone[0] + alone[1]) / 2, atol=1e-6)


def test_translate_as_fairseq_interactive(handed_on: Path, translator: TranslationHub) -> None:
    """Both without the data."""
    path = handed_on / "mt" / "checkpoint_best.pt"
    options = ["--path", path, "--source-lang", "src", "--target-lang", "tgt", *GENERATION, "--batch-size", 1]
    expected = run("interactive", path.parent, *options, stdin="\n".join(STRINGS) + "\n").hypotheses()
    assert translator.translate(STRINGS, beam=4, max_len_b=10) == [expected[number] for number in range(len(STRINGS))]
    assert translator.translate(STRINGS[0], beam=4, max_len_b=10) == expected[0]


def test_score_translations_as_fairseq_validate(corpora: Corpora, handed_on: Path, translator: TranslationHub) -> None:
    sources, targets = ((corpora.text / f"test.{side}").read_text().splitlines() for side in ("src", "tgt"))
    options = ["--task", "translation", "--path", handed_on / "mt" / "checkpoint_best.pt", "--valid-subset", "test"]
    (expected,) = run("validate", corpora.translation, *options, "--max-tokens", 100, "--cpu").validation_losses()
    scores = translator.score(sources, targets)
    assert [len(score["positional_scores"]) for score in scores] == [len(target.split()) + 1 for target in targets]
    assert mean_loss(scores) == pytest.approx(expected, abs=2e-3)  # printed with three decimals
    one = translator.score(sources[3], targets[3])
    assert one["positional_scores"].tolist() == pytest.approx(scores[3]["positional_scores"].tolist(), abs=1e-5)


def test_unknown_words_are_named(scorer: LanguageModelHub, caplog: pytest.LogCaptureFixture) -> None:
    scorer.score(["a b", "a zzz <unk>"])
    assert caplog.messages == ["the model does not know 'zzz', and reads <unk> there"]


def mean_loss(scores: list[dict]) -> float:
    """The mean negative log-probability of a token, to base 2."""
    tokens = [float(score) for sentence in scores for score in sentence["positional_scores"]]
    return -sum(tokens) / len(tokens) / math.log(2)


def test_sample_continues(scorer: LanguageModelHub) -> None:
    assert all(text.startswith(start) for text, start in zip(scorer.sample(STRINGS, beam=2), STRINGS, strict=True))
    with pytest.raises(UserError, match="does not translate"):
        scorer.translate("a b")


@pytest.mark.parametrize("options", [{"beam": 1}, {"beam": 4, "lenpen": 0.3, "nbest": 2}], ids=["greedy", "beam"])
def test_generate_as_fairseq(options: dict[str, Any], translator: TranslationHub, scorer: LanguageModelHub) -> None:
    """The same search: fairseq's method copies the configuration instead, and keeps what autograd needs."""
    for hub in (translator, scorer):
        tokens = [hub.encode(text) for text in STRINGS]
        expected = GeneratorHubInterface.generate(hub, tokens, max_len_b=10, **options)
        actual = [*hub.generate(tokens[:2], max_len_b=10, **options), hub.generate(tokens[2], max_len_b=10, **options)]
        for hypotheses, as_fairseq in zip(actual, expected, strict=True):
            assert [x["tokens"].tolist() for x in hypotheses] == [x["tokens"].tolist() for x in as_fairseq]
            for one, other in zip(hypotheses, as_fairseq, strict=True):
                torch.testing.assert_close(one["positional_scores"], other["positional_scores"])


@pytest.mark.parametrize(
    "name", ["tf-sup-marked-reversal", "tf-nd-dyck", "lstm-nd-marked-reversal", "tf-nd-nested-translation", "stock"]
)
def test_gradients_at_what_was_generated(name: str, stock_model: Path) -> None:
    """Autograd takes the outputs, and what a model keeps after its first use."""
    hub = load(stock_model if name == "stock" else REPOSITORY / "examples" / "models" / name)
    source = hub.encode(" ".join(hub.src_dict.symbols[5:8]))
    (best, *_) = hub.generate(source, beam=2, max_len_b=6)
    tokens, model = best["tokens"].unsqueeze(0), hub.models[0]
    inputs = [source.unsqueeze(0), torch.tensor([len(source)])] if isinstance(hub, TranslationHub) else []
    scores = model.get_normalized_probs(model(*inputs, tokens.roll(1, 1)), log_probs=True)
    weights = torch.zeros(tokens.size(1)).copy_(best["positional_scores"]).requires_grad_()
    (scores.gather(2, tokens.unsqueeze(2)).squeeze() * weights * best["positional_scores"].neg_()).sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters() if parameter.grad is not None)
    assert any(parameter.grad is not None and parameter.grad.any() for parameter in model.parameters())


def test_longer_than_a_batch_in_training(handed_on: Path) -> None:
    """--max-tokens of the training run does not limit one sentence."""
    hub = load(handed_on / "mt", max_tokens=3)
    assert isinstance(hub, TranslationHub)
    sentence = "a b c d a b"
    assert hub.translate([sentence, "a"], max_len_b=3)[1] == hub.translate("a", max_len_b=3)
    assert len(hub.score(sentence, "B A")["positional_scores"]) == 3


def test_a_name_with_a_colon(handed_on: Path, tmp_path: Path) -> None:
    """A file of the name is one checkpoint. fairseq cannot take such a folder for the data."""
    shutil.copytree(handed_on / "lm", tmp_path / "lm")
    (tmp_path / "lm" / "checkpoint_last.pt").rename(tmp_path / "lm" / "12:30.pt")
    assert len(load(tmp_path / "lm" / "12:30.pt").models) == 1
    assert len(StackTransformerLanguageModel.from_pretrained(tmp_path / "lm", "12:30.pt").models) == 1
    (tmp_path / "lm").rename(tmp_path / "12:30")
    with pytest.raises(UserError, match="12:30 has ':' in its name"):
        load(tmp_path / "12:30")
    assert len(load(tmp_path / "12:30", handed_on / "lm").models) == 1


@pytest.mark.parametrize("save_bpe", [False, True], ids=["prepared", "own"])
def test_raw_text(tmp_path: Path, save_bpe: bool) -> None:
    """The model gets the pieces of the corpus; with --bpe, it gets the pieces of the model that the option names."""
    pairs = [(f"Der Satz Nummer {i} .", f"sentence number {i}!") for i in range(30)]
    prepare(options_for(write_pairs(tmp_path / "c", pairs), pieces=60, binarise=True), tmp_path / "corpus")
    bpe = ["--bpe", "sentencepiece", "--sentencepiece-model", tmp_path / "corpus" / "sentencepiece.de.model"]
    training = [*TRANSLATION, *TRAINING, "--max-epoch", 1, "--save-dir", tmp_path / "model"]
    run("train", tmp_path / "corpus" / "data-bin", *training, *(bpe if save_bpe else []))
    (tmp_path / "corpus").rename(tmp_path / "gone")
    overrides = {"sentencepiece_model": str(tmp_path / "model" / "sentencepiece.bpe.model")} if save_bpe else {}
    hub = StackTransformer.from_pretrained(tmp_path / "model", **overrides)
    assert isinstance(hub, TranslationHub)
    pieces = (tmp_path / "gone" / "pieces" / "train.de").read_text(encoding="utf-8").splitlines()
    for (sentence, _), expected in zip(pairs, pieces, strict=True):
        assert hub.src_dict.string(hub.encode(sentence)) == expected
        assert hub.decode(hub.encode(sentence)) == sentence
    assert "\u2581" not in hub.translate(pairs[0][0], max_len_b=5)
    assert math.isfinite(hub.score(*pairs[0])["score"])
    read = sentence_of_text(hub, "Der Satz \u2603 .", "a \u2603 !")
    assert read.target is not None
    assert hub.src_dict.unk() in read.source and hub.tgt_dict.unk() in read.target, "pieces that are unknown are <unk>"


def test_mistakes(handed_on: Path, translator: TranslationHub, scorer: LanguageModelHub, tmp_path: Path) -> None:
    lm, mt = handed_on / "lm", handed_on / "mt"
    too_long = " ".join("a" * 2000)
    calls: list[tuple[str, Callable[[], Any]]] = [
        ("holds a StackTransformerLanguageModel, not a St", lambda: StackTransformer.from_pretrained(lm)),
        (r"average\.pt does not exist", lambda: StackTransformer.from_pretrained(mt, "average.pt")),
        (r"has neither checkpoint_best\.pt nor checkpoint_last\.pt", lambda: load(tmp_path)),
        (f"{tmp_path} has no dictionary", lambda: load(mt, tmp_path)),
        ("cannot be loaded with the data of", lambda: load(mt, lm)),
        ("^beams, temperatur: expected options of f", lambda: scorer.sample("a", beams=1, temperatur=2)),
        ("one translation for each sentence", lambda: translator.score(["a", "b"], ["A"])),
        (r"sentence 2 has 2,001 tokens; the model accepts at most \d", lambda: translator.translate(["a", too_long])),
        (r"sentence 1 has 2,001 tokens; the model accepts at most \d", lambda: scorer.score(too_long)),
        (r"sentence 1 has 2,001 tokens; the model accepts at most \d", lambda: scorer.sample(too_long)),
        (r"sentence 1 has 2,001 tokens; the model accepts at most \d", lambda: translator.score(too_long, "A")),
    ]
    for message, call in calls:
        with pytest.raises(UserError, match=message):
            call()


def test_words_that_fairseq_reserves(translator: TranslationHub, scorer: LanguageModelHub) -> None:
    """Padding in a sentence would be hidden from the model, and not be scored."""
    text = "a <pad> b"
    calls: list[Callable[[], Any]] = [
        lambda: scorer.score(text),
        lambda: list(surprisals(scorer, ["a", text])),
        lambda: translator.translate(text),
        lambda: translator.score("a", text),
    ]
    for call in calls:
        with pytest.raises(UserError, match=f"^'{text}': fairseq reserves the symbol <pad>; it cannot be a word"):
            call()


def test_without_dictionaries_beside_the_checkpoint(translation_model: Path, tmp_path: Path) -> None:
    """The folder of the training data serves while it exists."""
    shutil.copy(translation_model, tmp_path / "checkpoint_best.pt")
    assert load(tmp_path / "checkpoint_best.pt").translate("a b", max_len_b=3) is not None
