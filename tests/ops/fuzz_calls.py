"""The random calls of ``fuzz.py``: what is called with what, from one integer."""

from __future__ import annotations

import contextlib
import dataclasses
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from fairseq_stack.ops import ControllerSetup, buffers
from fairseq_stack.ops.controllers.setup import GATES, MEMORIES

TOLERANCES = {torch.float64: 1e-9, torch.float32: 2e-5, torch.float16: 2e-3, torch.bfloat16: 2e-2}
LENGTHS = (0, 1, 2, 3, 5, 7, 16, 17, 63), (4, 8, 16, 16, 12, 8, 1, 1, 1)  # and their weights
SHAPES = {
    "superposition": {"actions": "B n 3", "values": "B n m"},
    "stratification": {"pop": "B n", "push": "B n", "values": "B n m"},
    "nondeterministic": {
        "push": "B n Q S Q S", "replace": "B n Q S Q S", "pop": "B n Q S Q", "values": "B n m", "bottom": "m",
    },
    "queue": {"pop": "B n", "push": "B n", "values": "B n m"},
    "input_buffer": {"pop": "B T", "items": "B n m"},
    "output_buffer": {"push": "B n", "values": "B n m"},
    "neural": {
        "x": "B n k", "weight": "R h", "bias": "R",
        "weight_ih": "P F", "weight_hh": "P h", "bias_ih": "P", "bias_hh": "P",
    },
}  # fmt: skip
WEIGHTS = 2, 2, 4, 2, 1, 1, 2  # of their calls
STEPPED = ("superposition", "stratification", "nondeterministic", "queue")
PUSHED_BY_STRENGTH = ("stratification", "queue")
VECTORS = ("values", "items", "x")
Arguments = dict[str, Any]


@dataclasses.dataclass
class Call:
    """One call of an op, or of the steps of a state.

    Attributes:
        seed: what it was made from.
        stack: a key of ``SHAPES``: a stack, a queue, a buffer or a neural stack.
        steps: whether the state is stepped, and reordered in between.
        backend: of the op.
        leaves: the inputs as contiguous tensors, of which some require gradients.
        layouts: what is done to each before the call; a key of ``LAYOUTS``.
        mode: a key of ``MODES``.
        fault: what is wrong with the call, and "" if it is right.
        smooth: whether gradients are unique.
        window: D for limited memory, or None.
        joined: whether each step gets all log weights in one tensor.
        options: further arguments of the op.
    """

    seed: int
    stack: str
    steps: bool
    backend: str
    leaves: dict[str, Tensor]
    layouts: dict[str, str]
    mode: str
    fault: str = ""
    smooth: bool = True
    spoil: Callable[[Arguments], Arguments] = lambda arguments: arguments
    window: int | None = None
    joined: bool = False
    options: Arguments = dataclasses.field(default_factory=dict)

    def __str__(self) -> str:
        tensors = ", ".join(
            f"{name} {tuple(x.shape)} {self.layouts[name]}{' with gradient' if x.requires_grad else ''}"
            for name, x in self.leaves.items()
        )
        what = ("joined " * self.joined + "steps") if self.steps else self.backend
        what += f" with a window of {self.window}" * (self.window is not None)
        what += f" with {self.options}" * bool(self.options)
        return f"{self.stack} {what}, {self.dtype}, {self.mode}: {tensors}" + f"; {self.fault}" * bool(self.fault)

    @property
    def dtype(self) -> torch.dtype:
        return self.vectors.dtype

    @property
    def vectors(self) -> Tensor:
        """What is read."""
        return next(x for name, x in self.leaves.items() if name in VECTORS)


def _negated(x: Tensor) -> Tensor:
    """The same numbers as a view that PyTorch has yet to negate."""
    return torch._neg_view(-x)


class Subclass(torch.Tensor):
    """A tensor with another type."""


LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.movedim(0, -1).contiguous().movedim(-1, 0),
    "every second": lambda x: torch.stack([x, x + 1], -1).flatten(-2)[..., ::2] if x.dim() else x,
    "offset": lambda x: torch.cat([x[:1], x])[1:] if len(x) else x,
    "expanded": lambda x: x[:1].expand_as(x) if len(x) else x,
    "negated": _negated,
    "subclass": lambda x: x.as_subclass(Subclass),
}


@contextlib.contextmanager
def _autocast() -> Iterator[None]:
    with torch.autocast("cpu", torch.bfloat16):
        yield


MODES: dict[str, Callable[[], contextlib.AbstractContextManager[Any]]] = {
    "gradients": contextlib.nullcontext,
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "autocast": _autocast,
}


def make(seed: int) -> Call:
    """The call of a seed."""
    draw, numbers = random.Random(seed), torch.Generator().manual_seed(seed)
    stack = draw.choices([*SHAPES], WEIGHTS)[0]
    steps = draw.random() < 0.3 and stack in STEPPED
    length = draw.choices(*LENGTHS)[0]
    if stack in ("nondeterministic", "neural") or steps:
        length = min(length, draw.choices((5, 7, 17), (30, 6, 1))[0])
    sizes = {"B": draw.choice((0, 1, 1, 2, 3)), "n": length, "m": draw.choice((0, 1, 2, 3, 16, 17)), "3": 3}
    sizes |= {"Q": draw.choice((1, 2, 2, 3)), "S": draw.choice((1, 2, 3)), "T": draw.choices(*LENGTHS)[0]}
    if stack == "nondeterministic" and length > 7:
        sizes |= {"Q": 1, "S": 2}
    shapes = dict(SHAPES[stack])
    if "bottom" in shapes and draw.random() < 0.5:
        shapes["bottom"] = "B m"
    if "bottom" in shapes and steps and draw.random() < 0.4:
        shapes["start"] = "B Q S"
    options: Arguments = {}
    if stack == "output_buffer":
        options = {"length": draw.choice((0, 1, 3, length + 2)), "reading": draw.choice([*buffers.FIRST_READS])}
    if stack == "superposition":
        options = {"depth_limit": draw.choice((None, 1, 2, 3, max(1, length // 3), length + 1))}
    if stack == "neural":
        options = _network(shapes, sizes, draw)
    dtype = draw.choices([*TOLERANCES], (6, 4, 0, 0) if stack == "neural" else (6, 4, 1, 1))[0]
    leaves = {name: torch.randn([sizes[axis] for axis in shape.split()], generator=numbers, dtype=torch.float64)
              for name, shape in shapes.items()}  # fmt: skip
    smooth = _fill(stack, leaves, draw, numbers)
    leaves = {name: x.to(dtype).requires_grad_(draw.random() < 0.6) for name, x in leaves.items()}
    backends = ["auto", "reference"] + ["pytorch"] * (stack != "neural")
    backends += ["native"] * (stack in ("superposition", "nondeterministic", "neural"))
    layouts = {name: draw.choice([*LAYOUTS]) if draw.random() < 0.3 else "contiguous" for name in leaves}
    mode = draw.choices([*MODES], (6, 1, 1, 1))[0]
    call = Call(seed, stack, steps, draw.choice(backends), leaves, layouts, mode, smooth=smooth, options=options)
    if stack not in ("superposition", "nondeterministic") and dtype in (torch.float16, torch.bfloat16):
        call.smooth = False  # strengths are used up exactly by chance
    if "bottom" in shapes:
        call.window = draw.choice((None, None, 1, 2, 3, length, length + 1)) or None
        call.joined = steps and draw.random() < 0.3
    if call.joined:
        shapes = {"transitions": "B n T", "values": "B n m"}
    if draw.random() < 0.35:
        call.fault, call.spoil = _fault(call, shapes, draw)
    return call


def _network(shapes: dict[str, str], sizes: dict[str, int], draw: random.Random) -> Arguments:
    """Sizes and options of a neural stack; a linear controller has no cell."""
    controller, size, hidden_size = draw.choice([*GATES]), draw.choice((1, 2, 3)), draw.choice((1, 4, 9))
    pushes_input = draw.random() < 0.3
    setup = ControllerSetup(
        controller,
        draw.choice(MEMORIES),
        size if pushes_input else draw.choice((0, 1, 2, 5)),
        pushes_input=pushes_input,
        is_buffered=draw.random() < 0.5,
    )
    sizes |= {"k": size, "n": max(sizes["n"], 1), "h": hidden_size, "F": size + setup.vector_size}
    sizes |= {"R": setup.num_sigmoids + draw.choice((0, 1, 3)), "P": GATES[controller] * hidden_size}
    if controller == "linear":
        for name in [name for name in shapes if name not in ("x", "weight", "bias")]:
            del shapes[name]
        shapes["weight"] = "R F"
    return {"setup": setup, "steps": sizes["n"] + draw.choice((0, 0, 1, 3))}


def _fill(stack: str, leaves: dict[str, Tensor], draw: random.Random, numbers: torch.Generator) -> bool:
    """Give the inputs values that the stack may get; whether gradients are unique."""
    if stack == "nondeterministic":
        _fill_log_weights([leaves[name] for name in ("push", "replace", "pop")], draw, numbers)
        if "start" in leaves:
            start = leaves["start"].mul_(draw.choice((0.1, 1, 50)))
            start.masked_fill_(torch.rand(start.shape, generator=numbers) < draw.choice((0.0, 0.5, 1.0)), -torch.inf)
        return True
    if stack == "neural":
        return True
    kind = draw.choice(("usual", "usual", "exact", "huge" if stack in PUSHED_BY_STRENGTH else "usual"))
    if stack == "superposition":
        actions = leaves["actions"]
        if kind == "exact":  # a stack that does one thing at each step
            action = torch.randint(3, actions.shape[:2], generator=numbers)
            actions.copy_(torch.nn.functional.one_hot(action, 3))
        else:
            actions.copy_(actions.mul(draw.choice((0.1, 1, 10))).softmax(-1))
        return True
    for name in [name for name in ("pop", "push") if name in leaves]:
        leaves[name].copy_(torch.rand(leaves[name].shape, generator=numbers, dtype=torch.float64))
        if kind != "usual":
            leaves[name].mul_(3).round_().clamp_(max=1 if kind == "exact" else 3).mul_(1 if kind == "exact" else 2e4)
    return kind == "usual"


def _fill_log_weights(logits: Sequence[Tensor], draw: random.Random, numbers: torch.Generator) -> None:
    kind = draw.choice(("normal", "normal", "equal", "two values", "uniform"))
    forbidden = draw.choice((0.0, 0.0, 0.3, 0.9, 1.0))
    length = logits[0].shape[1]
    apart = draw.choice((1.0, 20.0, 200.0, 700.0, 1400.0))
    for x in logits:
        if kind == "equal":
            x.fill_(draw.choice((-700.0, 0.0, 700.0)))
        elif kind == "two values":
            x.copy_(torch.where(torch.rand(x.shape, generator=numbers) < 0.2, apart / 2, -apart / 2))
        elif kind == "uniform":
            x.copy_((torch.rand(x.shape, generator=numbers, dtype=torch.float64) - 0.5) * apart)
        else:
            x.mul_(draw.choice((0.1, 1, 5, 300))).clamp_(-apart / 2, apart / 2)
        x.masked_fill_(torch.rand(x.shape, generator=numbers) < forbidden, -torch.inf)
    if length and draw.random() < 0.2:  # no transition at all at one step
        for x in logits:
            x[:1, draw.randrange(length)] = -torch.inf


def _fault(call: Call, shapes: dict[str, str], draw: random.Random) -> tuple[str, Callable[[Arguments], Arguments]]:
    """Something that is wrong with the arguments, and the function that makes them so."""
    name = draw.choice([name for name in shapes if not (call.steps and name in ("bottom", "start"))])
    shared = [i for i, axis in enumerate(shapes[name].split()) if " ".join(shapes.values()).split().count(axis) > 1]
    if call.steps:
        shared = [i for i in shared if shapes[name].split()[i] not in "mn"]
        shared = [max(i - 1, 0) for i in shared]  # the tensors of a step have no axis of steps
    axis = draw.choice(shared) if shared else None
    other = next(dtype for dtype in TOLERANCES if dtype != call.dtype)
    faults: dict[str, Callable[[Tensor], Any]] = {
        "no tensor": lambda x: None,
        "a list": lambda x: x.detach().tolist(),
        "an array": lambda x: x.detach().resolve_neg().double().numpy(),
        "a number": lambda x: 1.0,
        "too many axes": lambda x: x[None, None],
        "integers": lambda x: x.detach().nan_to_num(0, 0, 0).clamp(-9, 9).long(),
        "booleans": lambda x: x.detach() > 0,
        "complex numbers": lambda x: x.detach().to(torch.complex64),
        "sparse": lambda x: x.detach().as_subclass(Tensor).to_sparse(),
        "another dtype": lambda x: x.to(other),
        "on meta": lambda x: x.to("meta"),
        "all on meta": lambda x: x.to("meta"),
    }
    if axis is not None:
        faults["a size too large"] = lambda x: (
            torch.cat([x, x.new_zeros(x.shape).narrow(axis, 0, 1)], axis)
            if x.shape[axis]
            else x.new_zeros([size + (i == axis) for i, size in enumerate(x.shape)])
        )
    kind = draw.choice([*faults])
    if kind == "all on meta":
        return kind, lambda arguments: {name: faults[kind](x) for name, x in arguments.items()}
    call.layouts[name] = "contiguous"
    return f"{name} is wrong: {kind}", lambda arguments: arguments | {name: faults[kind](arguments[name])}
