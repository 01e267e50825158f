"""All generated tasks, with the lengths and depths of the papers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from . import chomsky, strings
from .grammars import AGREEMENT_TASK, FORMULA_TASK, PARENTHESIS_TASK, GrammarTask
from .pairs import Source
from .problems import DELETANG, DELTASTACK, FIRST_VERSION, Problem
from .strings import Lengths

Settings = Mapping[str, float]
"""Values of options by name, e.g. ``max_length``."""


@dataclass(frozen=True)
class Task:
    """A generated task.

    Attributes:
        name: its name on the command line.
        form: what its pairs look like.
        train: its options, with their defaults for train and valid.
        test: the same for test. ``symbols``, which is one option for all splits, is only in ``train``.
        training: the source of train and valid.
        testing: the source of test.
        repeats: whether a drawn test set may have a string twice, as two of the authors' have.
        test_size: number of pairs in test.
        least_length: strings cannot be shorter.
        greatest_depth: derivations cannot be deeper; to draw a string takes time that grows with its ambiguity.
    """

    name: str
    form: str
    train: Settings
    test: Settings
    training: Callable[[Settings], Source]
    testing: Callable[[Settings], Source]
    repeats: bool = False
    test_size: int = 1000
    least_length: int = 1
    greatest_depth: int = 100


def _of_lengths(
    name: str,
    form: str,
    source: Callable[..., Source],
    train: Lengths,
    test: Lengths,
    *,
    symbols: int | None = None,
    test_size: int = 1000,
    least_length: int = 1,
) -> Task:
    """A task on strings of given lengths; ``source`` takes lengths and, if that is given, the number of symbols."""

    def make(settings: Settings) -> Source:
        lengths = Lengths(
            int(settings["min_length"]),
            int(settings["max_length"]),
            settings.get("mean_length"),
            settings.get("std_length"),
        )
        return source(lengths) if symbols is None else source(lengths, symbols=int(settings["symbols"]))

    more = {} if symbols is None else {"symbols": symbols}
    return Task(
        name,
        form,
        {**more, **_settings(train)},
        _settings(test),
        make,
        make,
        test_size=test_size,
        least_length=least_length,
    )


def _settings(lengths: Lengths) -> Settings:
    settings: dict[str, float] = {"min_length": lengths.least, "max_length": lengths.greatest}
    if lengths.mean is not None and lengths.std is not None:
        settings |= {"mean_length": lengths.mean, "std_length": lengths.std}
    return settings


def _of_grammar(
    name: str, form: str, task: GrammarTask, depth: int, test_depth: int, *, repeats: bool, greatest_depth: int = 100
) -> Task:
    """A task on strings of a grammar: train is uniform over strings, test over derivations."""
    return Task(
        name,
        form,
        {"depth": depth},
        {"depth": test_depth},
        lambda settings: task.strings(int(settings["depth"])),
        lambda settings: task.trees(int(settings["depth"])),
        repeats=repeats,
        greatest_depth=greatest_depth,
    )


def _of_problem(problem: Problem, train: Lengths, test: Lengths) -> Task:
    train = Lengths(max(train.least, problem.least_length), train.greatest)
    return _of_lengths(problem.name, problem.form, problem.source, train, test, least_length=problem.least_length)


_SHORT, _LONG = Lengths(1, 12, 10.0, 2.0), Lengths(1, 24, 20.0, 4.0)
_UP_TO_40, _UP_TO_500 = Lengths(1, 40), Lengths(41, 500)
_BITS = Lengths(12, 12), Lengths(24, 24)

TASKS = {
    task.name: task
    for task in (
        _of_lengths("reversal", "w, blanks -> blanks, w reversed", strings.reversal, _SHORT, _LONG, symbols=2),
        _of_lengths("xor", "bits -> XOR of the bits so far", strings.xor, *_BITS),
        _of_lengths("delayed_xor", "bits -> XOR of the bits before", strings.delayed_xor, *_BITS),
        _of_grammar(
            "parenthesis", "brackets -> the next symbol", PARENTHESIS_TASK, 6, 12, repeats=True, greatest_depth=20
        ),
        _of_grammar("formula", "Boolean formula -> value so far", FORMULA_TASK, 6, 7, repeats=False),
        _of_grammar("agreement", "sentence -> the next word", AGREEMENT_TASK, 16, 32, repeats=True),
        _of_lengths("copy", "w -> w", strings.copy, _SHORT, _LONG, symbols=2),
        _of_lengths(
            "reverse_deletion",
            "reversal without half of the symbols",
            strings.reverse_deletion,
            _SHORT,
            _LONG,
            symbols=4,
        ),
        _of_lengths(
            "counting", "a^n b^n -> the next symbol", strings.counting, Lengths(1, 50), Lengths(51, 100), test_size=50
        ),
        _of_lengths("reverse_string", "reversal, lengths uniform", strings.reversal, _UP_TO_40, _UP_TO_500, symbols=2),
        _of_lengths("stack_manipulation", "stack, actions -> stack", chomsky.stack_manipulation, _UP_TO_40, _UP_TO_500),
        _of_lengths(
            "modular_arithmetic", "expression -> value modulo 5", chomsky.modular_arithmetic, _UP_TO_40, _UP_TO_500
        ),
        _of_lengths(
            "solve_equation",
            "equation -> x modulo 5",
            chomsky.solve_equation,
            Lengths(3, 40),
            _UP_TO_500,
            least_length=3,
        ),
        _of_lengths(
            "solve_equation_as_coded",
            "the same, x placed as in the authors' code",
            partial(chomsky.solve_equation, from_index=True),
            Lengths(3, 40),
            _UP_TO_500,
            least_length=3,
        ),
        *(_of_problem(problem, _UP_TO_40, _UP_TO_500) for problem in (*DELETANG, *FIRST_VERSION)),
        *(_of_problem(problem, Lengths(3, 60), Lengths(60, 256)) for problem in DELTASTACK),
    )
}
"""All generated tasks by name."""

_PROBLEMS = (*DELETANG, *FIRST_VERSION, *DELTASTACK)
AT_LAST = frozenset(problem.name for problem in _PROBLEMS if problem.at_last)
"""The tasks whose answer stands at the last symbol of the input."""

AFTER_READING = frozenset(
    {
        *("reversal", "reverse_deletion", "reverse_string", "stack_manipulation", "modular_arithmetic"),
        *("solve_equation", "solve_equation_as_coded"),
        *(problem.name for problem in _PROBLEMS if not problem.at_last),
    }
)
"""The tasks whose targets are blank until the input is, and are not scored there."""
