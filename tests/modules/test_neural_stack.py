"""Neural stacks and buffered networks against golden values."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest
import torch
from torch import Tensor

from fairseq_stack.modules import neural_stack
from fairseq_stack.modules.neural_stack import CELLS, MEMORIES, BufferedNeuralStack, Controller, NeuralStack, Step
from tests.helpers import assert_normwise_close, each_golden_file, use_instruction_set

STEPS = {
    "pop": "pop", "push": "push", "values": "values", "reads": "reading", "controller_inputs": "input",
    "controller_outputs": "output", "input_pop": "input_pop", "output_push": "output_push",
}  # fmt: skip

Network = TypeVar("Network", NeuralStack, BufferedNeuralStack)


@pytest.fixture(params=["compiled", "steps"])
def loop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """All steps as one compiled operation, and one by one."""
    if request.param == "steps":
        monkeypatch.setattr(neural_stack, "loop_is_compiled", lambda *_: False)
    else:
        use_instruction_set("baseline", monkeypatch)


def network(kind: type[Network], golden: Mapping[str, np.ndarray], path: Path) -> Network:
    """The network of a golden file, with its parameters."""
    parameters = {key.removeprefix("param_"): torch.tensor(golden[key]) for key in golden if key.startswith("param_")}
    (rows, features), size = parameters["out.weight"].shape, golden["x"].shape[2]
    controller = next((name for name in ("rnn", "lstm", "gru") if name in path.stem), "linear")
    memory = "none" if "no_stack" in path.stem else "stack"
    results = kind(
        size, rows - kind.num_strengths - size, controller=controller, hidden_size=features, memory=memory
    ).double()
    results.load_state_dict(parameters)
    return results


def check(golden: Mapping[str, np.ndarray], model: Controller, x: Tensor, outputs: Tensor, steps: Step) -> None:
    assert_normwise_close(outputs, golden["outputs"], 1e-9, "outputs")
    for key, name in STEPS.items():
        if key in golden:
            assert_normwise_close(getattr(steps, name), golden[key], 1e-9, key)
    (outputs * torch.tensor(golden["cotangent"])).sum().backward()
    assert x.grad is not None
    assert_normwise_close(x.grad, golden["grad_x"], 1e-9, "x")
    for name, parameter in model.named_parameters():
        actual = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        assert_normwise_close(actual, golden[f"grad_param_{name}"], 1e-9, name)


@each_golden_file("neural_stacks/vanilla_*.npz")
@pytest.mark.usefixtures("loop")
def test_golden_neural_stack(path: Path) -> None:
    golden = np.load(path)
    model, x = network(NeuralStack, golden, path), torch.tensor(golden["x"]).requires_grad_()
    steps = model(x, steps=golden["outputs"].shape[1])
    check(golden, model, x, steps.output, steps)


@each_golden_file("neural_stacks/buffered_*.npz")
@pytest.mark.usefixtures("loop")
def test_golden_buffered_neural_stack(path: Path) -> None:
    golden = np.load(path)
    model, x = network(BufferedNeuralStack, golden, path), torch.tensor(golden["x"]).requires_grad_()
    count = golden["pop"].shape[1]
    assert_normwise_close(model(x, steps=count, reading="read-first")[0], golden["outputs_read_first"], 1e-9)
    outputs, steps = model(x, steps=count)
    check(golden, model, x, outputs, steps)


@each_golden_file("neural_stacks/trained_*.npz")
@pytest.mark.usefixtures("loop")
def test_golden_trained_networks(path: Path) -> None:
    """The logits for test strings, and the symbols that are predicted."""
    golden = np.load(path)
    x = torch.eye(len(golden["alphabet"]), dtype=torch.float64)[torch.tensor(golden["inputs"], dtype=torch.long)]
    golden, steps = {**golden, "x": x.numpy()}, int(golden["steps"])
    with torch.no_grad():
        if "buffered" in path.stem:
            outputs, _ = network(BufferedNeuralStack, golden, path)(x, steps=steps)
        else:
            outputs = network(NeuralStack, golden, path)(x, steps=steps).output
    assert_normwise_close(outputs[:3], golden["outputs"], 1e-9)
    scored = torch.tensor(golden["targets"]) != -100
    assert torch.equal(outputs.argmax(2)[scored], torch.tensor(golden["predictions"])[scored].long())


def test_initialisation() -> None:
    plain, buffered = NeuralStack(30, 20, controller="lstm", hidden_size=100), BufferedNeuralStack(3, 2)
    assert plain.out.bias.tolist() == [-1] + 51 * [0]
    assert buffered.out.bias.tolist() == [-1, 0, 1, 1, 0, 0, 0, 0, 0]
    assert plain.cell is not None
    assert not plain.cell.bias_ih.any() and not plain.cell.bias_hh.any()
    assert plain.cell.weight_hh.std().item() == pytest.approx(400**-0.5, rel=0.02)
    assert plain.out.weight.std().item() == pytest.approx(52**-0.5, rel=0.03)


@pytest.mark.parametrize("pushed", ["vector", "input"])
@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("controller", CELLS)
def test_gradients_and_the_past(controller: str, memory: str, pushed: str) -> None:
    """Later inputs do not change earlier outputs; steps that a reordering interrupts equal the whole sequence."""
    model = NeuralStack(3, 3, controller=controller, hidden_size=4, memory=memory, pushed=pushed).double()
    x = torch.rand(2, 6, 3, dtype=torch.float64, requires_grad=True)
    steps = model(x)
    for gradient in torch.autograd.grad(steps.output.square().sum(), [x, *model.parameters()], materialize_grads=True):
        assert gradient.isfinite().all()
    assert torch.equal(model(x[:, :4]).output, steps.output[:, :4])
    assert pushed == "vector" or torch.equal(steps.values, x)
    assert steps.reading.any() == (memory != "none")
    state, rows = model.initial_state(2), torch.tensor([1, 0])
    for t in range(6):
        step, state = model.step(x[rows if t > 3 else slice(None), t], state)
        state = state.reorder(rows) if t == 3 else state
    assert_normwise_close(step.output, steps.output[rows, 5], 1e-12)


def test_wrong_arguments() -> None:
    for options in ({"controller": "mlp"}, {"memory": "tape"}, {"pushed": "output"}):
        with pytest.raises(ValueError, match=rf"^{next(iter(options))}: expected one of .*, got "):
            NeuralStack(3, 2, **options)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^vector_size: expected 3 like the input that is pushed, got 2$"):
        NeuralStack(3, 2, pushed="input")
    with pytest.raises(ValueError, match=r"^x: expected shape \(B, n, 3\) with n > 0, got \(2, 5, 4\)$"):
        NeuralStack(3, 2)(torch.rand(2, 5, 4))
    for shape in ((2, 4), (3,), (2, 1, 3), (3, 3)):
        with pytest.raises(ValueError, match=r"^x: expected shape \(2, 3\), got \("):
            NeuralStack(3, 2).step(torch.rand(shape), NeuralStack(3, 2).initial_state(2))
    with pytest.raises(ValueError, match=r"^steps: expected at least 5, one for each input, got 4$"):
        BufferedNeuralStack(3, 2)(torch.rand(2, 5, 3), steps=4)
