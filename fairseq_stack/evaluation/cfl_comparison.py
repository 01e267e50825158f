"""Results of ``fairseq-stack evaluate-cfl`` side by side, by language and model; a model may have several restarts."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from fairseq_stack.errors import UserError
from fairseq_stack_preprocess.cfl.languages import LANGUAGES

from .cfl_result import CFLResult
from .results import Estimate

VALID = "valid"
"""The split by which the best of several restarts is chosen."""


@dataclass(frozen=True)
class Labelled:
    """A result, the name of the model that it is about, and the file that it is from."""

    model: str
    file: str
    result: CFLResult


Restarts: TypeAlias = "list[Labelled]"
"""The results of one model on one language and split."""

Groups: TypeAlias = "dict[str, dict[str, Restarts]]"
"""Results by language and model, in the order in which these first occur."""


@dataclass(frozen=True)
class Comparison:
    """Results side by side.

    Attributes:
        split: the part of the corpora that they are on.
        groups: the best restart of each model on each language, or all of them.
        restarts: all restarts.
        runs: how many restarts there are of a model on a language: the minimum and maximum number.
        mean: whether ``groups`` has all restarts, for their mean.
    """

    split: str
    groups: Groups
    restarts: Groups
    runs: tuple[int, int]
    mean: bool

    @property
    def notes(self) -> list[str]:
        """A sentence that says what stands for several restarts; none if there are no restarts."""
        least, most = self.runs
        if most == 1:
            return []
        runs = f"{most} runs" if least == most else f"{least} to {most} runs"
        if self.mean:
            return [f"Mean and standard deviation of {runs}."]
        return [f"The best of {runs}, by the cross-entropy difference on the validation data."]


def compare(results: Sequence[Labelled], *, mean: bool, by_length: bool = False) -> Comparison:
    """Compare results on one split.

    If there are results on further splits, those on the validation data are not part of the comparison. They say which
    of several restarts is the best: the one with the least difference there.

    Args:
        results: at least one; the n-th result of a model on a language and on one split is of the same checkpoint as
            the n-th on another split.
        mean: keep all restarts, for their mean, instead of the best one.
        by_length: results on validation data have to be on strings of the same lengths, as others always have.

    Raises:
        UserError: results that stand side by side cannot be compared, or it is not known which restart is the best.
    """
    splits = dict.fromkeys(labelled.result.split for labelled in results)
    split, *others = [split for split in splits if split != VALID] or [VALID]
    if others:
        raise UserError(f"the results are on the splits {', '.join((split, *others))}; give results on one of them")
    restarts, valid = _grouped(results, split), _grouped(results, VALID)
    for labelled in results:
        language = labelled.result.language
        if labelled.model not in restarts.get(language, {}):
            raise UserError(
                f"{labelled.file}: expected the result of {labelled.model} on {language} {split}, which is missing"
            )
    for models in restarts.values():
        _require_comparable([labelled for of_model in models.values() for labelled in of_model], by_length)
    numbers = [len(of_model) for models in restarts.values() for of_model in models.values()]
    best = {
        language: {
            model: [_best(language, of_model, valid.get(language, {}).get(model, []))]
            for model, of_model in models.items()
        }
        for language, models in ({} if mean else restarts).items()
    }
    return Comparison(split, best or restarts, restarts, (min(numbers), max(numbers)), mean)


def combined(estimates: Sequence[Estimate]) -> Estimate:
    """One estimate as it is; of several the mean, with the standard deviation of the values around it."""
    if len(estimates) == 1:
        return estimates[0]
    values = [estimate.value for estimate in estimates]
    mean, deviation = statistics.fmean(values), statistics.stdev(values)
    return Estimate(mean, mean - deviation, mean + deviation)


def difference_by_length(restarts: Restarts) -> dict[int, Estimate]:
    """The cross-entropy difference for each length, ascending; see :func:`combined`."""
    rows = zip(*(labelled.result.by_length for labelled in restarts), strict=True)
    return {scores[0].length: combined([score.difference for score in scores]) for scores in rows}


def price_of_length(result: CFLResult) -> dict[int, float]:
    """What a model that is perfect on the training lengths is above the bounds of these lengths, in nats per symbol.

    It predicts which of L equally probable lengths a string has, which costs log L; the bound of one length does not. L
    is the number of training lengths that the result has. Empty if the ends of strings do not count.
    """
    low, high = result.train_lengths
    known = [scores for scores in result.by_length if low <= scores.length <= high and result.eos]
    return {scores.length: math.log(len(known)) * scores.strings / scores.tokens for scores in known}


def difference_by_alphabet(comparison: Comparison) -> dict[str, dict[str, dict[int, Estimate]]]:
    """The cross-entropy difference by language, model and size of the alphabet, ascending; see :func:`combined`.

    The names of the languages are without this size.

    Raises:
        UserError: a language has no parameter that is a number of symbols.
    """
    languages: dict[str, dict[str, dict[int, Estimate]]] = {}
    for language, models in comparison.groups.items():
        name, size = _alphabet(language)
        for model, restarts in models.items():
            estimate = combined([labelled.result.overall.difference for labelled in restarts])
            languages.setdefault(name, {}).setdefault(model, {})[size] = estimate
    return {
        name: {model: dict(sorted(estimates.items())) for model, estimates in models.items()}
        for name, models in languages.items()
    }


_SIZES = ("symbol_types", "bracket_types")


def _alphabet(language: str) -> tuple[str, int]:
    """The name of a language without the size of its alphabet, and this size, which may be the default."""
    name, *parameters = language.split(", ")
    defaults = LANGUAGES[name].defaults if name in LANGUAGES else {}
    for key in _SIZES:
        if key in defaults:
            words = key.replace("_", " ")
            sizes = [text.removeprefix(words) for text in parameters if text.startswith(words)]
            rest = [text for text in parameters if not text.startswith(words)]
            return ", ".join([name, *rest]), int(float(sizes[0] if sizes else defaults[key]))
    raise UserError(f"{language} has no number of symbols that could be varied")


def _grouped(results: Sequence[Labelled], split: str) -> Groups:
    groups: Groups = {}
    for labelled in results:
        if labelled.result.split == split:
            groups.setdefault(labelled.result.language, {}).setdefault(labelled.model, []).append(labelled)
    return groups


def _require_comparable(results: Restarts, by_length: bool) -> None:
    first, *others = results
    for other in others:
        conditions = _conditions(other, by_length)
        for name, one in _conditions(first, by_length).items():
            if one != conditions[name]:
                raise UserError(
                    f"{first.file} and {other.file} cannot be compared: {name} {one} in the one and "
                    f"{conditions[name]} in the other"
                )


def _conditions(labelled: Labelled, by_length: bool) -> dict[str, str]:
    """What has to be the same for all results on a language, in words."""
    result = labelled.result
    conditions = {
        "the ends of strings are": "counted" if result.eos else "not counted",
        "training lengths are": "{} to {}".format(*result.train_lengths),
    }
    if result.split != VALID:
        parts = result.signature.split("|")
        conditions["the strings have"] = next((part for part in parts if part.startswith("sha:")), "no sha")
    if by_length or result.split != VALID:  # lengths of validation strings are drawn
        conditions["lengths are"] = ", ".join(f"{scores.length}" for scores in result.by_length) or "none"
    return conditions


def _best(language: str, restarts: Restarts, valid: Restarts) -> Labelled:
    """The restart whose result on validation data, at the same place in ``valid``, is the best."""
    if len(restarts) == 1:
        return restarts[0]
    if len(valid) != len(restarts):
        raise UserError(
            f"{restarts[0].model} has {len(restarts)} results on {language}, but {len(valid)} on validation data, by "
            "which the best one is chosen; give a result on validation data for each, or --mean"
        )
    for one, other in zip(restarts, valid, strict=True):
        checkpoints = one.result.model.checkpoint, other.result.model.checkpoint
        if checkpoints[0] != checkpoints[1]:
            raise UserError(
                f"{one.file} is of {checkpoints[0]}, but {other.file}, at the same place among the results on "
                f"validation data, is of {checkpoints[1]}; give both in the same order"
            )
    number = min(range(len(valid)), key=lambda place: valid[place].result.overall.difference.value)
    return restarts[number]
