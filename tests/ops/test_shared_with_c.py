"""What Python and the C sources of the kernels must agree on: constants, and the fields of structs."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterable

import pytest

from fairseq_stack.ops import _native
from fairseq_stack.ops.controllers import native as controllers
from fairseq_stack.ops.controllers.setup import GATES, MEMORIES
from fairseq_stack.ops.nondeterministic import _log_weights, _native_excursions, _native_step, native, window
from fairseq_stack.ops.recurrent import native as recurrent
from fairseq_stack.ops.stratification import _native_step as stratification_step
from fairseq_stack.ops.superposition import _native_step as superposition_step
from fairseq_stack.ops.superposition import native as superposition
from tests.conftest import REPOSITORY

FOLDER = REPOSITORY / "fairseq_stack" / "ops" / "_native" / "src"
TEXT = "\n".join(path.read_text(encoding="utf-8") for path in sorted(FOLDER.iterdir()))
CTYPES = {"int64_t": ctypes.c_int64, "*": ctypes.c_void_p, "**": ctypes.c_void_p}


def only_match(pattern: str) -> re.Match[str]:
    (found,) = re.finditer(pattern, TEXT, flags=re.MULTILINE)
    return found


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


@pytest.mark.parametrize(
    ("name", "structure"),
    [
        ("ctrl_call", controllers._Call),
        ("nd_best_call", _native_excursions.Call),
        ("nd_call", native._Call),
        ("nd_step_call", _native_step.Call),
        ("nd_window_call", window.Call),
        ("rnn_call", recurrent._Call),
        ("rnn_stack", recurrent._Stack),
        ("sup_call", superposition._Call),
        ("sup_step_call", superposition_step.Call),
        ("strat_step_call", stratification_step.Call),
        ("resources", _native._Resources),
    ],
)
def test_fields_of_structs(name: str, structure: type[ctypes.Structure]) -> None:
    body = re.sub(r"(?s)/\*.*?\*/", "", only_match(rf"^struct {name} \{{\n((?:    .*\n)+)\}};$")[1])
    fields = []
    declarations = re.sub(r"\bconst\b|\bstruct\s|\s+(?=\*)", "", body).split(";")[:-1]
    for declaration in declarations:  # such as "void*push, *replace"
        kind, names = re.split(r"(?=\*)|\s", declaration.strip(), maxsplit=1)
        for stars, name in re.findall(r"(\**)(\w+)", names):
            fields.append((name, CTYPES[stars or kind]))
    assert fields == [(field[0], field[1]) for field in structure._fields_]
