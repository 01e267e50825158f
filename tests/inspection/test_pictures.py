"""What pictures of stacks say: the names of stacks, and how far the best run stands for the others."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import pytest

from fairseq_stack.inspection.pictures import draw_run, name_of_run, named
from fairseq_stack.plots.style import figure
from tests.inspection.test_stacks import automaton


@pytest.mark.parametrize(
    ("layer", "expected"),
    [
        ("encoder.layers.0", "layer 1 of the encoder"),
        ("decoder.layers.2", "layer 3 of the decoder"),
        ("decoder.layers.2.loop-2", "layer 3 of the decoder, loop 2"),
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
