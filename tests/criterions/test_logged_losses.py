"""What criterions with a second loss log."""

from __future__ import annotations

import math

import pytest
from fairseq.logging import metrics

from fairseq_stack.criterions._words import log_losses


def test_the_loss_is_per_sample_and_its_parts_are_per_word() -> None:
    """With ``--sentence-avg``, the samples are sentences."""
    outputs = [
        {"loss": 6.0, "nll_loss": 4.0, "second": 2.0, "ntokens": 5, "nsentences": 1, "sample_size": 1},
        {"loss": 9.0, "nll_loss": 6.0, "second": 3.0, "ntokens": 15, "nsentences": 2, "sample_size": 2},
    ]
    with metrics.aggregate(new_root=True) as logged:
        log_losses(outputs, "second")
    values = {name: logged.get_smoothed_value(name) for name in ("loss", "nll_loss", "second", "ppl")}
    expected = {"loss": 15 / 3 / math.log(2), "nll_loss": 10 / 20 / math.log(2), "second": 5 / 20 / math.log(2)}
    assert values == pytest.approx(expected | {"ppl": math.exp(10 / 20)}, abs=0.01)
