"""What pictures of stacks say: the names of stacks, and how far the best run stands for the others."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import pytest
import torch

from fairseq_stack.inspection.pictures import _panel_of_pointers, draw_operations, draw_run, name_of_run, named
from fairseq_stack.modules import InspectedStack
from fairseq_stack.plots.style import figure
from tests.inspection.test_stacks import automaton


@pytest.mark.parametrize(
    ("layer", "expected"),
    [
        ("encoder.layers.0", "layer 1 of the encoder"),
        ("decoder.layers.2", "layer 3 of the decoder"),
        ("decoder.layers.2.loop-2", "layer 3 of the decoder, loop 2"),
        ("decoder.layers.2.loop-2.heads.0", "layer 3 of the decoder, loop 2, head 1"),
        ("decoder.lstm.stacks.0", "stack 1 of the LSTM"),
        ("encoder.network.layers.2", "layer 3 of the tagger"),
        ("decoder.memory", "decoder.memory"),
    ],
)
def test_names(layer: str, expected: str) -> None:
    assert named(layer) == expected


@pytest.mark.parametrize(("share", "warning"), [(0.02, ""), (0.002, "; most of the weight is elsewhere")])
def test_a_best_run_of_small_weight(share: float, warning: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    stack = automaton()
    stack = dataclasses.replace(stack, log_partition=stack.runs[0].log_weight - math.log(share))
    name = f"best run of layer 2 of the decoder ({100 * share:.2g} % of the weight of all runs{warning})"
    assert name_of_run(stack, 0) == name
    with figure(tmp_path / "a.png", 1, 1, (5, 3)) as panels:
        draw_run(panels[0, 0], stack, 0)
        title = panels[0, 0].get_title(loc="left")
    assert title == name


def test_a_pointer_between_two_cells(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    actions = {name: torch.zeros(2) for name in ("push", "no-op", "pop")}
    stack = InspectedStack(
        "decoder.layers.0.heads.1", ("a", "b"), torch.zeros(2, 2), actions, pointers=torch.tensor([1.0, 1.25])
    )
    panel = _panel_of_pointers(stack, torch.tensor([1.0, 1.25]))
    assert (panel.rows, panel.shares) == (["2", "1", "0"], [[0, 0.25], [1, 0.75], [0, 0]])
    draw_operations([stack], tmp_path / "a.png")
    assert (tmp_path / "a.png").exists()
