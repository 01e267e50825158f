"""The tables of the experiments on Pushdown Layers (Murty et al., 2023).

python scripts/experiments/murty_2023.py dyck|trees OUT KIND=RUN[,RUN...] ...

A RUN is a folder with results of fairseq-stack evaluate-pushdown: test.json, distance.json, depth.json and
depth-beam.json of Dyck strings, or test.json of sentences. The runs of a kind have different seeds; their scores stand
side by side. The table is written to OUT, in Markdown, with the signatures of the results, and printed.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from fairseq_stack.evaluation.markdown import MISSING, table
from fairseq_stack.evaluation.pushdown import ClosingAccuracy, PushdownResult
from fairseq_stack.evaluation.results import Estimate
from fairseq_stack.files import written_whole

Results = Mapping[str, Sequence[PushdownResult]]

BRACKETS = {
    "test": ("in distribution", ("all", "distance >= 50", "distance >= 100")),
    "distance": ("deeper strings", ("depth 11 to 20", "distance >= 50", "distance >= 100")),
    "depth": ("test of depth", ("last of a string", "depth 11 to 20", "depth > 20")),
    "depth-beam": ("test of depth", ("last of a string", "depth 11 to 20", "depth > 20")),
}
"""For each result on Dyck strings its name in the table, and the groups of closing brackets that are shown."""


def read_results(arguments: Sequence[str], name: str) -> dict[str, list[PushdownResult]]:
    """The results of the runs of each kind with this name."""
    kinds = (argument.partition("=") for argument in arguments)
    return {
        kind: [PushdownResult.read(Path(run) / f"{name}.json") for run in runs.split(",")] for kind, _, runs in kinds
    }


def dyck_table(sets: Mapping[str, Results]) -> str:
    """The accuracy of closing brackets, with gold parses and with the models' own."""
    columns = [f"{kind}, {parses}" for kind in next(iter(sets.values())) for parses in ("gold", "own")]
    rows = []
    for result_name, (name, groups) in BRACKETS.items():
        kinds = sets[result_name]
        beam = next(iter(kinds.values()))[0].beam
        for group in groups:
            accuracies = [[_closing(result, group) for result in results] for results in kinds.values()]
            if any(accuracies[0]):
                number = next(closing.brackets for closing in accuracies[0] if closing)
                cells = [
                    " ".join(_percent(getattr(closing, parses, None)) for closing in seeds)
                    for seeds in accuracies
                    for parses in ("gold", "own")
                ]
                rows.append([f"{name}, {group}{'' if beam == 1 else f' (beam of {beam})'}", f"{number:,}", *cells])
    return table(["closing brackets", "number", *columns], rows)


def _closing(result: PushdownResult, group: str) -> ClosingAccuracy | None:
    return next((closing for closing in result.closings if closing.group == group), None)


def trees_table(results: Results) -> str:
    """Perplexity with gold parses and with the model's own, and the F1 of the best parse."""
    rows = []
    for kind, seeds in results.items():
        cells = [f"{seeds[0].model.parameters:,}"]
        cells += [
            " ".join(f"{scores.perplexity.value:.1f}" if scores else MISSING for scores in columns)
            for columns in ([seed.gold for seed in seeds], [seed.own for seed in seeds])
        ]
        parses = [seed.parses for seed in seeds]
        for name in ("f1", "f1_without_sentence", "f1_without_punctuation"):
            cells.append(" ".join(_percent(getattr(each, name, None)) for each in parses))
        rows.append([kind, *cells])
    columns = ("ppl, gold parses", "ppl, own parses", "F1", "F1 without sentence spans", "F1 without punctuation")
    return table(["model", "parameters", *columns], rows)


def _percent(share: Estimate | None) -> str:
    return f"{100 * share.value:.1f}" if share else MISSING


def main(part: str, output: str, *arguments: str) -> None:
    """Write and print the table."""
    sets = {name: read_results(arguments, name) for name in (BRACKETS if part == "dyck" else ["test"])}
    signatures = dict.fromkeys(
        result.signature for kinds in sets.values() for results in kinds.values() for result in results
    )
    text = dyck_table(sets) if part == "dyck" else trees_table(sets["test"])
    lines = "\n".join(f"`{signature}`" for signature in signatures)
    text = f"{text}\n\nAccuracy and F1 in %. Each value is from one seed.\n\n{lines}\n"
    with written_whole(Path(output)) as file:
        file.write(text.encode())
    print(text, end="")


if __name__ == "__main__":
    main(*sys.argv[1:])
