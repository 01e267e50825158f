"""The criterion stack_incentives: the loss of words, the entropy of runs, and what they leave on the stack."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from fairseq.logging import metrics
from torch import nn

from fairseq_stack.criterions.stack_incentives import StackIncentivesCriterion
from fairseq_stack.errors import UserError
from fairseq_stack.modules import NondeterministicStackAttention, StackLSTM
from tests.criterions.stack_models import EOS, PAD, TARGET, TASK, TOKENS, Model
from tests.helpers import assert_normwise_close
from tests.ops.nondeterministic.runs import enumerated_runs


def sample() -> dict[str, Any]:
    return {"net_input": {"src_tokens": TOKENS}, "target": TARGET, "ntokens": 10}


def expected(model: Model) -> tuple[float, float, float]:
    """Sums over the sentences: -log p of the words, the entropy of all runs, and -log E[exp(-h)]."""
    (stack,) = (each for each in model.modules() if isinstance(each, NondeterministicStackAttention))
    words = entropy = height = 0.0
    for tokens, target in zip(TOKENS, TARGET, strict=True):
        length = int(target.ne(PAD).sum())
        words -= model(tokens[None, :length]).log_softmax(-1)[0].gather(1, target[:length, None]).sum().item()
        driving = model.embedding(tokens[None, :length])
        if isinstance(model.stack, StackLSTM):
            driving = model.stack(driving[:, 1:])[0]
        runs = list(enumerated_runs([x[0] for x in stack.transitions_of_sequence(stack.actions(driving))]))
        total = sum(math.exp(run.log_weight) for run in runs)
        probabilities = [math.exp(run.log_weight) / total for run in runs]
        entropy -= math.log(sum(p**2 for p in probabilities))
        heights = [len(run.stacks[-1]) - 1 for run in runs]
        height -= math.log(sum(p * math.exp(-h) for p, h in zip(probabilities, heights, strict=True)))
    return words, entropy, height


@pytest.mark.parametrize("lstm", [False, True], ids=["attention", "lstm"])
@torch.no_grad()
def test_enumeration_of_all_runs(lstm: bool) -> None:
    model = Model(lstm=lstm).double()
    words, entropy, height = expected(model)
    loss, sample_size, logged = StackIncentivesCriterion(TASK, 0.5, 2.0, False)(model, sample())
    assert sample_size == 10
    for name, value in (("nll_loss", words), ("run_entropy", entropy), ("height_loss", height)):
        assert logged[name].item() == pytest.approx(value, rel=1e-12)
    assert loss.item() == pytest.approx(words - 0.5 * entropy + 2 * height, rel=1e-12)


def test_gradients() -> None:
    model = Model().double()
    actions = next(each for each in model.modules() if isinstance(each, NondeterministicStackAttention)).actions
    criterion = StackIncentivesCriterion(TASK, 0.5, 2.0, False)
    (gradient,) = torch.autograd.grad(criterion(model, sample())[0], actions.weight)
    direction = torch.randn_like(gradient)
    losses = []
    for step in (1e-6, -2e-6):
        with torch.no_grad():
            actions.weight += step * direction
            losses.append(criterion(model, sample())[0])
    assert_normwise_close((losses[0] - losses[1]) / 2e-6, (gradient * direction).sum(), 1e-6)


def test_predictions_from_readings_alone() -> None:
    model = Model(lstm=True, reading_in_output=True)
    losses = StackIncentivesCriterion(TASK, 0.0, 0.0, True, reading_weight=2.0)(model, sample(), reduce=False)[0]
    words = StackIncentivesCriterion(TASK, 0.0, 0.0, True)(model, sample(), reduce=False)[0]
    with torch.no_grad():
        model.output.weight[:, :8] = 0  # of hidden states
    alone = StackIncentivesCriterion(TASK, 0.0, 0.0, True)(model, sample(), reduce=False)[0]
    assert_normwise_close(losses, words + 2 * alone, 1e-6)
    assert not torch.allclose(words, alone)


def test_noise() -> None:
    """In training, each update has other log weights; gradients reach the biases, which do not change."""
    model = Model(lstm=True)
    criterion = StackIncentivesCriterion(TASK, 0.0, 0.0, True, transition_noise=1.0)
    biases = {name: x.detach().clone() for name, x in model.named_parameters()}
    losses = [criterion(model, sample())[0] for _ in range(2)]
    assert losses[0] != losses[1]
    losses[0].backward()
    assert all(x.grad is not None and x.equal(biases[name]) for name, x in model.named_parameters())
    noiseless = StackIncentivesCriterion(TASK, 0.0, 0.0, True)
    assert criterion(model.eval(), sample())[0] == noiseless(model, sample())[0]
    torch.manual_seed(0)
    noisy = StackIncentivesCriterion(TASK, 0.0, 0.0, True, transition_noise=0.5)(model.train(), sample())[0]
    actions = next(each for each in model.modules() if isinstance(each, NondeterministicStackAttention)).actions
    torch.manual_seed(0)
    with torch.no_grad():
        actions.bias.add_(0.5 * torch.randn_like(actions.bias))
    assert noisy == noiseless(model, sample())[0]


def test_what_is_logged() -> None:
    """Of two workers, in bits per word."""
    model, batch = Model(), sample()
    loss, size, logged = StackIncentivesCriterion(TASK, 1.0, 1.0, True)(model, batch)
    assert size == 3 and loss.shape == ()
    with metrics.aggregate() as logged_metrics:
        StackIncentivesCriterion.reduce_metrics([logged, logged])
    values = logged_metrics.get_smoothed_values()
    assert values["loss"] == pytest.approx(loss.item() / 3 / math.log(2), abs=0.0006)
    assert values["run_entropy"] == pytest.approx(logged["run_entropy"].item() / 10 / math.log(2), abs=0.0006)


@torch.no_grad()
def test_a_sentence_without_words() -> None:
    """An LSTM reads nothing of it, so no run takes a step."""
    model = Model(lstm=True)
    batch = {"net_input": {"src_tokens": torch.tensor([[EOS, 5], [EOS, PAD]])}, "ntokens": 3}
    batch["target"] = torch.tensor([[5, EOS], [EOS, PAD]])
    losses, _, _ = StackIncentivesCriterion(TASK, 1.0, 1.0, True)(model, batch, reduce=False)
    assert_normwise_close(losses[1], -model.output.bias.log_softmax(-1)[EOS], 1e-6)


def test_errors() -> None:
    criterion, batch = StackIncentivesCriterion(TASK, 1.0, 1.0, True), sample()
    limited = Model()
    limited.stack = NondeterministicStackAttention(8, 2, 2, 3, window=2)
    with pytest.raises(UserError, match="expected a stack with unlimited memory, got a window of 2"):
        criterion(limited, batch)
    for option, needed in (
        ("reading_weight", "an LSTM with --reading-in-output"),
        ("transition_noise", "--stack-bias"),
    ):
        with pytest.raises(UserError, match=f"--{option.replace('_', '-')} needs .*{needed}"):
            StackIncentivesCriterion(TASK, 0.0, 0.0, True, **{option: 1.0})(Model(), batch)
    without = Model()
    without.stack = nn.Linear(8, 8)
    with pytest.raises(UserError, match="stack_incentives needs a nondeterministic stack, such as nd-3-3-5"):
        criterion(without, batch)
