"""How often models find the deciding word during training, by the type of the subject.

python scripts/experiments/transformations_picture.py OUT.png TASK:KIND=RUN[,RUN...] ...

A RUN is a folder with curve.tsv of transformation_curve.py. The deciding word is found if the model prefers it to its
rivals (restricted). Thin lines are the other runs of a kind.
"""

from __future__ import annotations

import csv
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from fairseq_stack.plots.panels import draw_runs
from fairseq_stack.plots.style import figure, style

EXAMPLES = {
    "RO": "that my newts do accept",
    "RSt": "who do accept my newts",
    "RSi": "who do sleep",
    "PP": "by my newts",
}


def curves(run: Path) -> dict[str, dict[float, float]]:
    """The share of deciding words that are found, in percent, by number of updates; for each type of subject."""
    by_subject: dict[str, dict[float, float]] = defaultdict(dict)
    with (run / "curve.tsv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            if row["subject"] != "all" and row["restricted"]:
                by_subject[row["subject"]][int(row["updates"])] = 100 * float(row["restricted"])
    return by_subject


def main(picture: str, *arguments: str) -> None:
    """Draw a panel for each kind."""
    runs: dict[str, Sequence[Path]] = {}
    for argument in arguments:
        name, _, paths = argument.partition("=")
        runs[name] = [Path(folder) for folder in paths.split(",")]
    path = Path(picture)
    with figure(path, 1, len(runs), (4.2 * len(runs) + 0.6, 3.4)) as panels:
        for axes, (name, folders) in zip(panels[0], runs.items(), strict=True):
            of_runs = [curves(folder) for folder in folders]
            for number, subject in enumerate(of_runs[0]):
                label = f"{subject}: {EXAMPLES[subject]}" if subject in EXAMPLES else subject
                draw_runs(axes, label, [of_run[subject] for of_run in of_runs], 0, style(number))
            axes.set(ylim=(-3, 103), xlabel="updates", ylabel="deciding word found, %")
            axes.set_title(name.replace(":", ", "), loc="left", fontsize=9)
        handles, labels = panels[0, 0].get_legend_handles_labels()
        panels[0, 0].figure.legend(
            handles, labels, title="the yaks ...", fontsize=8, loc="outside lower center", ncols=3
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
