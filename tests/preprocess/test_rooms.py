"""The one shape of a corpus."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
from pathlib import Path
from types import ModuleType

import pytest

import fairseq_stack_preprocess

PACKAGE = fairseq_stack_preprocess.__name__
FOLDER = Path(fairseq_stack_preprocess.__file__).parent
CORPORA = [
    ".".join(path.relative_to(FOLDER).with_suffix("").parts)
    for path in sorted(FOLDER.rglob("*.py"))
    if "\ndef prepare(" in path.read_text(encoding="utf-8")
]


def test_there_are_corpora() -> None:
    assert len(CORPORA) >= 7


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
