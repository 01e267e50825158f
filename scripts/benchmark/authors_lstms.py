"""Stack LSTMs next to those of https://github.com/bdusell/nondeterministic-stack-rnn (DuSell & Chiang 2023)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from .authors import Comparison, Way, automatic_block_size, importing_from
from .recurrent import SYMBOLS, Recurrent

LSTMS = tuple(Recurrent(stacks, 64) for stacks in ("none", "sup-10", "strat-10", "ns-2-3", "nd-2-3-5"))
CLASSES = {
    "sup": ("joulin_mikolov", "JoulinMikolovRNN"),
    "strat": ("grefenstette", "GrefenstetteRNN"),
    "ns": ("nondeterministic_stack", "NondeterministicStackRNN"),
    "nd": ("vector_nondeterministic_stack", "VectorNondeterministicStackRNN"),
}
PROJECTIONS = {
    "action_layer.linear": "actions",
    "operation_layer": "actions",
    "push_value_layer.linear": "values",
    "pushed_vector_layer.0": "values",
}
"""The authors' names of W_a and W_v, and ours."""
ACTIONS = {"sup": [0, 2, 1], "strat": [1, 0]}
"""Where the authors have our actions, which are push, no-op, pop, and pop, push."""


def lstms(clone: Path, cases: Sequence[Recurrent]) -> list[Comparison]:
    """LSTMs without a stack and with each of the stacks.

    Raises:
        UserError: the folder is not a clone of bdusell/nondeterministic-stack-rnn, or a package is missing.
    """
    with importing_from(clone):
        controller = import_module("torch_rnn_tools").UnidirectionalLSTM
        classes = {kind: getattr(import_module(f"stack_rnn_models.{x}"), name) for kind, (x, name) in CLASSES.items()}

    def comparison(case: Recurrent) -> Comparison:
        sizes = {"B": case.batch_size, "n": case.length, "hidden": case.hidden_size}
        timed, checked = (partial(_ways, x, controller, classes) for x in (case, _same(case)))
        return Comparison(f"LSTM, {case.stacks}", sizes, timed, checked)

    return [*map(comparison, cases)]


def _same(case: Recurrent) -> Recurrent:
    """The case with sizes for which both are the same model.

    With several states or symbols, the code of 2023 finds the bottom vector under all of them, and not only under those
    that the stack begins with (Eq. 22), as the code of 2024 does.
    """
    kind, *sizes = case.stacks.split("-")
    return case._replace(stacks=f"nd-1-1-{sizes[-1]}") if kind == "nd" else case


def _ways(
    case: Recurrent, controller: Callable[..., nn.Module], classes: Mapping[str, Any], dtype: torch.dtype
) -> tuple[Way, Way]:
    kind, *sizes = case.stacks.split("-")
    ours, new_controller = case.build().to(dtype), partial(controller, hidden_units=case.hidden_size)
    theirs = new_controller(SYMBOLS) if kind == "none" else classes[kind](SYMBOLS, *map(int, sizes), new_controller)
    nn.init.zeros_(next(x for name, x in theirs.named_parameters() if name.endswith("bias_hh_l0")))  # ours has one bias
    ours.load_state_dict(_as_ours(theirs.state_dict(), kind))
    names = [name for name, _ in theirs.named_parameters()]
    symbols = case.symbols()
    vectors = one_hot(symbols, SYMBOLS).to(dtype)
    options = {"block_size": automatic_block_size()} if kind in ("ns", "nd") else {}

    def arranged(gradients: Sequence[Tensor]) -> list[Tensor]:
        by_name = _as_ours(dict(zip(names, gradients, strict=True)), kind)
        return [by_name[name] for name, _ in ours.named_parameters()]

    return (
        Way(lambda: ours(symbols, return_state=False)[0], [*ours.parameters()]),
        Way(lambda: theirs(vectors, include_first=False, **options), [*theirs.parameters()], arranged),
    )


def _as_ours(theirs: Mapping[str, Tensor], kind: str) -> dict[str, Tensor]:
    """The authors' parameters or their gradients, by the names of ours."""
    theirs = {name.removeprefix("controller.rnn.").removeprefix("rnn."): tensor for name, tensor in theirs.items()}
    weights = [theirs["weight_ih_l0"], theirs["weight_hh_l0"]]
    ours = {"gates.weight": torch.cat(weights, 1), "gates.bias": theirs["bias_ih_l0"]}
    for name, tensor in theirs.items():
        layer, _, parameter = name.rpartition(".")
        projection = PROJECTIONS.get(layer)
        if projection is not None:
            is_reordered = projection == "actions" and kind in ACTIONS
            ours[f"stacks.0.{projection}.{parameter}"] = tensor[ACTIONS[kind]] if is_reordered else tensor
    if "bottom_vector" in theirs:
        ours["stacks.0.bottom_logits"] = theirs["bottom_vector"]
    return ours
