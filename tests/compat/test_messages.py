"""A mistake of the user ends a command of fairseq with one line; other errors keep their traceback."""

from __future__ import annotations

import textwrap

import pytest
from torch._utils import ExceptionWrapper

from fairseq_stack.compat import messages
from fairseq_stack.errors import UserError
from tests.commands.running import REPOSITORY, Server

# A program of the name of a command, in which the plugin is imported and then something goes wrong.
PROGRAM = """
import sys
sys.argv[0] = {name!r}
import fairseq
import fairseq_stack.models
{code}
"""


def run(server: Server, code: str, name: str = "/usr/bin/fairseq-train", **environment: str) -> tuple[int, str]:
    """Run a program and return its exit code and what it wrote to standard error."""
    program = PROGRAM.format(name=name, code=textwrap.dedent(code))
    ending = server.run_program(program, REPOSITORY, **environment)
    return ending.code, ending.errors


OURS = "from fairseq_stack.errors import UserError; raise UserError('--beam: expected 1, got 0')"


def test_our_error_is_one_line(server: Server) -> None:
    assert run(server, OURS) == (2, "fairseq-train: error: --beam: expected 1, got 0\n")


def test_interruption_is_one_line(server: Server) -> None:
    assert run(server, "raise KeyboardInterrupt") == (130, "fairseq-train: interrupted\n")


def test_module_of_a_command_has_its_name(server: Server) -> None:
    assert run(server, OURS, "/x/fairseq_cli/eval_lm.py") == (2, "fairseq-eval-lm: error: --beam: expected 1, got 0\n")


@pytest.mark.parametrize(
    ("code", "name", "environment"),
    [
        (OURS, "my_program.py", {}),
        (OURS, "fairseq-train", {"FAIRSEQ_STACK_TRACEBACK": "1"}),
        ("raise ValueError('--beam: expected 1, got 0')", "fairseq-train", {}),
    ],
    ids=["in-another-program", "on-request", "an-error-of-something-else"],
)
def test_traceback(server: Server, code: str, name: str, environment: dict[str, str]) -> None:
    status, said = run(server, code, name, **environment)
    assert status == 1
    assert said.startswith("Traceback")
    assert said.endswith("Error: --beam: expected 1, got 0\n")


def test_error_of_a_worker_process_of_torch() -> None:
    try:
        raise UserError("line 3: a symbol that cannot occur")
    except UserError:
        wrapped = ExceptionWrapper(where="in DataLoader worker process 0")
    with pytest.raises(UserError) as error:
        wrapped.reraise()
    assert "Traceback" in str(error.value)
    assert messages.message_of(error.value) == "line 3: a symbol that cannot occur"


def test_message_of_several_lines() -> None:
    error = UserError("cannot continue from a.pt: Error(s) in loading:\n\tsize mismatch for weight")
    assert messages.message_of(error) == "cannot continue from a.pt: Error(s) in loading: size mismatch for weight"


def test_error_of_a_process_that_torch_has_spawned() -> None:
    text = "\n\n-- Process 1 terminated with the following error:\nTraceback (most recent call last):\n  File ...\n"
    assert messages.message_of(RuntimeError(f"{text}fairseq_stack.errors.UserError: --a: wrong\n")) == "--a: wrong"
    assert messages.message_of(RuntimeError(f"{text}ValueError: --a: wrong\n")) is None
    truncated = messages.message_of(RuntimeError(f"{text}ValueError: buffer is smaller than requested size\n"))
    assert truncated == "a file of the binarised data (.idx or .bin) ends early: binarise the data again"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (AssertionError("--sampling-topp requires --sampling"), "--sampling-topp requires --sampling"),
        (OSError("Model file not found: a.pt"), "--path: a.pt does not exist"),
        (ValueError("loaded state dict has a different number of parameter groups"), "the checkpoint that training "
         "continues from was trained with another --stack-lr-scale; use the same scale, give --reset-optimizer, or "
         "choose another --save-dir and no --restore-file"),
        (ValueError("--finetune-from-model and --restore-file (non-default value) can not be specified together: {..."),
         "--finetune-from-model and --restore-file (non-default value) can not be specified together"),
        (OSError("Model file not found: a.pt:b.pt"), "--path: a.pt:b.pt does not exist (only fairseq-generate and "
         "fairseq-interactive take several checkpoints)"),
    ],
)  # fmt: skip
def test_errors_of_fairseq(error: Exception, message: str) -> None:
    assert messages.message_of(error) == message


@pytest.mark.parametrize(
    "error",
    [AssertionError("other"), KeyError(None), FileNotFoundError(2, "No such file or directory", "x.py"), OSError()],
)
def test_other_errors_are_left_as_they_are(error: Exception) -> None:
    assert messages.message_of(error) is None
