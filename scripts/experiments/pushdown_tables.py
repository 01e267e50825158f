"""Models that parse, on Dyck strings and on sentences; scripts/experiments/table.py writes the tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from fairseq_stack.evaluation.markdown import MISSING, table
from fairseq_stack.evaluation.pushdown import ClosingAccuracy, PushdownResult
from fairseq_stack.evaluation.results import Estimate

Results = Mapping[str, Sequence[PushdownResult]]

BRACKETS = {
    "test": ("in distribution", ("all", "distance >= 50", "distance >= 100")),
    "distance": ("deeper strings", ("depth 11 to 20", "distance >= 50", "distance >= 100")),
    "depth": ("test of depth", ("last of a string", "depth 11 to 20", "depth > 20")),
    "depth-beam": ("test of depth", ("last of a string", "depth 11 to 20", "depth > 20")),
}
"""For each result on Dyck strings its name in the table, and the groups of closing brackets that are shown."""


def read_results(runs: Mapping[str, Sequence[Path]], name: str) -> Results:
    """The results of the runs of each kind with this name."""
    return {kind: [PushdownResult.read(run / f"{name}.json") for run in folders] for kind, folders in runs.items()}


def dyck_table(runs: Mapping[str, Sequence[Path]]) -> str:
    """The accuracy of closing brackets, with gold parses and with the models' own."""
    sets = {name: read_results(runs, name) for name in BRACKETS}
    columns = [f"{kind}, {parses}" for kind in runs for parses in ("gold", "own")]
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
    return with_signatures(table(["closing brackets", "number", *columns], rows), sets.values())


def _closing(result: PushdownResult, group: str) -> ClosingAccuracy | None:
    return next((closing for closing in result.closings if closing.group == group), None)


def trees_table(runs: Mapping[str, Sequence[Path]]) -> str:
    """Perplexity with gold parses and with the model's own, and the F1 of the best parse."""
    results, rows = read_results(runs, "test"), []
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
    return with_signatures(table(["model", "parameters", *columns], rows), [results])


def _percent(share: Estimate | None) -> str:
    return f"{100 * share.value:.1f}" if share else MISSING


def with_signatures(text: str, sets: Iterable[Results]) -> str:
    """The table, with the signatures of its results."""
    signatures = dict.fromkeys(f"`{x.signature}`" for kinds in sets for results in kinds.values() for x in results)
    return "\n\n".join([text, "Accuracy and F1 in %. Each value is from one seed.", "\n".join(signatures)]) + "\n"
