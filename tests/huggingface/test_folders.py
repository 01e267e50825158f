"""Folders of transformers in the commands that score sentences: a small byte-level model, and exported models."""

from __future__ import annotations

import csv
import io
import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

pytest.importorskip("transformers")

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import BertConfig, BertLMHeadModel, GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from fairseq_stack import cli
from fairseq_stack.errors import UserError
from fairseq_stack.hub.language_model import LanguageModel
from fairseq_stack.hub.surprisals import Word, surprisals
from fairseq_stack.huggingface.language_model import HuggingFaceLanguageModel
from tests.commands.without import FAIRSEQ, run_without
from tests.documents import Document
from tests.evaluation.test_blimp import line as pair
from tests.evaluation.test_syntaxgym import suite_file
from tests.huggingface.conftest import EXAMPLES

LINES = ["The dogs bark at the cats.", "The cats that the dog sees sleep.", "Dogs don't thank the girl, they bark."] * 5
TEXTS = ["The cats don't bark.", "", "unbelievable", "  The  dog\tsees the Zebra — “naïve”, is n't it? ", "Dogs"]
END = "<|endoftext|>"
MARK = "---- the next output"


def byte_level_tokenizer(*, add_prefix_space: bool = False, **roles: str) -> PreTrainedTokenizerFast:
    """As GPT-2's, trained on a few lines."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=[END, "<s>"], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(LINES, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=END, unk_token=END, **roles)


def write_folder(folder: Path, tokenizer: PreTrainedTokenizerFast) -> Path:
    """A random model that is far from uniform, and its tokenizer."""
    torch.manual_seed(1)
    sizes = {"vocab_size": len(tokenizer), "n_positions": 100, "n_embd": 16, "n_layer": 2, "n_head": 2}
    special = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    GPT2LMHeadModel(GPT2Config(**sizes, **special, initializer_range=0.5)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("folders") / "gpt2", byte_level_tokenizer(bos_token=END))


@torch.no_grad()
def next_tokens(folder: Path, begin: int, text: str) -> tuple[list[int], Tensor]:
    """The tokens of a sentence, and the log-probabilities (n + 1, V) of what follows each of its beginnings."""
    model, tokenizer = GPT2LMHeadModel.from_pretrained(folder), PreTrainedTokenizerFast.from_pretrained(folder)
    tokens = tokenizer(text).input_ids
    return tokens, model(torch.tensor([[begin, *tokens]])).logits[0].double().log_softmax(-1)


def words_of(model: Any, texts: list[str], **options: Any) -> list[list[Word]]:
    return list(surprisals(model, texts, **options))


@pytest.mark.parametrize(
    ("roles", "begin", "prefix"),
    [({"bos_token": END}, 0, False), ({}, 0, False), ({"bos_token": "<s>"}, 1, False), ({"bos_token": END}, 0, True)],
    ids=["one-token", "no-beginning", "two-tokens", "prefix-space"],
)
def test_log_probabilities_are_those_of_transformers(
    roles: dict[str, str], begin: int, prefix: bool, tmp_path: Path
) -> None:
    folder = write_folder(tmp_path / "model", byte_level_tokenizer(add_prefix_space=prefix, **roles))
    scored = words_of(HuggingFaceLanguageModel(folder), TEXTS, max_tokens=60)
    for text, words in zip(TEXTS, scored, strict=True):
        tokens, log_probs = next_tokens(folder, begin, " ".join(text.split()))
        of_tokens = [-float(log_probs[place, token]) for place, token in enumerate([*tokens, 0])]
        assert [word.text for word in words] == [*text.split(), END]
        assert sum(word.num_tokens for word in words) == len(of_tokens)
        remaining = iter(of_tokens)
        expected = [math.fsum(next(remaining) for _ in range(word.num_tokens)) for word in words]
        assert [word.surprisal for word in words] == pytest.approx(expected, abs=1e-4)
        assert not any(word.is_unknown for word in words)


def test_words_begin_at_spaces(gpt2: Path) -> None:
    (words,) = words_of(HuggingFaceLanguageModel(gpt2), ["unbelievable cats don't"])
    tokenizer = PreTrainedTokenizerFast.from_pretrained(gpt2)
    sizes = [len(tokenizer.tokenize(part)) for part in ("unbelievable", " cats", " don't", END)]
    assert sizes[0] > 1 < sizes[2]
    assert [word.num_tokens for word in words] == sizes


def test_corrected_surprisals(gpt2: Path) -> None:
    """By the formula; before a first word without a mark, every token begins a word."""
    tokenizer = PreTrainedTokenizerFast.from_pretrained(gpt2)
    begins = [0, *(index for token, index in tokenizer.get_vocab().items() if token.startswith("Ġ"))]
    text = "The unbelievable cats bark"
    plain, corrected = (
        words_of(HuggingFaceLanguageModel(gpt2), [text], correct_word_ends=correct)[0] for correct in (False, True)
    )
    _, log_probs = next_tokens(gpt2, 0, text)
    place, before = 0, 0.0
    for of_pieces, of_word in zip(plain[:-1], corrected[:-1], strict=True):
        place += of_pieces.num_tokens
        after = float(log_probs[place, begins].logsumexp(0))
        assert of_word.surprisal == pytest.approx(of_pieces.surprisal - after + before, abs=1e-4)
        before = after
    assert corrected[-1].surprisal == pytest.approx(plain[-1].surprisal + before, abs=1e-4)


@pytest.mark.parametrize("checkpoint", ["lstm-nd-unmarked-reversal", "tf-sup-marked-reversal", "language_model"])
def test_exported_models(checkpoint: str, exported: Any, request: pytest.FixtureRequest) -> None:
    """Their surprisals are those of the checkpoint, also of words that it does not know."""
    own = EXAMPLES / checkpoint
    model = exported(own if own.exists() else request.getfixturevalue(checkpoint))
    texts = ["0 1 0", "", "1 # 1"] if own.exists() else ["a b c", "", "zebra d", "c"]
    texts = [text.replace("#", "") for text in texts] if "unmarked" in checkpoint else texts
    folder = HuggingFaceLanguageModel(model.folder)
    for words, expected in zip(words_of(folder, texts), words_of(model.hub, texts), strict=True):
        assert [(word.text, word.is_unknown) for word in words] == [(word.text, word.is_unknown) for word in expected]
        assert [word.surprisal for word in words] == pytest.approx([word.surprisal for word in expected], abs=1e-5)
    with pytest.raises(UserError, match="whose surprisals need no correction"):
        words_of(folder, texts, correct_word_ends=True)


@pytest.mark.parametrize("correct", [False, True])
def test_exported_models_of_pieces(correct: bool, piece_language_model: Path, exported: Any) -> None:
    model = exported(piece_language_model)
    folder, texts = HuggingFaceLanguageModel(model.folder), ["abc  cabba b", "", "a bab Zebra"]
    scored, expected = (words_of(each, texts, correct_word_ends=correct) for each in (folder, model.hub))
    for words, others in zip(scored, expected, strict=True):
        facts, other_facts = (
            [(word.text, word.num_tokens, word.is_unknown) for word in each] for each in (words, others)
        )
        assert facts == other_facts
        assert [word.surprisal for word in words] == pytest.approx([word.surprisal for word in others], abs=1e-5)
    assert any(word.is_unknown for word in scored[2])
    assert max(word.num_tokens for words in scored for word in words) > 1


def table(printed: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(printed), delimiter="\t", quoting=csv.QUOTE_NONE))


def test_the_section(gpt2: Path, tmp_path: Path) -> None:
    """Its commands and its program, without fairseq, in one process: transformers takes seconds to import."""
    (tmp_path / "gpt2").symlink_to(gpt2)
    (tmp_path / "blimp" / "data").mkdir(parents=True)
    (tmp_path / "blimp" / "data" / "agreement.jsonl").write_text(pair("The dogs bark."))
    (tmp_path / "test_suites" / "json").mkdir(parents=True)
    suite_file(tmp_path / "test_suites" / "json" / "cleft.json")
    section = Document("docs/surprisal.md", section="10. A baseline from Hugging Face")
    (commands,), (program,) = section.blocks("bash"), section.blocks("py")
    echo, *ours = commands.splitlines()
    text = echo.split("'")[1]
    (tmp_path / "raw.txt").write_text(f"{text}\n")
    programs = "\nprint(MARK)\n".join([f"MARK = {MARK!r}", *map(running, ours), program])
    _, *outputs, of_program = run_without(FAIRSEQ, programs, folder=tmp_path).split(f"{MARK}\n")
    (words,) = words_of(HuggingFaceLanguageModel(gpt2), [text], correct_word_ends=True)
    bits = [float(row["surprisal_bits"]) for row in table(outputs[0])]
    assert bits == pytest.approx([word.surprisal / math.log(2) for word in words[:-1]], abs=1e-4)
    blimp = json.loads((tmp_path / "gpt2-blimp.json").read_text())
    parameters = sum(parameter.numel() for parameter in HuggingFaceLanguageModel(gpt2).parameters())
    assert blimp["model"] == {"checkpoint": "gpt2", "arch": "GPT2LMHeadModel", "parameters": parameters}
    assert (tmp_path / "gpt2-suites.json").exists() and (tmp_path / "baseline.png").exists()
    assert of_program.split()[::2] == [*text.split(), END]


def running(command: str) -> str:
    """A program that runs a command of the page."""
    arguments = command.partition(" > ")[0].split()[1:]
    return f"from fairseq_stack import cli\nassert cli.main({arguments}) == 0"


@pytest.mark.parametrize(("options", "end"), [([], [0]), (["--without-end"], [])], ids=["end", "without-end"])
def test_blimp_with_and_without_the_end(options: list[str], end: list[int], gpt2: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs.jsonl").write_text(pair("The dogs bark."))
    rows = tmp_path / "rows.csv"
    outputs = ["--csv", str(rows), "--cpu"]
    assert cli.main(["evaluate-blimp", str(gpt2), "--blimp", str(tmp_path), *options, *outputs]) == 0
    (row,) = csv.DictReader(rows.read_text().splitlines())
    tokens, log_probs = next_tokens(gpt2, 0, "The dogs bark.")
    expected = sum(float(log_probs[place, token]) for place, token in enumerate([*tokens, *end]))
    assert float(row["log_p_good"]) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--data", "data"], "--data: {} is a Hugging Face folder and needs no other; leave this out"),
        (["--user-dir", "package"], "--user-dir: {} is a Hugging Face folder"),
        (["--beam", "5"], "--beam: the model does not parse sentences"),
    ],
)
def test_options_of_checkpoints(
    options: list[str], message: str, gpt2: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text").write_text("Dogs bark.\n")
    assert cli.main(["surprisal", str(gpt2), str(tmp_path / "text"), *options]) == 2
    printed = capsys.readouterr()
    assert message.format(gpt2) in printed.err
    assert (printed.err.count("\n"), printed.out) == (1, "")


def changed(folder: Path, gpt2: Path, what: str) -> Path:
    """A folder that cannot be used."""
    tokenizer = byte_level_tokenizer(bos_token=END)
    if what == "without-an-end":
        tokenizer.eos_token = None
    if what != "without-a-tokenizer":
        tokenizer.save_pretrained(folder)
    model: Any = GPT2LMHeadModel.from_pretrained(gpt2)
    if what == "bidirectional":
        sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
        model = BertLMHeadModel(BertConfig(vocab_size=len(tokenizer), initializer_range=0.5, **sizes))
    parameters = model.state_dict()
    if what == "without-a-parameter":
        del parameters["transformer.h.1.mlp.c_fc.weight"]
    model.save_pretrained(folder, state_dict=parameters)
    if what == "of-another-architecture":
        (folder / "config.json").write_text('{"model_type": "none"}')
    return folder


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("without-a-tokenizer", "has no tokenizer; expected tokenizer.json"),
        ("without-an-end", "has no token that ends a text"),
        ("bidirectional", "reads what follows a token; expected a causal language model"),
        ("without-a-parameter", "lacks parameters of the model, such as transformer.h.1.mlp.c_fc.weight"),
        ("of-another-architecture", "cannot be loaded as a causal language model of transformers: "),
    ],
)
def test_folders_that_cannot_be_used(what: str, message: str, gpt2: Path, tmp_path: Path) -> None:
    folder = changed(tmp_path / "model", gpt2, what)
    with pytest.raises(UserError, match=f"{folder}.* {message}") as caught:
        HuggingFaceLanguageModel(folder)
    assert "\n" not in str(caught.value)


def test_an_export_without_its_tokenizer(tmp_path: Path) -> None:
    folder = shutil.copytree(
        EXAMPLES.parent / "huggingface/tf-nd-dyck", tmp_path / "copy", ignore=shutil.ignore_patterns("token*")
    )
    with pytest.raises(UserError, match=f"{folder}.*: the tokenizer has no files; expected tokenizer.json"):
        HuggingFaceLanguageModel(folder)


def test_sentences_that_do_not_fit(gpt2: Path, exported: Any) -> None:
    model: LanguageModel = HuggingFaceLanguageModel(gpt2)
    with pytest.raises(UserError, match=r"sentence 2 .* has \d+ tokens with its end; the model accepts 100"):
        words_of(model, ["Dogs", "bark " * 100])
    with pytest.raises(UserError, match=r"'Dogs.*': the tokenizer of .* reserves <\|endoftext\|>; leave it out"):
        words_of(model, [f"Dogs {END}"])
    words = HuggingFaceLanguageModel(exported(EXAMPLES / "tf-sup-marked-reversal").folder)
    with pytest.raises(UserError, match=r"sentence 1 .*: the dictionary of the model lacks '7'"):
        words_of(words, ["0 7"])
    with pytest.raises(UserError, match="makes 2 tokens of 1 words, and does not mark those that begin words"):
        words_of(words, ["0</s>"])
    with pytest.raises(UserError, match=r"'0 <pad> 1': the tokenizer of .* reserves <pad>; leave it out"):
        words_of(words, ["0 <pad> 1"])
