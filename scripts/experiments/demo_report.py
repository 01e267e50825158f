"""The demo's report: its tables and its pictures.

python scripts/experiments/demo_report.py FOLDER

FOLDER holds ``nested-translation/`` and ``dyck/``. In each there are ``corpus/``, which ``fairseq-stack prepare``
wrote, and for each kind of model a folder with ``train.log`` (``fairseq-train --log-file``), ``checkpoint_best.pt``
and ``generate-test.txt`` (translation) or ``test.json`` (language modelling: ``fairseq-stack evaluate-cfl --json``).
The report is table.md, demo.png and demo-stack.png in FOLDER.
"""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sacrebleu.metrics import BLEU

from fairseq_stack.cli.plot.lengths import draw_panel
from fairseq_stack.evaluation.cfl_comparison import Labelled
from fairseq_stack.evaluation.cfl_result import CFLResult
from fairseq_stack.evaluation.markdown import table
from fairseq_stack.evaluation.training_log import read_training_log
from fairseq_stack.files import read_lines, read_text
from fairseq_stack.hub.interface import load
from fairseq_stack.inspection.pictures import draw_runs
from fairseq_stack.inspection.sentences import sentences_of_split
from fairseq_stack.inspection.stacks import inspect_stacks
from fairseq_stack.plots.style import figure, style, styles_of

KINDS = {"tf": "tf: no stack", "sup": "sup: superposition", "nd": "nd: nondeterministic"}
TRANSLATION, DYCK = "nested-translation", "dyck"
MOST_LENGTHS = 6
"""The table has at most so many of the lengths of strings."""

BRACKETS = 24
"""The length of the string in the picture of the stack."""

Exact = Mapping[int, list[bool]]
"""By depth of nesting, whether each translation equals its reference."""


def read_translations(path: Path) -> tuple[list[str], list[str]]:
    """References and translations, in the order of the data, as ``fairseq-generate`` wrote them."""
    columns: dict[str, dict[int, str]] = {"T": {}, "H": {}}
    for line in read_text(path).split("\n"):
        label, *fields = line.split("\t")
        kind, _, number = label.partition("-")
        if kind in columns:
            columns[kind][int(number)] = fields[-1]
    references, hypotheses = ([of[number] for number in sorted(of)] for of in columns.values())
    return references, hypotheses


def translation_table(folder: Path) -> tuple[str, Mapping[str, Exact]]:
    """The table of translation models, and which of their translations are exact."""
    depths = [int(line) for line in read_lines(folder / "corpus/text/test.depth")]
    metric, rows = BLEU(tokenize="none", force=True), []
    exact: dict[str, Exact] = {}
    for kind in KINDS:
        references, hypotheses = read_translations(folder / kind / "generate-test.txt")
        by_depth: dict[int, list[bool]] = defaultdict(list)
        for depth, hypothesis, reference in zip(depths, hypotheses, references, strict=True):
            by_depth[depth].append(hypothesis == reference)
        exact[kind] = dict(sorted(by_depth.items()))
        bleu = metric.corpus_score(hypotheses, [references]).score
        share = 100 * sum(map(sum, by_depth.values())) / len(depths)
        loss = read_training_log(folder / kind / "train.log").best.loss
        rows.append([*training_cells(folder / kind), f"{math.exp(loss):.3f}", f"{bleu:.1f}", f"{share:.1f} %"])
    head = ["model", "parameters", "updates", "training", "valid ppl", "BLEU", "exact match"]
    return f"{table(head, rows)}\n\nBLEU|{metric.get_signature()}", exact


def dyck_table(results: Mapping[str, CFLResult], folder: Path) -> str:
    """The table of language models."""
    lengths = [score.length for score in results["tf"].by_length]
    lengths = lengths[:: -(-len(lengths) // MOST_LENGTHS)]  # at equal distances, the first one among them
    rows = []
    for kind, result in results.items():
        differences = {score.length: score.difference.value for score in result.by_length}
        samples = "" if result.samples is None else f"{100 * result.samples.share:.0f} %"
        rows.append([*training_cells(folder / kind), *(f"{differences[length]:.3f}" for length in lengths), samples])
    head = ["model", "parameters", "updates", "training", *map(str, lengths), "samples"]
    return f"{table(head, rows)}\n\ncross-entropy difference|{results['tf'].signature}"


def training_cells(folder: Path) -> list[str]:
    training = read_training_log(folder / "train.log")
    return [folder.name, f"{training.parameters:,}", f"{training.updates:,}", f"{training.seconds} s"]


def draw_exact_match_by_depth(axes: Any, exact: Mapping[str, Exact]) -> None:
    """The share of test sentences translated without a mistake against their nesting, as groups of bars."""
    width = 0.8 / len(exact)
    for number, (kind, by_depth) in enumerate(exact.items()):
        places = [depth + (number - (len(exact) - 1) / 2) * width for depth in by_depth]
        heights = [100 * sum(group) / len(group) for group in by_depth.values()]
        bars = axes.bar(places, heights, width, color=style(number)["color"], label=kind)
        axes.bar_label(bars, fmt="%.0f", fontsize=8)
    axes.set(xticks=list(exact["tf"]), yticks=range(0, 101, 20), ylim=(0, 118))  # room for the legend
    axes.set(title="Nested translation", xlabel="depth of nesting", ylabel="exact translations (%)")
    axes.legend(frameon=False, ncols=3, loc="upper right", bbox_to_anchor=(1, 1.02))


def draw_difference_by_length(axes: Any, results: Mapping[str, CFLResult]) -> None:
    """The cross-entropy difference on the test strings against their length."""
    models = {KINDS[kind]: [Labelled(KINDS[kind], "", result)] for kind, result in results.items()}
    draw_panel(axes, models, styles_of(models), log=False)
    title, above = "Language modelling of Dyck strings", "nats per symbol above the lower bound"
    axes.set(title=title, xlabel="length", ylabel=above)
    axes.legend(facecolor="white", framealpha=1, edgecolor="none", loc="upper left")  # on the shaded lengths


def draw_stack(folder: Path, path: Path) -> None:
    """Draw the best run of nd on the first test string with :data:`BRACKETS` brackets, or the longest one."""
    lengths = [len(line.split()) for line in read_lines(folder / "corpus/text/test.txt")]
    line = lengths.index(min(BRACKETS, max(lengths))) + 1
    data = folder / "corpus/data-bin"
    hub = load(folder / "nd/checkpoint_best.pt", data)
    (sentence,) = sentences_of_split(hub, data, "test", line, 1)
    draw_runs(inspect_stacks(hub, sentence), path, "The stack of nd on a Dyck string of the test set")


def main(folder: Path) -> None:
    results = {kind: CFLResult.read(folder / DYCK / kind / "test.json") for kind in KINDS}
    translation, exact = translation_table(folder / TRANSLATION)
    low, high = results["tf"].train_lengths
    report = f"""\
Nested translation, German-like to English-like (test set):

{translation}

Language modelling of Dyck strings (test set): nats per symbol above the lower bound by length, after training on \
lengths {low} to {high}, and the share of the model's own samples that are Dyck strings:

{dyck_table(results, folder / DYCK)}
"""
    with figure(folder / "demo.png", rows=1, columns=2, size=(10, 3.6)) as panels:
        draw_difference_by_length(panels[0, 0], results)
        draw_exact_match_by_depth(panels[0, 1], exact)
    draw_stack(folder / DYCK, folder / "demo-stack.png")
    (folder / "table.md").write_text(report, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
