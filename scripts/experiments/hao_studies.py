"""The table of the studies of buffered networks.

python scripts/experiments/hao_studies.py TABLE.md "NAME=RUN[,RUN...]" ...

A RUN is a folder with valid.json and test.json of fairseq-stack evaluate-transduction. The table has the minimum, the
median and the maximum of the accuracy over the runs; how many runs learned the task, with at least 98 % in development,
and their accuracy in test; and how many runs have all scored symbols of the test set right.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from fairseq_stack.evaluation.markdown import table
from fairseq_stack.evaluation.transduction import LEARNED, TransductionResult
from fairseq_stack.files import written_whole


def summary(accuracies: Sequence[float]) -> str:
    """The minimum, the median and the maximum."""
    if not accuracies:
        return ""
    return "/".join(f"{x:.1f}" for x in (min(accuracies), statistics.median(accuracies), max(accuracies)))


def row(argument: str) -> tuple[list[str], str]:
    """The cells of a row, and the signature of its test set."""
    name, _, folders = argument.rpartition("=")
    results = {
        split: [TransductionResult.read(Path(folder) / f"{split}.json") for folder in folders.split(",")]
        for split in ("valid", "test")
    }
    valid, test = ([100 * result.overall.accuracy.value for result in of_split] for of_split in results.values())
    of_learned = [accuracy for accuracy, known in zip(test, valid, strict=True) if known >= 100 * LEARNED]
    perfect = sum(result.overall.correct == result.overall.scored for result in results["test"])
    learned = f"{len(of_learned)} of {len(test)}"
    cells = [name, summary(valid), summary(test), learned, summary(of_learned), f"{perfect} of {len(test)}"]
    return cells, results["test"][0].signature


def main(output: str, *arguments: str) -> None:
    """Write and print the table."""
    rows, signatures = zip(*map(row, arguments), strict=True)
    columns = ("network", "development", "test", "learned", "test of learned", "all right")
    lines = [table(columns, rows), *(f"`{signature}`" for signature in dict.fromkeys(signatures))]
    text = "\n\n".join(lines) + "\n"
    with written_whole(Path(output)) as file:
        file.write(text.encode())
    print(text, end="")


if __name__ == "__main__":
    main(*sys.argv[1:])
