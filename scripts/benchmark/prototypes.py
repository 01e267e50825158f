"""Other people's kernels to compare with: a folder with nd_ctypes.py, nd_torch.py and sup_ctypes.py.

They are compiled in a copy of the folder and run in this process, so that ratios are of one run.
"""

from __future__ import annotations

import ctypes
import importlib.util
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fairseq_stack.errors import UserError

from .stacks import Tensors

COUNTERPARTS = {("nd", "native"): "nd_ctypes", ("nd", "pytorch"): "nd_torch", ("sup", "native"): "sup_ctypes"}
"""By stack and backend, the prototype that a backend is to be compared with."""

Compute = Callable[[Tensors], Tensor]


def copy_prototypes(folder: Path, copy: Path) -> None:
    """Copy the prototypes of a folder, which is never written to, to one that is made.

    Raises:
        UserError: if one is missing.
    """
    for name in sorted({*COUNTERPARTS.values()}):
        if not (folder / f"{name}.py").is_file():
            raise UserError(f"--prototypes: expected {name}.py in {folder}, which is not there")
    copy.mkdir()
    for path in folder.iterdir():
        if path.is_file():
            shutil.copyfile(path, copy / path.name)


class Prototypes:
    """The prototypes.

    Args:
        copy: the folder that they were copied to, where they are compiled.

    Raises:
        UserError: if one cannot be compiled.
    """

    def __init__(self, copy: Path) -> None:
        self._modules = {name: _load(copy / f"{name}.py") for name in sorted({*COUNTERPARTS.values()})}

    def of(self, stack: str, dtype: torch.dtype) -> dict[str, Compute]:
        """The prototypes of a stack that there are for a dtype, by name."""
        found: dict[str, Compute] = {}
        if stack == "nd":
            for name, function in (("nd_ctypes", "CND"), ("nd_torch", "LinND2")):
                found[name] = _nondeterministic(getattr(self._modules[name], function).apply)
        elif stack == "sup" and dtype == torch.float32:
            found["sup_ctypes"] = _superposition(self._modules["sup_ctypes"].Sup.apply)
        return found


def set_threads(threads: int) -> None:
    """Let the prototypes use as many threads as torch, whose OpenMP is another one than the compiler's."""
    try:
        openmp = ctypes.CDLL("libgomp.so.1")
    except OSError:
        return
    openmp.omp_set_num_threads(threads)


def _load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"prototype_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (OSError, subprocess.CalledProcessError) as error:
        raise UserError(f"--prototypes: {path.name} cannot be compiled: {error}") from error
    return module


def _nondeterministic(apply: Callable[..., Tensor]) -> Compute:
    def compute(inputs: Tensors) -> Tensor:
        push = inputs["push"]
        readings = apply(push, inputs["replace"], inputs["pop"], inputs["values"], inputs["bottom"])
        return readings.unflatten(2, push.shape[2:4])

    return compute


def _superposition(apply: Callable[..., Tensor]) -> Compute:
    def compute(inputs: Tensors) -> Tensor:
        return apply(inputs["actions"], inputs["values"])

    return compute


def swap_actions(inputs: Tensors) -> Tensors:
    """Inputs or gradients of the superposition stack with its actions in the prototype's order, or back."""
    return {**inputs, "actions": inputs["actions"][..., [0, 2, 1]]}
