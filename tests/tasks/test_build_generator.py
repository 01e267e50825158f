"""The tasks' choice of a search, in Python."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import pytest
import torch
from fairseq.dataclass.configs import GenerationConfig
from fairseq.sequence_generator import SequenceGenerator

from fairseq_stack.search import LengthNormalizedBeamSearchGenerator
from fairseq_stack.tasks.stack_translation import StackTranslationConfig, StackTranslationTask
from tests.models.building import make_dictionary
from tests.search.reference import ScriptedModel, ScriptedTable

DICTIONARY = make_dictionary(2)
MODELS: list[Any] = [ScriptedModel(DICTIONARY, ScriptedTable(len(DICTIONARY)))]
IGNORED = {
    "lenpen": 0.6,
    "unnormalized": True,
    "sampling": True,
    "sampling_topk": 5,
    "sampling_topp": 0.9,
    "diverse_beam_groups": 2,
    "diversity_rate": 0.5,
    "match_source_len": True,
    "constraints": "ordered",
    "no_repeat_ngram_size": 3,
    "print_alignment": "hard",
    "replace_unk": "dict.txt",
    "print_step": True,
    "retain_iter_history": True,
    "lm_path": "lm.pt",
}


def task_of(beam_search: str = "length-normalized") -> Any:
    return StackTranslationTask(StackTranslationConfig(beam_search=beam_search), DICTIONARY, DICTIONARY)


def test_options_arrive() -> None:
    args = GenerationConfig(beam=3, max_len_a=1.5, max_len_b=7, min_len=2, unkpen=0.5, temperature=2.0, nbest=2)
    extra = {"lm_model": None, "lm_weight": 0.0}  # what fairseq-generate passes without --lm-path
    generator = task_of().build_generator(MODELS, args, extra_gen_cls_kwargs=extra)
    assert type(generator) is LengthNormalizedBeamSearchGenerator
    assert (generator.beam_size, generator.max_len_a, generator.max_len_b) == (3, 1.5, 7)
    assert (generator.min_len, generator.unk_penalty, generator.temperature) == (2, 0.5, 2.0)


@pytest.mark.parametrize("args", [Namespace(), GenerationConfig()], ids=["namespace", "config"])
def test_defaults_are_those_of_fairseq(args: Any) -> None:
    ours, theirs = (task_of(search).build_generator(MODELS, args) for search in ("length-normalized", "fairseq"))
    assert type(theirs) is SequenceGenerator
    for name in ("beam_size", "max_len_a", "max_len_b", "min_len", "unk_penalty", "temperature"):
        assert getattr(ours, name) == getattr(theirs, name)


@pytest.mark.parametrize(("option", "value"), IGNORED.items(), ids=IGNORED)
def test_refuses_what_it_would_ignore(option: str, value: Any) -> None:
    flag = f"--{option.replace('_', '-')} {value}"
    with pytest.raises(ValueError, match=f"--beam-search length-normalized cannot .*: {flag};"):
        task_of().build_generator(MODELS, Namespace(**{option: value}))


@pytest.mark.parametrize(
    "arguments",
    [
        {"seq_gen_cls": SequenceGenerator},
        {"prefix_allowed_tokens_fn": lambda batch_id, tokens: [2]},
        {"extra_gen_cls_kwargs": {"tokens_to_suppress": ("w0",)}},
        {"extra_gen_cls_kwargs": {"lm_model": torch.nn.Linear(1, 1), "lm_weight": 1.0}},
    ],
    ids=["class", "allowed-tokens", "suppressed-tokens", "language-model"],
)
def test_refuses_arguments_it_would_ignore(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="cannot be combined with"):
        task_of().build_generator(MODELS, Namespace(), **arguments)
