"""In fairseq's commands, the paper's search finds what the slow search finds from whole prefixes."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.data import Dictionary
from torch import Tensor

from fairseq_stack.search import LengthNormalizedBeamSearchGenerator
from tests.end_to_end.conftest import Corpora
from tests.end_to_end.fairseq_commands import TRAINING, TRANSLATION, Output, run
from tests.search.reference import BOS, EOS, PAD, Tokens, reference_search

SEARCH = ["--beam-search", "length-normalized", "--beam", 3, "--nbest", 3, "--max-len-b", 7]
COMPUTING = ["--num-workers", 0, "--cpu"]
TASK = ["--task", "stack_translation", "-s", "src", "-t", "tgt"]
Hypotheses = list[tuple[str, float]]


def hypotheses(output: Output) -> dict[int, Hypotheses]:
    """For each sentence the outputs, and their scores to base e."""
    outputs: dict[int, Hypotheses] = {}
    for line in output.printed.splitlines():
        if line.startswith("H-"):
            name, score, text = line.split("\t")
            outputs.setdefault(int(name[2:]), []).append((text, float(score) * math.log(2)))
    return outputs


def slow_search(model: Any, dictionary: Dictionary, *source: Tensor, bos: int = EOS, prefix: Tokens = ()) -> Hypotheses:
    """The slow search with fairseq's defaults: no padding, and no empty output."""

    @torch.no_grad()
    def next_log_probs(tokens: Tokens) -> list[float]:
        output = model(*source, torch.tensor([[bos, *tokens]]))
        log_probs = model.get_normalized_probs(output, log_probs=True)[0, -1]
        if len(tokens) < len(prefix):
            forced = torch.full_like(log_probs, -math.inf)
            forced[prefix[len(tokens)]] = log_probs[prefix[len(tokens)]]
            return forced.tolist()
        log_probs[[PAD] if tokens else [PAD, EOS]] = -math.inf
        return log_probs.tolist()

    items = reference_search(next_log_probs, 3, 7)
    return [(dictionary.string(torch.tensor(item.tokens)), item.score) for item in items]


def assert_same(actual: Hypotheses, expected: Hypotheses) -> None:
    assert [text for text, _ in actual] == [text for text, _ in expected]
    assert [score for _, score in actual] == pytest.approx([score for _, score in expected], abs=1e-4)


def test_translation(corpora: Corpora, translation_model: Path) -> None:
    options = ["--path", translation_model, *TASK, *SEARCH, *COMPUTING]
    sentences = (corpora.text / "test.src").read_text()
    outputs = hypotheses(run("generate", corpora.translation, *options, "--batch-size", 4))
    (model,), _, task = checkpoint_utils.load_model_ensemble_and_task([str(translation_model)])
    model.eval()
    for number, line in enumerate(sentences.splitlines()):
        source = task.source_dictionary.encode_line(line, add_if_not_exist=False)[None].long()
        expected = slow_search(model, task.target_dictionary, source, torch.tensor([source.size(1)]))
        assert_same(outputs[number], expected)


def test_prefixes_and_references(corpora: Corpora, translation_model: Path) -> None:
    options = [corpora.translation, "--path", translation_model, *TASK, *SEARCH, *COMPUTING]
    with_prefixes = hypotheses(run("generate", *options, "--prefix-size", 2))
    scored = hypotheses(run("generate", *options, "--score-reference"))
    for number, reference in enumerate((corpora.text / "test.tgt").read_text().splitlines()):
        assert {tuple(text.split()[:2]) for text, _ in with_prefixes[number]} == {tuple(reference.split()[:2])}
        if len(reference.split()) == 1:  # the prefix has EOS
            assert [text for text, _ in with_prefixes[number]] == [reference]
        assert scored[number][0][0] == reference


@pytest.mark.parametrize("add_bos", [False, True], ids=["eos", "bos"])
def test_language_models_continue_prefixes(corpora: Corpora, language_model: Path, add_bos: bool) -> None:
    lines = ["a b", "c", "a a c b"]
    options = ["--path", language_model, "--task", "stack_language_modeling", *SEARCH, *COMPUTING]
    options += ["--buffer-size", 10, "--batch-size", 3, *["--add-bos-token"] * add_bos]
    outputs = hypotheses(run("interactive", corpora.language_modeling, *options, stdin="\n".join(lines) + "\n"))
    (model,), _, task = checkpoint_utils.load_model_ensemble_and_task([str(language_model)])
    model.eval()
    for number, line in enumerate(lines):
        prefix = task.dictionary.encode_line(line, append_eos=False, add_if_not_exist=False).tolist()
        expected = slow_search(model, task.dictionary, bos=BOS if add_bos else EOS, prefix=tuple(prefix))
        assert_same(outputs[number], expected)


def test_bleu_in_training(corpora: Corpora, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    beams: list[int] = []
    search = LengthNormalizedBeamSearchGenerator.generate

    def spy(self: LengthNormalizedBeamSearchGenerator, *args: Any, **kwargs: Any) -> Any:
        beams.append(self.beam_size)
        return search(self, *args, **kwargs)

    monkeypatch.setattr(LengthNormalizedBeamSearchGenerator, "generate", spy)
    bleu = ["--eval-bleu", "--eval-bleu-args", json.dumps({"beam": 2, "max_len_b": 7}), *SEARCH[:2]]
    bleu += ["--best-checkpoint-metric", "bleu", "--maximize-best-checkpoint-metric", "--max-update", 1]
    model = [*TRANSLATION, *TRAINING, "--task", "stack_translation"]
    run("train", corpora.translation, *model, *bleu, "--save-dir", tmp_path)
    assert set(beams) == {2}
