"""What Python and the C sources of the kernels must agree on: constants. Structs are read from the header."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest

from fairseq_stack.ops import _native
from fairseq_stack.ops.controllers.setup import GATES, MEMORIES
from fairseq_stack.ops.dropout import BLOCK
from fairseq_stack.ops.nondeterministic import _log_weights
from fairseq_stack.ops.recurrent import native as recurrent
from tests.conftest import REPOSITORY

FOLDER = REPOSITORY / "fairseq_stack" / "ops" / "_native" / "src"
TEXT = "\n".join(path.read_text(encoding="utf-8") for path in sorted(FOLDER.iterdir()))


def only_match(pattern: str) -> re.Match[str]:
    (results,) = re.finditer(pattern, TEXT, flags=re.MULTILINE)
    return results


def test_range_in_which_float64_is_exact() -> None:
    pattern = r"^#define WIDEST_RANGE \(sizeof\(real\) == 4 \? \d+ : (\d+)\)$"
    assert float(only_match(pattern)[1]) == _log_weights.EXACT_RANGE


def test_lowest_logarithm() -> None:
    assert float(only_match(r"^#define LOWEST_LOG \((-\d+)\)$")[1]) == _log_weights.LOWEST_LOG


def test_sequences_that_advance_together() -> None:
    assert int(only_match(r"^#define MOST_TOGETHER (\d+)$")[1]) == recurrent._TOGETHER


def test_version_of_the_interface() -> None:
    assert int(only_match(r"^int fss_interface\(void\) \{ return (\d+); \}$")[1]) == _native.INTERFACE


@pytest.mark.parametrize(("prefix", "names"), [("CONTROLLER", GATES), ("MEMORY", MEMORIES)])
def test_numbers_of_controllers_and_memories(prefix: str, names: Iterable[str]) -> None:
    numbered = only_match(rf"^enum \{{ ({prefix}_.*) \}};$")[1]
    assert numbered == ", ".join(f"{prefix}_{name.upper()}" for name in names)


def test_factors_of_dropout_in_a_block() -> None:
    assert int(only_match(r"^#define DROPOUT_BLOCK (\d+)$")[1]) == BLOCK
