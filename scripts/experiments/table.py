"""The table of an experiment: for each kind of model, the run with the best validation, and its scores on test data.

If there are several runs of a kind, a second table has the mean of their scores and the standard deviation.

python scripts/experiments/table.py TASK OUT KIND=RUN[,RUN...] ...

TASK is translation, language-modeling, stream, syntax, cost, cfl, learning, transduction, transformations, studies,
dyck, trees or classification.

A RUN is a folder with train.log, in it or above it, and, for translation, scores.json (of sacrebleu); for language
modelling, score-valid.out and score-test.out (of fairseq-eval-lm); for a stream, stream-valid.out and stream-test.out
(of fairseq-validate --task stack_truncated_bptt --log-format json); for syntax, surprisals-valid.tsv and
surprisals-test.tsv (of fairseq-stack surprisal --unit nats --end), blimp.json and suites.json; for cost,
train.resources.tsv (Snakemake's benchmark of the training run); for cfl and learning, valid.json and test.json (of
fairseq-stack evaluate-cfl), with LANGUAGE:KIND=RUN for each run; for transduction, valid.json and length-N.json (of
fairseq-stack evaluate-transduction), and for transformations, test.json and gen.json (of fairseq-stack
evaluate-transformations), with TASK:KIND=RUN; for studies, valid.json and test.json (of fairseq-stack
evaluate-transduction); for dyck, test.json, distance.json, depth.json and depth-beam.json, and for trees, test.json (of
fairseq-stack evaluate-pushdown); and for classification, valid.json, and perhaps test.json and nonce.json (of
fairseq-stack evaluate-classification), with TASK:KIND=RUN.

The table is written to OUT, in Markdown, with a signature for each score, and printed. The tables of cfl, transduction
and transformations have only means and deviations, that of learning says how many runs reach the lower bound, that of
studies has the minimum, the median and the maximum, and in those of dyck, trees and classification the scores of a
kind's runs stand side by side.
"""

from __future__ import annotations

import csv
import json
import math
import re
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

# Files next to this one
from classification_table import classification_table
from learning_table import learning_table
from pushdown_tables import dyck_table, trees_table
from studies_table import studies_table

from fairseq_stack.errors import UserError
from fairseq_stack.evaluation.blimp import BLiMPResult
from fairseq_stack.evaluation.cfl_result import CFLResult
from fairseq_stack.evaluation.markdown import MISSING, table
from fairseq_stack.evaluation.results import method_of
from fairseq_stack.evaluation.syntaxgym import SyntaxGymResult
from fairseq_stack.evaluation.training_log import TrainingLog, read_training_log
from fairseq_stack.evaluation.transduction import TransductionResult
from fairseq_stack.evaluation.transformations import TransformationResult
from fairseq_stack.files import read_lines, read_text


class Score(NamedTuple):
    """A score that can be compared with another one if the signatures, in the form of sacrebleu's, are equal."""

    name: str
    value: float
    signature: str


@dataclass(frozen=True)
class Run:
    """One training run and the scores of its best checkpoint."""

    folder: Path
    training: TrainingLog
    scores: tuple[Score, ...]


def translation_scores(folder: Path) -> tuple[Score, ...]:
    """BLEU and chrF, as sacrebleu wrote them."""
    return tuple(
        Score(score["name"], score["score"], f"data:test|{score['signature']}")
        for score in json.loads(read_text(folder / "scores.json"))
    )


def language_modeling_scores(folder: Path) -> tuple[Score, ...]:
    """The perplexity of the validation and the test set, the ends of the sentences counted."""
    scores = []
    for split in ("valid", "test"):
        text = read_text(folder / f"score-{split}.out")
        found = re.search(
            r" ([\d,]+) examples$.*Evaluated ([\d,]+) tokens.*Perplexity: (\S+)$", text, re.DOTALL | re.MULTILINE
        )
        if found is None:
            raise UserError(f"{folder}/score-{split}.out has no score of all sentences; did fairseq-eval-lm write it?")
        sentences, tokens = (int(number.replace(",", "")) for number in found.groups()[:2])
        signature = method_of(data=split, sentences=sentences, tokens=tokens, eos="counted")
        scores.append(Score(f"{split} ppl", float(found[3]), signature))
    return tuple(scores)


def stream_scores(folder: Path) -> tuple[Score, ...]:
    """The perplexity of the validation and the test set as streams, with the state carried through the whole text."""
    scores = []
    for split in ("valid", "test"):
        text = read_text(folder / f"stream-{split}.out")
        perplexity = re.search(rf'"{split}_ppl": "([^"]+)"', text)
        division = re.search(rf"{split}: ([\d,]+) of [\d,]+ tokens, in ([\d,]+) rows", text)
        if perplexity is None or division is None:
            raise UserError(f"{folder}/stream-{split}.out has no score of a stream; did fairseq-validate write it?")
        tokens, rows = (int(number.replace(",", "")) for number in division.groups())
        signature = method_of(data=split, tokens=tokens, eos="counted", rows=rows)
        scores.append(Score(f"{split} ppl", float(perplexity[1]), signature))
    return tuple(scores)


def syntax_scores(folder: Path) -> tuple[Score, ...]:
    """The perplexity of the validation and the test set, and the accuracies on BLiMP and SyntaxGym, in percent."""
    blimp = BLiMPResult.read(folder / "blimp.json")
    suites = SyntaxGymResult.read(folder / "suites.json")
    if suites.accuracy is None:
        raise UserError(f"{folder}/suites.json has no suite of a category")
    perplexities = [perplexity(folder / f"surprisals-{split}.tsv", split) for split in ("valid", "test")]
    return (
        *perplexities,
        Score("BLiMP", 100 * blimp.overall.accuracy.value, f"data:pairs|{blimp.signature}"),
        Score("SyntaxGym", 100 * suites.accuracy, f"data:suites|{suites.signature}"),
    )


def perplexity(path: Path, split: str) -> Score:
    """The perplexity that surprisals in nats give, the ends of the sentences counted."""
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    tokens = sum(int(row["n_tokens"]) for row in rows)
    nats = math.fsum(float(row["surprisal_nats"]) for row in rows) / tokens
    sentences = len({row["sentence"] for row in rows})
    signature = method_of(data=split, sentences=sentences, tokens=tokens, eos="counted")
    return Score(f"{split} ppl", math.exp(nats), signature)


READERS: dict[str, Callable[[Path], tuple[Score, ...]]] = {
    "translation": translation_scores,
    "language-modeling": language_modeling_scores,
    "stream": stream_scores,
    "syntax": syntax_scores,
}


def read_runs(folders: Sequence[Path], read_scores: Callable[[Path], tuple[Score, ...]]) -> list[Run]:
    """The runs of a kind; the one with the least validation loss is the first."""
    runs = [Run(folder, read_training_log(_log_of(folder)), read_scores(folder)) for folder in folders]
    return sorted(runs, key=lambda run: run.training.least_loss)


def _log_of(folder: Path) -> Path:
    """The log of a run, whose scores may be in a folder below it."""
    above = folder.parent / "train.log"
    return above if above.exists() else folder / "train.log"


def as_markdown(runs: Mapping[str, Sequence[Run]]) -> str:
    """The tables and the signatures of their scores; the first run of a kind is its best."""
    signatures = [f"`{score.name}|{score.signature}`" for best, *_ in runs.values() for score in best.scores]
    parts = [table_of_best(runs)]
    number = max(map(len, runs.values()))
    if number > 1:
        parts.append(f"The best of {number} runs, by the loss on the validation data. Mean and standard deviation:")
        parts.append(table_of_means(runs))
    parts.append("\n".join(dict.fromkeys(signatures)))
    return "\n\n".join(parts) + "\n"


def table_of_best(runs: Mapping[str, Sequence[Run]]) -> str:
    """The scores of the best run of each kind, and what it cost."""
    rows = []
    for kind, (best, *_) in runs.items():
        training = best.training
        cells = [kind, f"{training.parameters:,}", f"{training.updates:,}", f"{training.seconds} s"]
        rows.append([*cells, *(f"{figure:.2f}" for figure in figures(best).values())])
    return table(["model", "parameters", "updates", "training", *figures(best)], rows)


def table_of_means(runs: Mapping[str, Sequence[Run]]) -> str:
    """The mean and the standard deviation of each score."""
    rows = []
    for kind, restarts in runs.items():
        columns = [figures(run) for run in restarts]
        rows.append([kind, *(mean_and_deviation([column[name] for column in columns]) for name in columns[0])])
    return table(["model", *columns[0]], rows)


def figures(run: Run) -> dict[str, float]:
    """The scores of a run; the perplexity of the validation data is among them."""
    scores = {score.name: score.value for score in run.scores}
    return scores if "valid ppl" in scores else {"valid ppl": math.exp(run.training.best.loss), **scores}


def mean_and_deviation(values: Sequence[float], digits: int = 2) -> str:
    """The mean, and the standard deviation of the population that the values are a sample of."""
    if not values:
        return MISSING
    if not all(map(math.isfinite, values)):  # a run has diverged
        return "nan"
    deviation = f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.{digits}f}{deviation}"


def cost_table(runs: Mapping[str, Sequence[Path]]) -> str:
    """What an epoch of the first run of each kind costs; the memory is the computer's, not a GPU's."""
    rows = []
    for kind, (run, *_) in runs.items():
        training = read_training_log(run / "train.log")
        sentences = len(read_lines(run.parents[1] / "corpus" / "text" / "train.txt"))
        seconds = training.seconds / training.epochs
        header, *lines = (line.split("\t") for line in read_lines(run / "train.resources.tsv"))
        memory = float(dict(zip(header, lines[-1], strict=True))["max_rss"])
        rows.append([kind, f"{sentences / seconds:,.0f}", f"{seconds / 60:.1f}", f"{memory:,.0f} MiB"])
    return f"{table(['model', 'sentences/s', 'minutes/epoch', 'memory'], rows)}\n"


def cfl_table(runs: Mapping[str, Sequence[Path]]) -> str:
    """Nats per symbol above the bound, samples and time; the bound of one length knows it, that of all does not."""
    rows = []
    for name, folders in runs.items():
        logs = [read_text(folder / "train.log") for folder in folders]
        valid, test = ([CFLResult.read(folder / f"{split}.json") for folder in folders] for split in ("valid", "test"))
        rates = dict.fromkeys(rate for log in logs for rate in re.findall(r"'lr': \[([^]]+)\]", log)[:1])
        parameters, milliseconds = size_and_time(folders)
        rows.append(
            [
                *(*name.split(":"), parameters, ", ".join(rates)),
                mean_and_deviation([result.overall.difference.value for result in valid], 3),
                mean_and_deviation(list(map(above_bound, test)), 3),
                mean_and_deviation([100 * result.samples.share for result in test if result.samples], 1),
                milliseconds,
            ]
        )
    columns = ["language", "model", "parameters", "rate", "valid", "81 to 100", "samples, %", "ms per update"]
    return f"{table(columns, rows)}\n"


def size_and_time(folders: Sequence[Path]) -> tuple[str, str]:
    """The number of parameters of these runs, and the milliseconds of their updates."""
    trainings = [read_training_log(folder / "train.log") for folder in folders]
    milliseconds = [1000 * training.seconds / training.updates for training in trainings]
    return f"{trainings[0].parameters:,}", mean_and_deviation(milliseconds, 0)


def above_bound(result: CFLResult) -> float:
    """Nats per symbol above the bounds of lengths 81 to 100."""
    rows = [scores for scores in result.by_length if 81 <= scores.length <= 100]
    return sum(scores.difference.value * scores.tokens for scores in rows) / sum(scores.tokens for scores in rows)


def transduction_table(runs: Mapping[str, Sequence[Path]]) -> str:
    """The share of scored symbols that are right, in percent, on validation data and at each length of all runs."""
    scored = [{path.stem for path in run.glob("length-*.json")} for folders in runs.values() for run in folders]
    splits = ["valid", *sorted(set.intersection(*scored), key=lambda name: int(name.removeprefix("length-")))]
    rows = []
    for name, folders in runs.items():
        parameters, milliseconds = size_and_time(folders)
        results = [[TransductionResult.read(run / f"{split}.json") for run in folders] for split in splits]
        shares = [mean_and_deviation([100 * x.overall.accuracy.value for x in of_split], 1) for of_split in results]
        rows.append([*name.split(":"), parameters, *shares, milliseconds])
    columns = ["task", "model", "parameters", *(name.removeprefix("length-") for name in splits), "ms per update"]
    return f"{table(columns, rows)}\n"


def transformation_table(runs: Mapping[str, Sequence[Path]]) -> str:
    """Scores on ``test`` and on ``gen``, where the rules differ: shares in percent, and probabilities."""
    rows = []
    for name, folders in runs.items():
        parameters, milliseconds = size_and_time(folders)
        test, gen = (
            [TransformationResult.read(run / f"{split}.json").overall for run in folders] for split in ("test", "gen")
        )
        columns = [
            ([100 * x.full_sentence.value for x in test], 1),
            *(([100 * getattr(x, name).value for x in gen], 1) for name in ("full_sentence", "restricted")),
            *(([getattr(x, name).value for x in gen], 3) for name in ("probability", "conditional_probability")),
            ([x.log_ratio.value for x in gen if x.log_ratio is not None], 2),
        ]
        cells = [*(mean_and_deviation(*x) for x in columns), found_by_subject(run / "gen.json" for run in folders)]
        rows.append([*name.split(":"), parameters, *cells, milliseconds])
    header = ["task", "model", "parameters", "test: sentence, %", "gen: sentence, %", "deciding word, restricted, %"]
    header += ["its probability", "probability of target", "log ratio", "deciding word by subject", "ms per update"]
    return f"{table(header, rows)}\n"


def found_by_subject(results: Iterable[Path]) -> str:
    """The share of deciding words that are preferred to their rivals, for each type of subject."""
    shares = defaultdict(list)
    for path in results:
        for scores in TransformationResult.read(path).by_subject:
            if scores.restricted is not None:
                shares[scores.subject].append(100 * scores.restricted.value)
    return ", ".join(f"{subject} {mean_and_deviation(values, 1)}" for subject, values in shares.items())


TABLES: dict[str, Callable[[Mapping[str, Sequence[Path]]], str]] = {
    "cost": cost_table,
    "cfl": cfl_table,
    "learning": learning_table,
    "transduction": transduction_table,
    "transformations": transformation_table,
    "studies": studies_table,
    "dyck": dyck_table,
    "trees": trees_table,
    "classification": classification_table,
}


def main(task: str, output: str, *kinds: str) -> None:
    """Write and print the table."""
    runs: dict[str, list[Path]] = {}
    for argument in kinds:
        kind, _, folders = argument.partition("=")
        runs.setdefault(kind, []).extend(map(Path, folders.split(",")))
    if task in TABLES:
        text = TABLES[task](runs)
    else:
        text = as_markdown({kind: read_runs(folders, READERS[task]) for kind, folders in runs.items()})
    Path(output).write_text(text, encoding="utf-8")
    print(text, end="")


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
