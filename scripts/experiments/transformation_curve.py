"""The scores of all checkpoints of a training on question formation or tense reinflection, as a table.

python scripts/experiments/transformation_curve.py RUN CORPUS OUT.tsv

RUN is the folder of the checkpoints, whose names have their numbers of updates (checkpoint_EPOCH_UPDATES.pt). They are
scored by fairseq-stack evaluate-transformations on the generalisation set of CORPUS. OUT.tsv has for each the scores on
all pairs and for each type of subject, without intervals; a score is empty if there are no pairs for it.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from fairseq_stack.cli import main as fairseq_stack
from fairseq_stack.evaluation.transformations import TransformationResult, TransformationScores

SCORES = (
    *("full_sentence", "linear_answer", "deciding_word", "restricted", "probability", "conditional_probability"),
    *("cross_entropy", "log_ratio", "prefers_target"),
)
COLUMNS = ("updates", "subject", "pairs", *SCORES)


def row(updates: int, scores: TransformationScores) -> list[str]:
    """A row of the table."""
    values = (getattr(scores, name) for name in SCORES)
    return [str(updates), scores.subject, str(scores.pairs), *("" if x is None else f"{x.value:.5g}" for x in values)]


def rows(run: Path, corpus: str) -> Iterator[list[str]]:
    """The rows of all checkpoints, by their updates."""
    checkpoints = {int(path.stem.rpartition("_")[2]): path for path in run.glob("checkpoint_*_*.pt")}
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder, "result.json")
        for updates, checkpoint in sorted(checkpoints.items()):
            arguments = [str(checkpoint), "--data", corpus, "--split", "gen", "--bootstrap", "1", "--json", str(result)]
            if fairseq_stack(["evaluate-transformations", *arguments]):
                sys.exit(f"{checkpoint} could not be scored")
            of_all = TransformationResult.read(result)
            yield from (row(updates, scores) for scores in (of_all.overall, *of_all.by_subject))


def main(run: str, corpus: str, out: str) -> None:
    """Write the table."""
    content = "".join("\t".join(cells) + "\n" for cells in (COLUMNS, *rows(Path(run), corpus)))
    Path(out).write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
