"""Options check themselves: a value out of range is an error that names the option of the command line."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fairseq_stack_preprocess.cfl import bounded_dyck, reversal
from fairseq_stack_preprocess.cfl import language_corpus as cfl
from fairseq_stack_preprocess.errors import PrepareError
from fairseq_stack_preprocess.mt import translation_corpus as mt
from fairseq_stack_preprocess.nested import nested_corpus as nested
from fairseq_stack_preprocess.transduction import natural
from fairseq_stack_preprocess.transduction import task_corpus as transduction
from fairseq_stack_preprocess.trees import mikolov, ptb, treebank

P = Path("x")
GOOD: dict[str, Any] = {
    "cfl": cfl.Options(task="dyck"),
    "bounded": bounded_dyck.Options(),
    "reversal": reversal.Options(),
    "nested": nested.Options(),
    "mt": mt.Options("de", "en", (P,), P, P),
    "ptb": ptb.Options(P),
    "mikolov": mikolov.Options(P),
    "treebank": treebank.Options((P,), (P,), (P,)),
    "natural": natural.Options(P, P, P),
}

OUT_OF_RANGE: list[tuple[str, dict[str, Any], str]] = [
    ("cfl", {"min_length": 0}, "--min-length must be at least 1, got 0"),
    ("cfl", {"max_length": 39}, "--max-length 39 is less than --min-length 40"),
    ("cfl", {"test_max_length": 39}, "--test-max-length 39 is less than --test-min-length 40"),
    ("cfl", {"test_max_length": 10_001}, "--test-max-length must be at most 10000, got 10001"),
    ("cfl", {"train_size": 0}, "--train-size must be at least 1, got 0"),
    ("cfl", {"test_per_length": 0}, "--test-per-length must be at least 1, got 0"),
    ("cfl", {"batch_size": 0}, "--batch-size must be at least 1, got 0"),
    ("cfl", {"seed": -1}, "--seed must be at least 0, got -1"),
    ("cfl", {"test_seed": -1}, "--test-seed must be at least 0, got -1"),
    ("bounded", {"max_depth": 0}, "--max-depth must be at least 1, got 0"),
    ("bounded", {"min_length": 5, "max_length": 5}, "--max-length must be at least 6, got 5"),
    ("bounded", {"distance_max_length": 2}, "--distance-max-length must be at least 4, got 2"),
    ("bounded", {"depth_from": 9, "depth_to": 8}, "--depth-to must be at least 9, got 8"),
    ("bounded", {"bracket_types": 0}, "--bracket-types must be greater than 0 and less than 10000, got 0"),
    ("bounded", {"valid_rule": "ood"}, "--valid-rule must be one of sample, iid, got 'ood'"),
    ("bounded", {"distance_size": 0}, "--distance-size must be at least 1, got 0"),
    ("bounded", {"test_seed": -1}, "--test-seed must be at least 0, got -1"),
    ("reversal", {"symbols": 1}, "--symbols must be at least 2, got 1"),
    ("reversal", {"min_length": 0}, "--min-length must be at least 2, got 0"),
    ("reversal", {"min_length": 11}, "--min-length must be even (it is the length of w and its reversal), got 11"),
    ("reversal", {"max_length": 41}, "--max-length must be even (it is the length of w and its reversal), got 41"),
    ("reversal", {"min_length": 20, "max_length": 10}, "--max-length 10 is less than --min-length 20"),
    ("reversal", {"test_size": -1}, "--test-size must be at least 1, got -1"),
    ("nested", {"train_size": -3}, "--train-size must be at least 1, got -3"),
    ("nested", {"valid_size": 10**9}, "--valid-size must be at most 100000000, got 1000000000"),
    ("nested", {"depth": -1}, "--depth must be at least 0, got -1"),
    ("nested", {"depth": 31}, "--depth must be at most 30, got 31"),
    ("nested", {"test_depth": -2}, "--test-depth must be at least 0, got -2"),
    ("nested", {"seed": -1}, "--seed must be at least 0, got -1"),
    ("mt", {"source": "de-"}, "--source: expected letters, digits, _ and - such as de or pt-BR, got 'de-'"),
    ("mt", {"target": "de"}, "--source and --target are both de"),
    ("mt", {"train": ()}, "--train: expected at least one prefix"),
    ("mt", {"max_ratio": 0.5}, "--max-ratio must be at least 1, got 0.5"),
    ("mt", {"max_ratio": math.nan}, "--max-ratio must be at least 1, got nan"),
    ("mt", {"max_chars": 0}, "--max-chars must be at least 1, got 0"),
    ("mt", {"sample": 0}, "--sample must be at least 1, got 0"),
    ("mt", {"limit": 0}, "--limit must be at least 1, got 0"),
    ("mt", {"seed": -1}, "--seed must be at least 0, got -1"),
    ("mt", {"pieces": 1}, "--pieces must be at least 2, got 1"),
    ("mt", {"piece_threshold": -1}, "--piece-threshold must be at least 0, got -1"),
    ("mt", {"normalization": "nfd"}, "--normalization: expected one of nfkc, nfc, none, got 'nfd'"),
    ("mt", {"sample_rule": "first"}, "--sample-rule: expected one of reservoir, authors, got 'first'"),
    ("ptb", {"limit": 0}, "--limit must be at least 1, got 0"),
    ("ptb", {"valid_sections": (2, 24)}, "--valid-sections: section 02 is in train already"),
    ("ptb", {"test_sections": (24,)}, "--test-sections: section 24 is in valid already"),
    ("mikolov", {"form": "words"}, "--mikolov must be one of sentences, stream, got 'words'"),
    ("mikolov", {"limit": 0}, "--limit must be at least 1, got 0"),
    ("treebank", {"pieces": 1}, "--pieces must be at least 2, got 1"),
    ("treebank", {"rare_words": "unk"}, "--rare-words must be one of classes, keep, got 'unk'"),
    ("treebank", {"limit": 0}, "--limit must be at least 1, got 0"),
    (
        "treebank",
        {"pieces": 9, "piece_model": P},
        "--pieces trains a model and --piece-model names one: give only one of the two",
    ),
    (
        "treebank",
        {"pieces": 9, "rare_words": "keep"},
        "--rare-words is for words; it cannot be combined with --pieces or --piece-model",
    ),
    ("natural", {"most_words": 0}, "--most-words must be at least 1, got 0"),
    ("natural", {"max_length": 0}, "--max-length must be at least 1, got 0"),
    ("natural", {"limit": 0}, "--limit must be at least 1, got 0"),
]


@pytest.mark.parametrize(
    ("corpus", "options", "message"), OUT_OF_RANGE, ids=lambda value: " ".join(value) if isinstance(value, dict) else ""
)
def test_out_of_range(corpus: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(PrepareError) as caught:
        replace(GOOD[corpus], **options)
    assert str(caught.value) == message


# Options of which those that may be given depend on another one; what the message begins with.
NOT_TOGETHER: list[tuple[type[Any], dict[str, Any], str]] = [
    (cfl.Options, {}, "give either --task or --grammar"),
    (cfl.Options, {"task": "dyck", "grammar": P}, "give either --task or --grammar"),
    (cfl.Options, {"task": "dick"}, "unknown task dick; expected one of marked-reversal, "),
    (cfl.Options, {"task": "dyck", "strip_cr": True}, "--strip-cr needs --grammar"),
    (
        cfl.Options,
        {"grammar": P, "unary_start": True},
        "task parameters and --unary-start cannot be combined with --grammar",
    ),
    (
        cfl.Options,
        {"grammar": P, "parameters": {"symbol_types": 2}},
        "task parameters and --unary-start cannot be combined with --grammar",
    ),
    (
        cfl.Options,
        {"task": "count-3", "unary_start": True},
        "--unary-start is for context-free tasks; count-3 is not context-free",
    ),
    (cfl.Options, {"task": "dyck", "parameters": {"symbol_types": 2}}, "--symbol-types is not a parameter of dyck, "),
]
TRANSDUCTION: list[tuple[str, dict[str, Any], str]] = [
    ("reverse", {}, "unknown task reverse; expected one of reversal, xor, "),
    ("xor", {"test_set": "author"}, "--test-set must be authors or drawn, got 'author'"),
    ("xor", {"depth": 3}, "--depth is not an option of xor, which has --min-length, --max-length, --test-"),
    ("xor", {"symbols": 3}, "--symbols is not an option of xor"),
    ("agreement", {"max_length": 3}, "--max-length is not an option of agreement, which has --depth, --te"),
    ("reversal", {"test_max_length": 9}, "--test-max-length needs --test-set drawn; the authors' test set"),
    ("reversal", {"test_seed": 1}, "--test-seed needs --test-set drawn"),
    ("reversal", {"symbols": 4}, "--symbols 4 needs --test-set drawn; the authors' test set has 2 symbols"),
    ("reversal", {"test_size": 1001}, "--test-size must be at most 1000, got 1001"),
    ("copy", {"test_set": "authors"}, "--test-set authors: the authors drew no test set of copy; "),
    ("reversal", {"max_length": 6}, "--mean-length must be from 1 to 6, the range of lengths, got 10"),
    ("copy", {"std_length": -1.0}, "--std-length must be from 0 to 10000, got -1"),
    ("copy", {"std_length": math.nan}, "--std-length must be from 0 to 10000, got nan"),
    ("copy", {"mean_length": math.nan}, "--mean-length must be from 1 to 12, the range of lengths,"),
    ("copy", {"symbols": 1}, "--symbols must be at least 2, got 1"),
    ("xor", {"min_length": 0}, "--min-length must be at least 1, got 0"),
    ("xor", {"min_length": 13}, "--max-length 12 is less than --min-length 13"),
    ("solve_equation", {"min_length": 2}, "--min-length must be at least 3, got 2"),
    ("counting", {"test_max_length": 10_001}, "--test-max-length must be at most 10000, got 10001"),
    ("formula", {"depth": 0}, "--depth must be at least 1, got 0"),
    ("formula", {"depth": 101}, "--depth must be at most 100, got 101"),
    ("formula", {"train_size": 0}, "--train-size must be at least 1, got 0"),
    ("formula", {"seed": -1}, "--seed must be at least 0, got -1"),
    ("formula", {"test_set": "drawn", "test_seed": -1}, "--test-seed must be at least 0, got -1"),
]
NOT_TOGETHER += [(transduction.Options, {"task": task, **options}, message) for task, options, message in TRANSDUCTION]


@pytest.mark.parametrize(("kind", "options", "message"), NOT_TOGETHER)
def test_not_together(kind: type[Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(PrepareError) as caught:
        kind(**options)
    assert str(caught.value).startswith(message)
