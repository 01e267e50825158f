"""What stacks do, as text: operations by symbol, and of a nondeterministic stack likely transitions and contents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairseq_stack.modules import InspectedAutomaton
from fairseq_stack.ops.nondeterministic import StackEdge, StackNode, Step

if TYPE_CHECKING:  # it needs fairseq
    from fairseq_stack.inspection.operations import MeanOperations


def spelt(step: Step) -> str:
    """A transition as in the paper, with its operation: ``push q0,1 -> q1,1 2`` pushes 2 onto 1."""
    (q, x), r, y = step.source, step.state, step.symbol
    after = "" if y is None else f",{x} {y}" if step.operation == "push" else f",{y}"
    return f"{step.operation} q{q},{x} -> q{r}{after}"


def transitions_as_tsv(stack: InspectedAutomaton, least: float) -> str:
    """The transitions with a posterior probability of at least ``least``, one per line, with the input at which they
    are taken: its number, the input, the transition and its probability, separated by tabs.
    """
    lines = [
        f"{x.number}\t{stack.inputs[x.number - 1]}\t{spelt(x.step)}\t{x.probability:.4f}\n"
        for x in stack.likely_transitions(least)
    ]
    return "".join(["number\tinput\ttransition\tprobability\n", *lines])


def operations_as_tsv(stacks: Sequence[MeanOperations]) -> str:
    """What stacks do at each symbol: the layer, the symbol, how often it is read and the mean of each operation.

    The first line of a layer has no symbol and is about all inputs. A cell is empty where a stack lacks the operation.
    """
    names = list(dict.fromkeys(name for stack in stacks for name in stack.names))
    lines = [["layer", "symbol", "inputs", *names]]
    for stack in stacks:
        symbols, counts = ("", *stack.symbols), (sum(stack.counts), *stack.counts)
        for symbol, count, means in zip(symbols, counts, [stack.mean, *stack.means], strict=True):
            cells = dict(zip(stack.names, (f"{mean:.4f}" for mean in means.tolist()), strict=True))
            lines.append([stack.layer, symbol, str(count), *(cells.get(name, "") for name in names)])
    return "".join("\t".join(line) + "\n" for line in lines)


def contents_as_graphviz(edges: Sequence[StackEdge], inputs: Sequence[str]) -> str:
    """The possible contents of a stack as a graph for Graphviz's ``dot``.

    A path from the left to a double circle spells a stack from the bottom to the top. An edge has the symbol on the
    stack, the input at which it was pushed, and the share of the runs that leave it there; thicker edges have more.

    Args:
        edges: of :func:`fairseq_stack.ops.stack_contents`.
        inputs: what was read until then.
    """
    nodes = sorted({node for edge in edges for node in (edge.source, edge.target)})
    lines = ["digraph stack {", "  rankdir=LR;", '  node [shape=circle, fontname="Helvetica", fontsize=10];']
    lines += ['  edge [fontname="Helvetica", fontsize=10];']
    for node in nodes:
        shape = ", shape=doublecircle" if node.step == len(inputs) else ""
        lines.append(f"  {_name(node)} [label={_quoted(*_label(node, inputs))}{shape}];")
    for edge in edges:
        pushed = "bottom" if edge.source.step < 0 else inputs[edge.source.step]
        label = _quoted(f"{edge.target.symbol} ({pushed})", f"{edge.probability:.2f}")
        width = 0.5 + 3 * edge.probability
        lines.append(f"  {_name(edge.source)} -> {_name(edge.target)} [label={label}, penwidth={width:.2f}];")
    return "\n".join([*lines, "}"]) + "\n"


def _name(node: StackNode) -> str:
    return f"n{node.step + 1}_{node.state}_{node.symbol}"


def _label(node: StackNode, inputs: Sequence[str]) -> tuple[str, ...]:
    if node.step < 0:
        return ("start",)
    when = "before 1" if node.step == 0 else f"after {node.step}: {inputs[node.step - 1]}"
    return f"q{node.state}, {node.symbol}", when


def _quoted(*lines: str) -> str:
    """Lines as a string of Graphviz."""
    text = "\\n".join(line.replace("\\", "\\\\").replace('"', '\\"') for line in lines)
    return f'"{text}"'
