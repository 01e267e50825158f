"""Where the stack of a language model with one automaton is highest: at the middle of a string, if it reverses.

python scripts/experiments/highest_stack.py STRINGS CHECKPOINT...

For each model, the best run of the automaton on each of the first 100 strings of a file: in how many strings the run
first has its greatest height within two symbols of the middle, and the median height that is left at the end.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

from fairseq_stack.files import read_lines
from fairseq_stack.hub.interface import Hub, load
from fairseq_stack.inspection.stacks import inspect_stacks
from fairseq_stack.modules.inspected import InspectedAutomaton

STRINGS, NEAR = 100, 2


def heights(model: Hub, string: str) -> list[int]:
    """The heights of the best run: before the first symbol of the string, and after each."""
    (stack,) = inspect_stacks(model, string)
    assert isinstance(stack, InspectedAutomaton)
    return [len(elements) for elements in stack.runs[0].stacks()][-len(string.split()) - 1 :]


def main(strings: str, *checkpoints: str) -> None:
    """Print a table."""
    print("model\tat the middle\tleft at the end")
    for checkpoint in checkpoints:
        model = load(checkpoint)
        near, left = 0, []
        for string in read_lines(Path(strings))[:STRINGS]:
            of_run = heights(model, string)
            near += abs(of_run.index(max(of_run)) - len(string.split()) / 2) <= NEAR
            left.append(of_run[-1])
        print(f"{checkpoint}\t{near} of {len(left)}\t{statistics.median(left):g}")


if __name__ == "__main__":
    main(*sys.argv[1:])
