"""The models neural_stack and neural_stack_buffered."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from fairseq_stack.errors import UserError
from tests.helpers import assert_normwise_close
from tests.models.building import (
    build_language_model,
    build_transduction_model,
    count_parameters,
    make_dictionary,
)

DICTIONARY = make_dictionary(5)
FIRST = DICTIONARY.nspecial
# Symbols of the alphabet; linear, buffered linear, LSTM. The networks without a stack are as large as those with one.
COUNTS = {
    "reversal": (3, "", 42, 54, 757),
    "xor": (3, "_xor", 110, 130, 961),
    "parenthesis": (5, "", 72, None, 859),
    "formula": (7, "", 110, None, 961),
    "agreement": (10, "", 182, None, 1114),
}


def random_tokens(*shape: int) -> torch.Tensor:
    return torch.randint(FIRST, len(DICTIONARY), shape)


def logits(model: Any, tokens: torch.Tensor, **options: Any) -> torch.Tensor:
    output: torch.Tensor = model(tokens, **options)["encoder_out"]
    return output


@pytest.mark.parametrize("task", COUNTS)
@pytest.mark.parametrize("multiple_of", [1, 8], ids=["padding-factor-1", "padding-factor-8"])
def test_counts_of_the_paper(task: str, multiple_of: int) -> None:
    size, ending, linear, buffered, lstm = COUNTS[task]
    expected = {f"neural_stack_linear{ending}_2018": linear, f"neural_stack_lstm{ending}_2018": lstm}
    if not ending:
        expected |= {"neural_stack_linear_none_2018": linear, "neural_stack_lstm_none_2018": lstm}
    if buffered is not None:
        expected[f"neural_stack_buffered_linear{ending}_2018"] = buffered
    for preset, count in expected.items():
        assert count_parameters(build_transduction_model(preset, make_dictionary(size, multiple_of))) == count


def test_special_symbols_are_vectors_of_zeros() -> None:
    model = build_transduction_model("neural_stack", make_dictionary(3, multiple_of=8))
    assert torch.equal(model.encoder.inputs(torch.arange(8)), torch.eye(4)[[3, 3, 3, 3, 0, 1, 2, 3]][:, :3])


@pytest.mark.parametrize(("time_steps", "steps"), [("n", 6), ("2n", 12), ("9", 9)])
@pytest.mark.parametrize("reading", ["dequeue-first", "read-first"])
def test_steps_and_reading_of_a_buffered_network(time_steps: str, steps: int, reading: str) -> None:
    flags = (f"--time-steps={time_steps}", f"--output-reading={reading}")
    model, tokens = build_transduction_model("neural_stack_buffered", DICTIONARY, *flags).double(), random_tokens(2, 6)
    inputs = torch.eye(5, dtype=torch.float64)[tokens - FIRST]
    expected, _ = model.encoder.network(inputs, steps=steps, reading=reading)
    assert_normwise_close(logits(model, tokens), expected, 1e-12)
    assert_normwise_close(logits(model, tokens[1:]), expected[1:], 1e-12)


@pytest.mark.parametrize(
    ("arch", "flags", "message"),
    [
        ("neural_stack", "--vector-size=0", "--vector-size: expected at least 1, got 0"),
        ("neural_stack", "--hidden-size=0", "--hidden-size: expected at least 1, got 0"),
        ("neural_stack", "--pushed=input --vector-size=2", "--pushed input: expected --vector-size 5, .*, got 2"),
        ("neural_stack_buffered", "--time-steps=3n", "--time-steps: expected n, 2n or a number, got 3n"),
    ],
)
def test_wrong_options(arch: str, flags: str, message: str) -> None:
    with pytest.raises(UserError, match=f"^{message}"):
        build_transduction_model(arch, DICTIONARY, *flags.split())


def test_an_input_that_is_longer_than_the_steps() -> None:
    model = build_transduction_model("neural_stack_buffered", DICTIONARY, "--time-steps=5")
    with pytest.raises(UserError, match=r"^--time-steps 5: expected at least 6, the length of the padded input"):
        model(random_tokens(1, 6))


def test_another_task() -> None:
    with pytest.raises(UserError, match=r"^neural_stack: expected --task stack_transduction, got LanguageModelingTask"):
        build_language_model("neural_stack", DICTIONARY)
