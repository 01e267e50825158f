"""Options check themselves: a value out of range is an error that names the option of the command line."""

from __future__ import annotations

import dataclasses
import math
import typing
from pathlib import Path
from typing import Any

import pytest

from fairseq_stack_preprocess.cfl import bounded_dyck
from fairseq_stack_preprocess.cfl import language_corpus as cfl
from fairseq_stack_preprocess.classification import classification_corpus as classification
from fairseq_stack_preprocess.errors import PrepareError
from fairseq_stack_preprocess.lm import text_corpus as lm
from fairseq_stack_preprocess.mt import translation_corpus as mt
from fairseq_stack_preprocess.nested import nested_corpus as nested
from fairseq_stack_preprocess.transduction import task_corpus as transduction
from fairseq_stack_preprocess.transformations import transformation_corpus as transformations
from fairseq_stack_preprocess.trees import ptb, treebank

P = Path("x")
GOOD: dict[str, Any] = {
    "cfl": cfl.Options(task="dyck"),
    "bounded": bounded_dyck.Options(),
    "classification": classification.Options(P, P, P, task="rte"),
    "nested": nested.Options(),
    "mt": mt.Options("de", "en", (P,), P, P),
    "ptb": ptb.Options(P),
    "lm": lm.Options(P, P, P),
    "treebank": treebank.Options((P,), (P,), (P,)),
    "copy": transduction.Options("copy", test_set="drawn"),
    "formula": transduction.Options("formula", test_set="drawn"),
    "questions": transformations.Options("question-formation"),
    "tenses": transformations.Options("tense-reinflection"),
}
NUMBERS = {int, float, int | None, float | None}


@pytest.mark.parametrize("corpus", GOOD)
def test_no_number_is_negative(corpus: str) -> None:
    options = GOOD[corpus]
    types = typing.get_type_hints(type(options))
    names = [name for name, kind in types.items() if kind in NUMBERS]
    assert "limit" in names or "seed" in names
    for name in names:
        with pytest.raises(PrepareError, match=f"^--{name.replace('_', '-')} (is not an option|must be|-1 is less)"):
            dataclasses.replace(options, **{name: -1})


OUT_OF_RANGE: list[tuple[str, dict[str, Any], str]] = [
    ("cfl", {"min_length": 0}, "--min-length must be at least 1, got 0"),
    ("cfl", {"max_length": 39}, "--max-length 39 is less than --min-length 40"),
    ("cfl", {"test_max_length": 10_001}, "--test-max-length must be at most 10000, got 10001"),
    ("bounded", {"min_length": 5, "max_length": 5}, "--max-length must be at least 6, got 5"),
    ("bounded", {"depth_from": 9, "depth_to": 8}, "--depth-to must be at least 9, got 8"),
    ("bounded", {"bracket_types": 0}, "--bracket-types must be greater than 0 and less than 10000, got 0"),
    ("nested", {"valid_size": 10**9}, "--valid-size must be at most 100000000, got 1000000000"),
    ("nested", {"depth": 31}, "--depth must be at most 30, got 31"),
    ("mt", {"source": "de-"}, "--source: expected letters, digits, _ and - such as de or pt-BR, got 'de-'"),
    ("mt", {"target": "de"}, "--source and --target are both de"),
    ("mt", {"train": ()}, "--train: expected at least one prefix"),
    ("mt", {"max_ratio": math.nan}, "--max-ratio must be at least 1, got nan"),
    ("mt", {"normalization": "nfd"}, "--normalization: expected one of nfkc, nfc, none, got 'nfd'"),
    ("treebank", {"rare_words": "unk"}, "--rare-words must be one of classes, keep, got 'unk'"),
    ("treebank", {"pieces": 9, "rare_words": "keep"}, "--rare-words is for words; it cannot be combined with --pieces"),
    ("copy", {"test_set": "authors"}, "--test-set authors: the authors drew no test set of copy; "),
    ("copy", {"max_length": 6}, "--mean-length must be from 1 to 6, the range of lengths, got 10"),
    ("copy", {"std_length": math.nan}, "--std-length must be from 0 to 10000, got nan"),
    ("formula", {"depth": 101}, "--depth must be at most 100, got 101"),
    ("formula", {"task": "parenthesis", "depth": 21}, "--depth must be at most 20, got 21"),
    ("questions", {"task": "passives"}, "--task must be one of question-formation, tense-reinflection, got 'passives'"),
    ("questions", {"weights": "mine"}, "--weights must be one of released, grammar, got 'mine'"),
]
NEW: dict[str, Any] = {"cfl": cfl.Options, "task": transduction.Options}
NOT_TOGETHER: list[tuple[str, dict[str, Any], str]] = [
    ("cfl", {}, "give either --task or --grammar"),
    ("cfl", {"task": "dyck", "grammar": P}, "give either --task or --grammar"),
    ("cfl", {"task": "dick"}, "unknown task dick; expected one of marked-reversal, "),
    ("cfl", {"grammar": P, "parameters": {"symbol_types": 2}}, "task parameters cannot be combined with --grammar"),
    ("cfl", {"task": "dyck", "parameters": {"symbol_types": 2}}, "--symbol-types is not a parameter of dyck, "),
    (
        "cfl",
        {"task": "count-3", "parameters": {"symbol_types": 2}},
        "--symbol-types is not a parameter of count-3, which",
    ),
    ("cfl", {"task": "dyck", "parameters": {"bracket_types": 1.5}}, "--bracket-types must be an integer, got 1.5"),
    (
        "cfl",
        {"task": "dyck", "parameters": {"mean_bracket_splits": math.nan}},
        "--mean-bracket-splits must be greater ",
    ),
    ("cfl", {"task": "hardest-cfl", "parameters": {"semicolon_probability": 1}}, "--semicolon-probability must be gr"),
    ("task", {"task": "reverse"}, "unknown task reverse; expected one of reversal, xor, "),
    ("task", {"task": "xor", "test_set": "author"}, "--test-set must be authors or drawn, got 'author'"),
    ("task", {"task": "xor", "depth": 3}, "--depth is not an option of xor, which has --min-length, --max-length, "),
    ("task", {"task": "agreement", "max_length": 3}, "--max-length is not an option of agreement, which has --depth, "),
    ("task", {"task": "reversal", "test_seed": 1}, "--test-seed needs --test-set drawn"),
    ("task", {"task": "reversal", "symbols": 4}, "--symbols 4 needs --test-set drawn; the authors' test set has 2"),
    ("task", {"task": "reversal", "test_size": 1001}, "--test-size must be at most 1000, got 1001"),
    ("task", {"task": "solve_equation", "min_length": 2}, "--min-length must be at least 3, got 2"),
]


@pytest.mark.parametrize(("corpus", "options", "message"), OUT_OF_RANGE)
def test_out_of_range(corpus: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(PrepareError) as caught:
        dataclasses.replace(GOOD[corpus], **options)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(("corpus", "options", "message"), NOT_TOGETHER)
def test_not_together(corpus: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(PrepareError) as caught:
        NEW[corpus](**options)
    assert str(caught.value).startswith(message)
