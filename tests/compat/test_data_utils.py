"""Batches, that no sentence is left out of them, and the processes that read them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fairseq_stack
from fairseq_stack.errors import UserError
from tests.commands.running import Server

USER_DIR = str(Path(fairseq_stack.__file__).parent)
pytestmark = pytest.mark.usefixtures("shims")


@pytest.mark.parametrize("multiple", [1, 8])
@pytest.mark.parametrize("size", [0, 5, 8, 37, 40])
@pytest.mark.parametrize("limits", [{"max_sentences": 16}, {"max_tokens": 90}], ids=["sentences", "tokens"])
def test_every_sentence_is_in_one_batch(limits: dict[str, int], size: int, multiple: int) -> None:
    from fairseq.data import data_utils

    lengths = np.sort(np.random.RandomState(0).randint(1, 12, size=size)).astype(np.int64)
    for indices in (np.arange(size), range(size)):
        batches = data_utils.batch_by_size(
            indices,
            num_tokens_fn=lambda i: lengths[i],
            num_tokens_vec=lengths,
            required_batch_size_multiple=multiple,
            **limits,
        )
        assert [i for batch in batches for i in batch] == list(range(size))
        full = [len(batch) for batch in batches[:-1]]
        assert all(length % multiple == 0 or length < multiple for length in full)


def test_sentence_that_fits_into_no_batch() -> None:
    from fairseq.data import data_utils

    lengths = np.array([3, 9, 5])
    message = "--max-tokens .*: expected at least 9, the number of tokens of the longest sentence, got 8"
    for known in (None, lengths):
        with pytest.raises(UserError, match=message):
            data_utils.batch_by_size(np.arange(3), lambda i: lengths[i], num_tokens_vec=known, max_tokens=8)


PARSERS = """
import sys
from fairseq import options

def multiples(*arguments):
    values = []
    for name in ("training", "generation", "interactive_generation", "validation", "eval_lm"):
        sys.argv = [name, "data", *arguments]
        parser = getattr(options, f"get_{name}_parser")()
        values.append(parser.parse_known_args()[0].required_batch_size_multiple)
    return values

user_dir = sys.argv[1]
print("with", multiples("--user-dir", user_dir))
print("given", multiples("--user-dir", user_dir, "--required-batch-size-multiple", "8"))
"""


def test_default_of_all_commands_is_1(server: Server, tmp_path: Path) -> None:
    ending = server.run_program(PARSERS, tmp_path, USER_DIR)
    assert ending.code == 0, ending.errors
    output = ending.printed
    assert "with [1, 1, 1, 1, 1]" in output
    assert "given [8, 8, 8, 8, 8]" in output
