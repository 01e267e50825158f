"""The tasks' choice of a search, in Python."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from typing import Any

import pytest
import torch
from fairseq.dataclass.configs import GenerationConfig
from fairseq.sequence_generator import SequenceGenerator
from fairseq.sequence_scorer import SequenceScorer

from fairseq_stack.search import LengthNormalizedBeamSearchGenerator
from fairseq_stack.tasks import (
    StackLanguageModelingConfig,
    StackLanguageModelingTask,
    StackTranslationConfig,
    StackTranslationTask,
)
from tests.search.reference import (
    ScriptedModel,
    ScriptedTable,
    make_dictionary,
)


def translation_task(beam_search: str = "length-normalized") -> StackTranslationTask:
    dictionary = make_dictionary(2)
    return StackTranslationTask(StackTranslationConfig(beam_search=beam_search), dictionary, dictionary)


def language_modeling_task(beam_search: str = "length-normalized") -> StackLanguageModelingTask:
    return StackLanguageModelingTask(StackLanguageModelingConfig(beam_search=beam_search), make_dictionary(2))


def scripted_models() -> list[Any]:
    dictionary = make_dictionary(2)
    return [ScriptedModel(dictionary, ScriptedTable(len(dictionary)))]


both_tasks = pytest.mark.parametrize(
    "make_task", [translation_task, language_modeling_task], ids=["translation", "language-modeling"]
)


class TestBuildGenerator:
    @both_tasks
    def test_options_arrive(self, make_task: Callable[..., Any]) -> None:
        args = GenerationConfig(beam=3, max_len_a=1.5, max_len_b=7, min_len=2, unkpen=0.5, temperature=2.0, nbest=2)
        extra = {"lm_model": None, "lm_weight": 0.0}  # what fairseq-generate passes without --lm-path
        generator = make_task().build_generator(scripted_models(), args, extra_gen_cls_kwargs=extra)
        assert type(generator) is LengthNormalizedBeamSearchGenerator
        assert (generator.beam_size, generator.max_len_a, generator.max_len_b) == (3, 1.5, 7)
        assert (generator.min_len, generator.unk_penalty, generator.temperature) == (2, 0.5, 2.0)

    @both_tasks
    @pytest.mark.parametrize("args", [Namespace(), GenerationConfig()], ids=["namespace", "config"])
    def test_defaults_are_those_of_fairseq(self, make_task: Callable[..., Any], args: Any) -> None:
        ours = make_task().build_generator(scripted_models(), args)
        theirs = make_task("fairseq").build_generator(scripted_models(), args)
        assert type(theirs) is SequenceGenerator
        for name in ("beam_size", "max_len_a", "max_len_b", "min_len", "unk_penalty", "temperature"):
            assert getattr(ours, name) == getattr(theirs, name)

    @both_tasks
    def test_search_of_fairseq_is_the_default(self, make_task: Callable[..., Any]) -> None:
        assert str(StackTranslationConfig().beam_search) == "fairseq"
        assert str(StackLanguageModelingConfig().beam_search) == "fairseq"
        args = GenerationConfig(lenpen=0.5, no_repeat_ngram_size=2)
        assert type(make_task("fairseq").build_generator(scripted_models(), args)) is SequenceGenerator

    @both_tasks
    def test_scoring_of_references_remains(self, make_task: Callable[..., Any]) -> None:
        args = GenerationConfig(score_reference=True, sampling=True)
        assert type(make_task().build_generator(scripted_models(), args)) is SequenceScorer

    @both_tasks
    @pytest.mark.parametrize(
        ("option", "value"),
        [
            ("lenpen", 0.6),
            ("unnormalized", True),
            ("sampling", True),
            ("sampling_topk", 5),
            ("sampling_topp", 0.9),
            ("diverse_beam_groups", 2),
            ("diversity_rate", 0.5),
            ("match_source_len", True),
            ("constraints", "ordered"),
            ("no_repeat_ngram_size", 3),
            ("print_alignment", "hard"),
            ("print_step", True),
            ("retain_iter_history", True),
            ("lm_path", "lm.pt"),
        ],
    )
    def test_refuses_what_it_would_ignore(self, make_task: Callable[..., Any], option: str, value: Any) -> None:
        flag = f"--{option.replace('_', '-')} {value}"
        with pytest.raises(ValueError, match=f"--beam-search length-normalized cannot .*: {flag};"):
            make_task().build_generator(scripted_models(), Namespace(**{option: value}))

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
    def test_refuses_arguments_it_would_ignore(self, arguments: dict[str, Any]) -> None:
        with pytest.raises(ValueError, match="cannot be combined with"):
            translation_task().build_generator(scripted_models(), Namespace(), **arguments)
