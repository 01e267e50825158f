"""``fairseq.scoring``: the line with BLEU says what it leaves out."""

from __future__ import annotations

import functools
from typing import Any

from fairseq_stack.compat.left_out import left_out
from fairseq_stack.compat.replacing import replaces


@replaces("fairseq.scoring:build_scorer")
def build_scorer(original: Any, choice: Any, tgt_dict: Any) -> Any:
    """Report with each score what it leaves out; score transductions by accuracy unless another score is requested.

    For every model; accuracy for stack models. Unnecessary with a fairseq that counts what it leaves out.
    """
    is_default = getattr(choice, "_name", choice) == "bleu"
    scorer = getattr(tgt_dict, "scorer", None) if is_default else None
    scorer = scorer or original(choice, tgt_dict)
    scorer.result_string = functools.partial(_complete_result_string, scorer)
    return scorer


def _complete_result_string(scorer: Any, *args: Any, **kwargs: Any) -> str:
    return left_out.complete(type(scorer).result_string(scorer, *args, **kwargs))
