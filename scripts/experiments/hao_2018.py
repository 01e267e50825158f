"""Table 1 of Hao et al. (2018), next to the paper's values and those of an independent implementation.

python scripts/experiments/hao_2018.py TABLE.md TABLE.json ROW=RUN[,RUN...] ...

A ROW is one of hao_2018.json, and a RUN a folder with valid.json and test.json of fairseq-stack evaluate-transduction.
The table has the minimum, the median and the maximum of the accuracy over the runs, in percent; the JSON has the
accuracy of each run as well.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairseq_stack.evaluation.markdown import escaped, table
from fairseq_stack.evaluation.transduction import TransductionResult

SPLITS = {"valid": "development", "test": "test"}
SOURCES = ("ours", "paper", "reference")
COLUMNS = ("task", "network", *(f"{name}, {source}" for name in SPLITS.values() for source in SOURCES))
NOTES = (
    "Accuracy in %: minimum/median/maximum of {trials} trials, after the last epoch.",
    "Paper: Table 1 of Hao et al. (2018). Reference: ten trials of an independent implementation of the released code.",
)


@dataclass(frozen=True)
class Row:
    """A row of the table: what it is, with the values of others, and the results of its trials for each split."""

    name: str
    about: dict[str, Any]
    results: dict[str, list[TransductionResult]]

    @property
    def network(self) -> str:
        """The network in words."""
        buffers = "buffered, " if self.about["buffered"] else ""
        return f"{buffers}{self.about['controller']}{'' if self.about['memory'] == 'stack' else ', no stack'}"

    def accuracies(self, split: str) -> list[float]:
        """The accuracy of each trial, in percent."""
        return [100 * result.overall.accuracy.value for result in self.results[split]]

    def figures(self, split: str, source: str) -> list[float]:
        """Minimum, median and maximum."""
        if source != "ours":
            figures: list[float] = self.about[source][split]
            return figures
        values = self.accuracies(split)
        return [min(values), statistics.median(values), max(values)]

    def cells(self) -> list[str]:
        """The cells of the table."""
        return [
            self.about["task"].replace("_", " "),
            self.network,
            *("/".join(f"{x:.1f}" for x in self.figures(split, source)) for split in SPLITS for source in SOURCES),
        ]

    def as_json(self) -> dict[str, Any]:
        """All values, for ``json.dump``."""
        content: dict[str, Any] = {name: self.about[name] for name in ("task", "buffered", "controller", "memory")}
        for split in SPLITS:
            signatures = list(dict.fromkeys(result.signature for result in self.results[split]))
            figures = {source: self.figures(split, source) for source in SOURCES}
            content[split] = {**figures, "trials": self.accuracies(split), "signatures": signatures}
        return content


def read_row(name: str, folders: Sequence[Path]) -> Row:
    """A row, from the results of its trials."""
    with open(Path(__file__).with_suffix(".json"), encoding="utf-8") as file:
        about = json.load(file)[name]
    return Row(
        name, about, {split: [TransductionResult.read(x / f"{split}.json") for x in folders] for split in SPLITS}
    )


def as_text(rows: Sequence[Row]) -> str:
    """The table in Markdown, with the signature of the test set of each task."""
    cells = [[escaped(cell) for cell in row.cells()] for row in rows]
    trials = sorted({len(row.results["test"]) for row in rows})
    notes = [note.format(trials=" or ".join(map(str, trials))) for note in NOTES]
    signatures = dict.fromkeys(result.signature for row in rows for result in row.results["test"])
    return "\n\n".join([table(COLUMNS, cells), *notes, *(f"`{signature}`" for signature in signatures)]) + "\n"


def main(markdown_file: str, json_file: str, *arguments: str) -> None:
    """Write the table, and print it."""
    rows = []
    for argument in arguments:
        name, _, folders = argument.partition("=")
        rows.append(read_row(name, [Path(folder) for folder in folders.split(",")]))
    text = as_text(rows)
    content = json.dumps({row.name: row.as_json() for row in rows}, indent=2)
    Path(markdown_file).write_text(text, encoding="utf-8")
    Path(json_file).write_text(f"{content}\n", encoding="utf-8")
    print(text, end="")


if __name__ == "__main__":
    main(*sys.argv[1:])
