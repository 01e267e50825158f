"""The scripts of the experiments as modules."""

from __future__ import annotations

import importlib
from types import ModuleType

import pytest

from tests.commands.running import REPOSITORY


@pytest.fixture
def script(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script in scripts/experiments that the module of tests is named after."""
    monkeypatch.syspath_prepend(REPOSITORY / "scripts" / "experiments")
    return importlib.import_module(request.module.__name__.rpartition(".test_")[2])
