"""The stack automaton of DuSell & Chiang (2020), Fig. 2: its paths are the stacks of all runs, and it is drawn."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("matplotlib")


def stacks_of_runs(string: str) -> set[tuple[str, str]]:
    """The state and the stack after each run."""
    runs = {("q1", "⊥")}
    for symbol in string:
        pushed = {("q1", stack + symbol) for state, stack in runs if state == "q1"}
        runs = pushed | {("q2", stack[:-1]) for _, stack in runs if stack.endswith(symbol)}
    return runs


@pytest.mark.parametrize("string", ["", "0", "0110", "0111", "01100110", "0000000", "1101011010"])
def test_paths_are_stacks(script: ModuleType, string: str) -> None:
    edges = script.stack_automaton(string)

    def stacks(state: Any) -> list[str]:
        if state == script.START:
            return [""]
        return [below + state.top for source, target in edges if target == state for below in stacks(source)]

    ends = {target for _, target in edges if target.position == len(string)}
    paths = [(end.state, stack) for end in ends for stack in stacks(end)]
    assert sorted(paths) == sorted(stacks_of_runs(string))


def test_picture(script: ModuleType, tmp_path: Path) -> None:
    script.main(str(tmp_path / "automaton.svg"), "0110")
    picture = (tmp_path / "automaton.svg").read_text()
    assert "4, q2, ⊥" in picture and "3, q2, 0" in picture
