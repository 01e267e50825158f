"""The criterion operation_cross_entropy: the loss of words, and of the operations that parses tell a stack."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from fairseq.logging import metrics
from fairseq.modules.checkpoint_activations import checkpoint_wrapper
from torch import nn

from fairseq_stack.criterions.operation_cross_entropy import OperationCrossEntropyCriterion, operations_of_parses
from fairseq_stack.errors import UserError
from fairseq_stack.modules import NondeterministicStackAttention, StackLSTM, operation_log_probability
from tests.criterions.stack_models import EOS, PAD, TARGET, TASK, TOKENS, Model
from tests.helpers import assert_normwise_close

ATTACHMENTS = torch.tensor([[1, 1, 3, 2, 0], [1, 0, 3, 4, 5], [1, 1, 0, 4, 5]])
OPERATIONS = torch.tensor([[0, 0, 4, 3, 0], [0, 0, -1, -1, -1], [0, 0, 0, -1, -1]])


def sample() -> dict[str, Any]:
    return {"net_input": {"src_tokens": TOKENS}, "target": TARGET, "ntokens": 10, "attachments": ATTACHMENTS}


def criterion(
    weight: float = 1.0, sentence_avg: bool = False, runs: str = "sentence"
) -> OperationCrossEntropyCriterion:
    return OperationCrossEntropyCriterion(TASK, weight, sentence_avg, runs)


def test_operations_of_a_batch() -> None:
    assert torch.equal(operations_of_parses(ATTACHMENTS, torch.tensor([5, 2, 3])), OPERATIONS)


@pytest.mark.parametrize("runs", ["sentence", "prefixes"])
@pytest.mark.parametrize("lstm", [False, True], ids=["attention", "lstm"])
def test_sum_of_losses(lstm: bool, runs: str) -> None:
    """Padding has no part in it."""
    model = Model(lstm=lstm).double()
    loss, sample_size, logged = criterion(2.5, runs=runs)(model, sample())
    assert sample_size == 10
    words = operated = torch.zeros((), dtype=torch.float64)
    for tokens, target, operations in zip(TOKENS, TARGET, OPERATIONS, strict=True):
        length = int(target.ne(PAD).sum())
        log_words = model(tokens[None, :length]).log_softmax(-1)
        words = words - log_words[0].gather(1, target[:length, None]).sum()
        driving = model.embedding(tokens[None, :length])
        if isinstance(model.stack, StackLSTM):
            driving, operations = model.stack(driving[:, 1:])[0], operations[1:]
        (stack,) = (each for each in model.modules() if isinstance(each, NondeterministicStackAttention))
        size = driving.size(1)
        (of_prefixes,) = operation_log_probability(stack, driving, operations[None, :size])
        operated = operated - (of_prefixes[-1] if runs == "sentence" else of_prefixes.mean())
    assert_normwise_close(logged["nll_loss"], words.detach(), 1e-12)
    assert_normwise_close(logged["operation_loss"], operated.detach(), 1e-12)
    assert_normwise_close(loss.detach(), (words + 2.5 * operated).detach(), 1e-12)
    expected = torch.autograd.grad(words + 2.5 * operated, list(model.parameters()))
    for actual, gradient in zip(torch.autograd.grad(loss, list(model.parameters())), expected, strict=True):
        assert_normwise_close(actual, gradient, 1e-10)


def test_what_is_logged() -> None:
    """Of two workers, in bits per word."""
    model = Model()
    loss, _, logged = criterion()(model, sample())
    with metrics.aggregate() as logged_metrics:
        OperationCrossEntropyCriterion.reduce_metrics([logged, logged])
    values = logged_metrics.get_smoothed_values()
    assert values["loss"] == pytest.approx(loss.item() / 10 / math.log(2), abs=0.0006)
    assert values["nll_loss"] + values["operation_loss"] == pytest.approx(values["loss"], abs=0.002)
    assert criterion(sentence_avg=True)(model, sample())[1] == 3
    assert criterion()(model, sample(), reduce=False)[0].shape == (3,)


def test_targets_without_the_end() -> None:
    """With ``--without-eos``, the operations of all symbols that are read are supervised all the same."""
    model, batch = Model(), sample()
    without = {**batch, "target": TARGET.masked_fill(TARGET == EOS, PAD)}
    assert torch.equal(*(criterion()(model, each)[2]["operation_loss"] for each in (batch, without)))


def test_a_sentence_without_words() -> None:
    """An LSTM reads nothing of it: the stack takes no step."""
    batch = {"net_input": {"src_tokens": torch.tensor([[EOS, 5], [EOS, PAD]])}, "ntokens": 3}
    batch |= {"target": torch.tensor([[5, EOS], [EOS, PAD]]), "attachments": torch.tensor([[1, 0], [0, 3]])}
    assert criterion()(Model(lstm=True), batch)[0].isfinite()


@pytest.mark.parametrize(
    ("model", "batch", "problem"),
    [
        (Model(), {key: value for key, value in sample().items() if key != "attachments"}, "needs parses: --task push"),
        (
            Model(),
            {**sample(), "attachments": sample()["attachments"] * 0},
            "needs --sample-break-mode eos, a",
        ),
        (Model(1), sample(), "expected a stack of at least two states"),
    ],
)
def test_errors(model: Model, batch: dict[str, Any], problem: str) -> None:
    with pytest.raises(UserError, match=f"--criterion operation_cross_entropy:? {problem}"):
        criterion()(model, batch)


def test_a_model_without_such_a_stack() -> None:
    model = Model()
    model.stack = nn.Linear(8, 8)
    with pytest.raises(UserError, match="needs a nondeterministic stack, such as nd-3-3-5"):
        criterion()(model, sample())


def test_recomputed_layers() -> None:
    """Their inputs have no graph, so the loss would teach the layers below nothing."""
    model = Model()
    checkpoint_wrapper(model)
    with pytest.raises(UserError, match="does not work with --checkpoint-activations"):
        criterion()(model, sample())
    with torch.no_grad():
        criterion()(model, sample())
