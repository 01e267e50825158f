"""What a score leaves out: recorded by :mod:`~fairseq_stack.compat.fairseq_task`, said in the line with the score."""

from __future__ import annotations

import logging

from fairseq_stack.compat.replacing import sets

_COMMANDS = ("fairseq_cli.eval_lm", "fairseq_cli.generate")
_RESULTS = ("Loss (base 2)", "Translated ")


class _LeftOut(logging.Filter):
    """Records what the last data set to be batched leaves out, and adds it to the line with the score."""

    def __init__(self) -> None:
        super().__init__()
        self.num_samples = 0
        self.text = ""

    def filter(self, record: logging.LogRecord) -> bool:
        """Complete the line with the score."""
        if str(record.msg).startswith(_RESULTS):
            record.msg, record.args = self.complete(record.getMessage()), None
        return True

    def complete(self, result: str) -> str:
        """The text with a score, followed by what the score leaves out."""
        return f"{result}; {self.text}" if self.text else result


left_out = _LeftOut()


@sets("the logs of fairseq-eval-lm and fairseq-generate")
def say_what_scores_leave_out() -> None:
    """Report in each line with a score how much of the data the score does not cover.

    Unnecessary with a fairseq that counts what it leaves out.
    """
    for command in _COMMANDS:
        logging.getLogger(command).addFilter(left_out)
