"""The rooms of the package for data: who may import whom, and the one shape of a corpus."""

from __future__ import annotations

import dataclasses
import graphlib
import importlib
import inspect
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import pytest

import fairseq_stack_preprocess
from tests.test_architecture import imported_names, is_within, python_files

PACKAGE = fairseq_stack_preprocess.__name__
FOLDER = Path(fairseq_stack_preprocess.__file__).parent
GROUND_FLOOR = {"__init__", "errors", "layout", "progress"}
FOUNDATION = {*GROUND_FLOOR, "text"}
# What each room imports of the others; a new room of corpora needs no row.
ALLOWED = {**{name: set[str]() for name in GROUND_FLOOR}, "text": GROUND_FLOOR}


def module_name(path: Path) -> str:
    """The name below the package: ``text.streams``, or ``text.__init__``."""
    return ".".join(path.relative_to(FOLDER).with_suffix("").parts)


MODULES = {module_name(path): path.read_text(encoding="utf-8") for path in python_files(FOLDER)}
CORPORA = [name for name, source in MODULES.items() if "\ndef prepare(" in source]


def imports_of(name: str, source: str) -> set[str]:
    """The modules of the package that a module imports."""
    found = set()
    for full in imported_names(FOLDER / f"{name.replace('.', '/')}.py", source):
        if is_within(full, PACKAGE):
            parts = full.removeprefix(PACKAGE).strip(".").split(".")
            candidates = [".".join([*parts[:end], *last]) for end in (2, 1, 0) for last in ((), ("__init__",))]
            found.add(next(name for name in candidates if name in MODULES))
    return found - {name}


def room(name: str) -> str:
    return name.partition(".")[0]


def forbidden(name: str, source: str) -> set[str]:
    """What a module imports of rooms that are neither its own nor below it."""
    own = room(name)
    return {other for other in imports_of(name, source) if room(other) not in {own, *ALLOWED.get(own, FOUNDATION)}}


@pytest.fixture(scope="module")
def graph() -> Mapping[str, set[str]]:
    return {name: imports_of(name, source) for name, source in MODULES.items()}


def test_every_arrow_points_to_what_is_shared() -> None:
    assert set(map(room, MODULES)) > FOUNDATION
    found = {name: forbidden(name, source) for name, source in MODULES.items()}
    assert {name: names for name, names in found.items() if names} == {}


def test_there_is_no_circle(graph: Mapping[str, set[str]]) -> None:
    assert len(list(graphlib.TopologicalSorter(graph).static_order())) == len(MODULES)


def test_no_corpus_is_built_on_another(graph: Mapping[str, set[str]]) -> None:
    assert len(CORPORA) >= 7
    users = {name: {corpus for corpus in CORPORA if corpus in names} for name, names in graph.items()}
    assert {name: corpora for name, corpora in users.items() if corpora} == {}


@pytest.mark.parametrize(
    ("name", "source", "caught"),
    [
        ("text.x", "from ..trees.spans import Span", {"trees.spans"}),
        ("text.x", "def f():\n    from ..mt import translation_corpus", {"mt.translation_corpus"}),
        ("text.x", "from ..errors import PrepareError\nfrom . import splits", set()),
        ("errors", "from .text import splits", {"text.splits"}),
        ("cfl.x", "from ..nested.grammar import DOMAINS", {"nested.grammar"}),
        ("cfl.x", f"import {PACKAGE}.mt.pieces", {"mt.pieces"}),
        ("cfl.x", f"import {PACKAGE}.mt", {"mt.__init__"}),
        ("new.x", "from ..text.output import corpus_folder\nfrom .y import z", set()),
    ],
)
def test_wrong_arrows_are_found(name: str, source: str, caught: set[str]) -> None:
    assert forbidden(name, source) == caught


@pytest.mark.parametrize("name", CORPORA)
def test_shape_of_a_corpus(name: str) -> None:
    corpus: ModuleType = importlib.import_module(f"{PACKAGE}.{name}")
    assert isinstance(corpus.CORPUS, str)
    assert corpus.Options.__dataclass_params__.frozen
    assert dataclasses.fields(corpus.Options)[-1].name == "binarise"
    parameters = inspect.signature(corpus.prepare).parameters
    assert list(parameters)[:3] == ["options", "folder", "force"]
    assert all(parameter.kind is inspect.Parameter.KEYWORD_ONLY for parameter in list(parameters.values())[2:])
    for function in ("generate", "plan"):
        if hasattr(corpus, function):
            assert next(iter(inspect.signature(getattr(corpus, function)).parameters)) == "options"
