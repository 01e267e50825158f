"""What the stack of a language model with one automaton does with strings w w^R: whether it reverses.

python scripts/experiments/highest_stack.py STRINGS CHECKPOINT...

For each model, on the first 100 strings of a file: in how many strings the best run of the automaton first has its
greatest height within two symbols of the middle, and the median height that is left at the end; and means of the
entropy of all runs, log Z - E[log weight], in nats per symbol, and of the posterior probabilities of a push in the
first half and of a pop in the second.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

import torch

from fairseq_stack.files import read_lines
from fairseq_stack.hub.interface import Hub, load
from fairseq_stack.inspection.stacks import inspect_stacks
from fairseq_stack.modules.inspected import InspectedAutomaton

STRINGS, NEAR = 100, 2


def inspected(model: Hub, string: str) -> InspectedAutomaton:
    """What the only stack of a model does."""
    (stack,) = inspect_stacks(model, string)
    assert isinstance(stack, InspectedAutomaton)
    return stack


def heights(stack: InspectedAutomaton, length: int) -> list[int]:
    """The heights of the best run: before the first symbol of a string, and after each."""
    return [len(elements) for elements in stack.runs[0].stacks()][-length - 1 :]


def entropy(stack: InspectedAutomaton) -> float:
    """The entropy of the runs, in nats."""
    pairs = zip(stack.posterior, stack.log_weights, strict=True)
    return stack.log_partition - sum(torch.where(p > 0, p * weights, 0).sum().item() for p, weights in pairs)


def main(strings: str, *checkpoints: str) -> None:
    """Print a table."""
    print("model\tat the middle\tleft at the end\tentropy\tpush, first half\tpop, second half")
    for checkpoint in checkpoints:
        model = load(checkpoint)
        near, left, means = 0, [], []
        for string in read_lines(Path(strings))[:STRINGS]:
            length = len(string.split())
            stack = inspected(model, string)
            of_run = heights(stack, length)
            near += abs(of_run.index(max(of_run)) - length / 2) <= NEAR
            left.append(of_run[-1])
            push, pop = (stack.actions[name][-length:] for name in ("push", "pop"))
            half = length // 2
            means.append((entropy(stack) / len(stack.inputs), push[:half].mean().item(), pop[half:].mean().item()))
        columns = "\t".join(f"{statistics.mean(x):.2f}" for x in zip(*means, strict=True))
        print(f"{checkpoint}\t{near} of {len(left)}\t{statistics.median(left):g}\t{columns}")


if __name__ == "__main__":
    main(*sys.argv[1:])
