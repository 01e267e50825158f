"""How much models that parse attend to a noun in between when they predict a verb (Murty et al., 2023, Fig. 5).

python scripts/experiments/attention_to_distractors.py SUITES OUT.json MODEL...

SUITES holds number_orc.json, number_prep.json and number_src.json of SyntaxGym. Each of their items asks twice for a
verb, with a subject in the singular and a noun in the plural before the verb, and the other way round: "The author that
hurt the senators is". A model reads what is before the verb, with the best parse that it finds itself; weights are
means over all heads of all layers. Intervals (95 %) are bootstrapped over the prefixes of a suite.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from itertools import chain
from pathlib import Path

from fairseq_stack.evaluation.intervals import Intervals
from fairseq_stack.evaluation.markdown import table
from fairseq_stack.evaluation.results import Estimate
from fairseq_stack.evaluation.syntaxgym import CATEGORIES, Suite, read_suite
from fairseq_stack.hub.interface import Hub, load
from fairseq_stack.inspection.parses import inspect_parses

SUBJECT, NOUNS, VERB = "np_sing", ("embed_np", "prep_np"), "matrix_v"  # regions
COLUMNS = ("subject", "noun in between")
INTERVALS = Intervals(1000, 0.95, 0)


def prefixes(suite: Suite) -> Iterator[tuple[str, list[int]]]:
    """Each sentence with the right verb, and the numbers of its subject, of the noun in between and of the verb."""
    number_of = {name: number for number, name in suite.region_names.items()}
    between = next(number_of[name] for name in NOUNS if name in number_of)
    for item in suite.items:
        for condition, regions in item.regions.items():
            if condition.startswith("match_"):
                words = {number: regions[number].split() for number in sorted(regions)}
                places = (
                    1 + sum(len(words[before]) for before in words if before < number)
                    for number in (number_of[SUBJECT], between, number_of[VERB])
                )
                yield " ".join(chain(*words.values())), list(places)


def attention(model: Hub, suite: Suite) -> dict[str, Estimate]:
    """The mean weight of each of the two nouns when the verb is predicted."""
    weights = []
    for text, (*nouns, verb) in prefixes(suite):
        sentence = inspect_parses(model, text, before=verb)
        of_tokens = sentence.parses[0].mean_attention()[-1]
        weights.append([float(of_tokens[list(sentence.tokens_of(noun))].sum()) for noun in nouns])
    return {
        name: INTERVALS.of_rate(column, [1] * len(column), stream)
        for stream, (name, column) in enumerate(zip(COLUMNS, zip(*weights, strict=True), strict=True))
    }


def main(suites: str, numbers: str, *models: str) -> None:
    """Write the numbers, and print the table."""
    read = [read_suite(Path(suites) / f"{name}.json") for name in CATEGORIES["agreement"]]
    hubs = ((model, load(model)) for model in models)
    estimates = {model: {suite.name: attention(hub, suite) for suite in read} for model, hub in hubs}
    Path(numbers).write_text(json.dumps(estimates, indent=2, default=asdict) + "\n", encoding="utf-8")
    rows = [
        [name, model, *(" (".join(value.cells(3)) + ")" for value in nouns.values())]
        for model, of_suites in estimates.items()
        for name, nouns in of_suites.items()
    ]
    print(table(("suite", "model", *COLUMNS), rows))


if __name__ == "__main__":
    main(*sys.argv[1:])
