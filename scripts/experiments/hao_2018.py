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
from collections.abc import Collection, Sequence
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


def row_of(name: str, folders: Sequence[Path]) -> dict[str, Any]:
    """A row: what it is, and of each split minimum, median and maximum of each source, and our trials."""
    about = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))[name]
    row = {key: about[key] for key in ("task", "buffered", "controller", "memory")}
    for split in SPLITS:
        results = [TransductionResult.read(folder / f"{split}.json") for folder in folders]
        trials = [100 * result.overall.accuracy.value for result in results]
        figures = {"ours": [min(trials), statistics.median(trials), max(trials)]}
        figures |= {source: about[source][split] for source in ("paper", "reference")}
        signatures = list(dict.fromkeys(result.signature for result in results))
        row[split] = {**figures, "trials": trials, "signatures": signatures}
    return row


def cells(row: dict[str, Any]) -> list[str]:
    """The cells of a row."""
    network = f"{'buffered, ' * row['buffered']}{row['controller']}{', no stack' * (row['memory'] != 'stack')}"
    figures = (row[split][source] for split in SPLITS for source in SOURCES)
    return [escaped(row["task"].replace("_", " ")), network, *("/".join(f"{x:.1f}" for x in of) for of in figures)]


def as_text(rows: Collection[dict[str, Any]]) -> str:
    """The table in Markdown, with the signature of the test set of each task."""
    trials = sorted({len(row["test"]["trials"]) for row in rows})
    notes = [note.format(trials=" or ".join(map(str, trials))) for note in NOTES]
    signatures = dict.fromkeys(f"`{signature}`" for row in rows for signature in row["test"]["signatures"])
    return "\n\n".join([table(COLUMNS, list(map(cells, rows))), *notes, *signatures]) + "\n"


def main(markdown_file: str, json_file: str, *arguments: str) -> None:
    """Write the table, and print it."""
    rows = {}
    for argument in arguments:
        name, _, folders = argument.partition("=")
        rows[name] = row_of(name, [Path(folder) for folder in folders.split(",")])
    text = as_text(rows.values())
    Path(markdown_file).write_text(text, encoding="utf-8")
    Path(json_file).write_text(f"{json.dumps(rows, indent=2)}\n", encoding="utf-8")
    print(text, end="")


if __name__ == "__main__":
    main(*sys.argv[1:])
