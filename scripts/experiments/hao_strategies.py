"""How the networks of Hao et al. (2018) use their stacks, in figures: what their Figs. 5 and 6 show of one string each.

python scripts/experiments/hao_strategies.py OUT.md OUT.json OUT.png NETWORK=DATA:RUN[,DATA:RUN...] ...

A NETWORK is a key of STRATEGIES; a RUN is a folder with checkpoint_last.pt and valid.json of fairseq-stack
evaluate-transduction, and DATA the folder that it was trained on. Each measure is a mean over the validation set of a
trial. The tables have its minimum, median and maximum over the trials, and the picture shows each network's best trial.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from fairseq_stack.evaluation.markdown import table
from fairseq_stack.evaluation.transduction import LEARNED, TransductionResult
from fairseq_stack.hub.interface import TransductionHub, load
from fairseq_stack.inspection.neural_stack import StackRun, stack_run
from fairseq_stack.plots.panels import draw_weights
from fairseq_stack.plots.style import figure

Measure = Callable[[Sequence[StackRun]], float]
LONGEST_DRAWN = 24


def mean_at(symbols: str, strength: str) -> Measure:
    """The mean strength ("pops" or "pushes") over all steps that read one of these symbols."""

    def measure(runs: Sequence[StackRun]) -> float:
        return statistics.fmean(
            value
            for run in runs
            for value, symbol in zip(getattr(run, strength), run.inputs, strict=True)
            if symbol in symbols
        )

    return measure


def vectors_by_parity(runs: Sequence[StackRun]) -> Iterator[tuple[int, tuple[float, ...]]]:
    """The vectors that are pushed when a network reads 1, with the parity of the bits so far."""
    for run in runs:
        parity = 0
        for symbol, vector in zip(run.inputs, run.vectors, strict=True):
            parity ^= int(symbol)
            if symbol == "1":
                yield parity, vector


def parity_from_vectors(runs: Sequence[StackRun]) -> float:
    """How often the vector pushed at a 1 tells the parity: it is nearer to the mean vector of its own parity.

    The first half of the strings gives the two means, and the second half is judged by them.
    """
    half = len(runs) // 2
    known: dict[int, list[tuple[float, ...]]] = {0: [], 1: []}
    for parity, vector in vectors_by_parity(runs[:half]):
        known[parity].append(vector)
    means = {
        parity: [statistics.fmean(axis) for axis in zip(*vectors, strict=True)] for parity, vectors in known.items()
    }

    def distance(vector: Sequence[float], parity: int) -> float:
        return sum((one - other) ** 2 for one, other in zip(vector, means[parity], strict=True))

    return statistics.fmean(
        distance(vector, parity) < distance(vector, 1 - parity) for parity, vector in vectors_by_parity(runs[half:])
    )


REVERSAL = {  # 2 is the blank that is read while the output is written
    "push while reading": mean_at("01", "pushes"),
    "push while writing": mean_at("2", "pushes"),
    "pop while reading": mean_at("01", "pops"),
    "pop while writing": mean_at("2", "pops"),
}
STRATEGIES: dict[str, dict[str, Measure]] = {
    "reversal-linear": REVERSAL,
    "reversal-lstm": REVERSAL,
    "reverse-deletion-linear": {  # of 0 to 3, the output has 0 and 1; 4 is the blank
        "push at symbols of the output": mean_at("01", "pushes"),
        "push at excluded symbols": mean_at("23", "pushes"),
        "pop while writing": mean_at("4", "pops"),
    },
    "parenthesis-linear": {
        "pop at opening brackets": mean_at("([", "pops"),
        "pop at closing brackets": mean_at(")]", "pops"),
    },
    "delayed-xor-linear": {
        "pop": mean_at("01", "pops"),
        "share of pushed vectors that tell the parity": parity_from_vectors,
    },
}


class Trial(NamedTuple):
    """A trained network: its accuracy in development, its measures by name, and what it does on one string."""

    accuracy: float
    measures: dict[str, float]
    example: StackRun


def evaluate(network: str, data: str, folder: str) -> Trial:
    """Run a network on its validation set; the example is the longest of the strings that a picture can show."""
    hub = load(f"{folder}/checkpoint_last.pt", f"{data}/data-bin")
    assert isinstance(hub, TransductionHub)
    strings = Path(data, "text", "valid.input").read_text(encoding="utf-8").splitlines()
    runs = [stack_run(hub, string) for string in strings]
    shown = max((run for run in runs if len(run.inputs) <= LONGEST_DRAWN), key=lambda run: len(run.inputs))
    accuracy = TransductionResult.read(Path(folder, "valid.json")).overall.accuracy.value
    return Trial(accuracy, {name: measure(runs) for name, measure in STRATEGIES[network].items()}, shown)


def best_of(trials: Sequence[Trial]) -> Trial:
    """The first trial of the highest accuracy in development."""
    return max(trials, key=lambda trial: trial.accuracy)


def rows(network: str, trials: Sequence[Trial]) -> Iterator[list[str]]:
    """A row for each measure of a network."""
    learned = sum(trial.accuracy >= LEARNED for trial in trials)
    for name in STRATEGIES[network]:
        values = [trial.measures[name] for trial in trials]
        best = best_of(trials).measures[name]
        summary = "/".join(f"{x:.2f}" for x in (min(values), statistics.median(values), max(values)))
        yield [network, f"{learned} of {len(trials)}", name, summary, f"{best:.2f}"]


def draw(path: Path, networks: dict[str, Sequence[Trial]]) -> None:
    """A panel for each network: strengths and pushed vectors of its best trial, a column for each step."""
    sizes = [2 + len(best_of(trials).example.vectors[0]) for trials in networks.values()]
    size = (9, 0.9 * len(networks) + 0.22 * sum(sizes))
    with figure(path, len(networks), 1, size, heights=sizes) as panels:
        for axes, (network, trials) in zip(panels[:, 0], networks.items(), strict=True):
            run = best_of(trials).example
            vectors = [list(axis) for axis in zip(*run.vectors, strict=True)]
            names = ["pop", "push", *(f"vector {number}" for number in range(1, len(vectors) + 1))]
            draw_weights(axes, [run.pops, run.pushes, *vectors], rows=names, columns=list(run.inputs), label="")
            measures = ", ".join(f"{name} {value:.2f}" for name, value in best_of(trials).measures.items())
            task, _, controller = network.rpartition("-")
            title = f"{task.replace('-', ' ')}, {controller} controller: {measures}"
            axes.set_title(title, loc="left", fontsize=9)


def main(markdown: str, numbers: str, picture: str, *arguments: str) -> None:
    """Write the tables and the picture, and print the table."""
    networks: dict[str, Sequence[Trial]] = {}
    for argument in arguments:
        network, _, pairs = argument.partition("=")
        networks[network] = [evaluate(network, *pair.split(":")) for pair in pairs.split(",")]
    columns = ("network", "learned", "mean of", "minimum/median/maximum", "best trial")
    text = table(columns, [row for network, trials in networks.items() for row in rows(network, trials)]) + "\n"
    figures = {
        network: [{"accuracy": trial.accuracy, **trial.measures} for trial in trials]
        for network, trials in networks.items()
    }
    Path(markdown).write_text(text, encoding="utf-8")
    Path(numbers).write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    draw(Path(picture), networks)
    print(text, end="")


if __name__ == "__main__":
    main(*sys.argv[1:])
