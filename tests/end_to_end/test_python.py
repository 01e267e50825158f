"""Trained models in Python, through fairseq's functions."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from fairseq.checkpoint_utils import load_model_ensemble_and_task

from fairseq_stack.models import StackTransformer, StackTransformerLanguageModel
from tests.end_to_end.conftest import Corpora
from tests.end_to_end.running import GENERATION, run

SENTENCES = ["a b", "c d a", "b"]


def test_load_ensemble(corpora: Corpora, translation_model: Path, language_model: Path) -> None:
    (model,), _, task = load_model_ensemble_and_task([str(translation_model)])
    assert type(model) is StackTransformer
    assert type(task).__name__ == "TranslationTask"
    (model,), _, task = load_model_ensemble_and_task([str(language_model)])
    assert type(model) is StackTransformerLanguageModel
    assert type(task).__name__ == "LanguageModelingTask"


def test_translate(corpora: Corpora, translation_model: Path) -> None:
    folder, name = str(translation_model.parent), translation_model.name
    hub = StackTransformer.from_pretrained(folder, name, data_name_or_path=str(corpora.translation))
    options = ["--path", translation_model, *GENERATION, "--batch-size", 1]
    expected = run("interactive", corpora.translation, *options, stdin="\n".join(SENTENCES) + "\n").hypotheses()
    assert hub.translate(SENTENCES, beam=4, max_len_b=10) == [expected[number] for number in range(len(SENTENCES))]


def test_sample_and_score(corpora: Corpora, language_model: Path) -> None:
    folder, name = str(language_model.parent), language_model.name
    hub = StackTransformerLanguageModel.from_pretrained(folder, name, data_name_or_path=str(corpora.language_modeling))
    assert all(text.startswith(start) for text, start in zip(hub.sample(SENTENCES, beam=2), SENTENCES, strict=True))
    scores = hub.score("a b c")["positional_scores"]
    dictionary = hub.task.dictionary
    tokens = dictionary.encode_line("a b c", append_eos=False).long()
    with torch.no_grad():
        inputs = torch.cat([torch.tensor([dictionary.eos()]), tokens[:-1]])
        logits, _ = hub.models[0](inputs[None])
    expected = logits[0].log_softmax(-1).gather(1, tokens[:, None]).flatten()
    assert scores.tolist() == pytest.approx(expected.tolist(), abs=1e-5)
    assert all(map(math.isfinite, scores.tolist()))
