"""Each function of fairseq is replaced once, and the documentation says which, why and for whom."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from fairseq_stack import compat
from fairseq_stack.compat import replacing

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = REPOSITORY / "docs" / "fairseq.md"


@pytest.fixture
def replacements(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A register of its own, for the functions of a module ``fairseq_cli.fake``."""
    monkeypatch.setattr(replacing, "_replacements", {})
    monkeypatch.setattr(replacing, "_settings", {})

    @replacing.replaces("fairseq_cli.fake:double")
    def double(original: Any, number: int) -> int:
        """Add one."""
        result: int = original(number) + 1
        return result

    @replacing.replaces("fairseq_cli.fake:Numbers.half")
    def half(original: Any, number: int) -> int:
        return -int(original(number))

    return fake_module()


def fake_module() -> ModuleType:
    class Numbers:
        @staticmethod
        def half(number: int) -> int:
            return number // 2

    module = ModuleType("fairseq_cli.fake")
    vars(module).update(double=lambda number: 2 * number, Numbers=Numbers)
    return module


def test_each_function_once(replacements: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fairseq_cli.fake", replacements)
    vars(replacements.double)["count"] = 3
    for _ in range(2):
        replacing.install()
    assert (replacements.double(5), replacements.double.count) == (11, 3)
    assert (replacements.Numbers.half(4), replacements.Numbers().half(4)) == (-2, -2)


def test_a_command_that_is_imported_late_or_runs_as_main(
    replacements: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    replacing.install()
    assert replacements.double(5) == 10
    vars(replacements)["__file__"] = "/lib/fairseq_cli/fake.py"
    monkeypatch.setitem(sys.modules, "__main__", replacements)
    replacing.install()
    assert replacements.double(5) == 11
    being_imported = ModuleType("fairseq_cli.fake")
    monkeypatch.setitem(sys.modules, "fairseq_cli.fake", being_imported)
    replacing.install()
    assert not hasattr(being_imported, "double")


def test_applying_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["fairseq-train"])
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    compat.apply()
    hook = sys.excepthook
    assert hook is not sys.__excepthook__
    compat.apply()
    assert sys.excepthook is hook


def test_the_page_has_the_table() -> None:
    """To write it anew: put what ``python -m fairseq_stack.compat`` prints below the prose."""
    text = PAGE.read_text(encoding="utf-8")
    assert text[text.index("| what") :] == replacing.table() + "\n"
