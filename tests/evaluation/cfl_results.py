"""Results of evaluate-cfl, made up."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fairseq_stack.evaluation.cfl_result import (
    CFLResult,
    LengthScores,
    Samples,
    StringScores,
)
from fairseq_stack.evaluation.results import Estimate, Model

BY_LENGTH = {40: 0.25, 42: 0.5, 44: 1.0}
SAMPLES = Samples(100, 41, 0, 120)

# What write_results writes of Tf, as arguments of fairseq-stack plot.
TF = "Tf=tf-1.json Tf=tf-2.json Tf=tf-hardest.json"
TF_VALID = "Tf=tf-1-valid.json Tf=tf-2-valid.json"


def cfl_result(
    difference: float = 0.25,
    *,
    language: str = "dyck",
    split: str = "test",
    checkpoint: str = "tf/checkpoint_best.pt",
    by_length: Mapping[int, float] = BY_LENGTH,
    eos: bool = True,
    train_lengths: tuple[int, int] = (40, 42),
    samples: Samples | None = SAMPLES,
) -> CFLResult:
    """A result with these figures; the interval of a difference reaches from half to twice of it."""
    return CFLResult(
        signature=f"language:{language}|split:{split}|version:fairseq_stack-1",
        language=language,
        split=split,
        eos=eos,
        train_lengths=train_lengths,
        model=Model(checkpoint, "arch", 10),
        overall=StringScores(300, 12_000, 0.5 + difference, 0.5, estimate(difference)),
        by_length=tuple(
            LengthScores(100, 100 * (length + 1), 0.5 + value, 0.5, estimate(value), length)
            for length, value in by_length.items()
        ),
        samples=samples,
    )


def estimate(value: float) -> Estimate:
    return Estimate(value, value / 2, value * 2)


def write_results(folder: Path) -> None:
    """Two restarts of Tf on test and valid, Tf+Nd, and Tf on a second language."""
    for name, result in {
        "tf-1": cfl_result(0.5, checkpoint="1"),
        "tf-2": cfl_result(0.25, checkpoint="2", by_length={40: 0.5, 42: 1.0, 44: 2.0}),
        "tf-1-valid": cfl_result(0.75, split="valid", checkpoint="1"),
        "tf-2-valid": cfl_result(0.125, split="valid", checkpoint="2"),
        "nd": cfl_result(0.125, by_length={40: 0.125, 42: 0.25, 44: 0.5}),
        "tf-hardest": cfl_result(0.0625, language="hardest-cfl", train_lengths=(40, 44), samples=None),
    }.items():
        result.write(folder / f"{name}.json")
