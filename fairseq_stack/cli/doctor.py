"""``fairseq-stack doctor``: what the stacks will run on, and whether it computes correctly."""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from fairseq_stack.errors import INSTALL_FAIRSEQ

if TYPE_CHECKING:
    import torch

SUMMARY = "show what the stacks will run on, and check that it works"

DESCRIPTION = """\
Print the installed versions, which implementation of each stack is used on each
device and why, and its float32 error on a small example, measured against the
equations of the papers. The exit code is 1 if an implementation is wrong."""

EXAMPLE = """\
example:
  fairseq-stack doctor"""

PACKAGES = ("fairseq-stack", "torch", "triton", "numpy")
FAIRSEQ = ("fairseq-fixed", "ve-fairseq")
"""Two distributions of the same package."""

TOLERANCE = 1e-4
LENGTH = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--user-dir",
        metavar="PACKAGE",
        type=Path,
        help="the folder of a package whose kinds of stacks are also checked",
    )


def run(args: argparse.Namespace) -> int:
    import torch

    from fairseq_stack.ops._backends import triton_obstacle
    from fairseq_stack.ops._native import availability

    if args.user_dir is not None:
        from fairseq_stack.hub.paths import import_user_dir

        import_user_dir(args.user_dir)
    print(f"Python {platform.python_version()}, {platform.platform()}")
    for package in PACKAGES:
        print(f"{package} {_version(package) or 'is not installed'}")
    print(_fairseq())
    if (problem := torchaudio_problem()) is not None:
        print(problem)
    compiled, reason = availability()
    print(f"\ncompiled kernels: {reason}")
    if compiled is not None:
        print(f"  file: {compiled.path}\n  instruction sets of this machine: {', '.join(compiled.instruction_sets)}")
        print(f"  threads: {'shared with PyTorch' if compiled.shares_threads else 'their own'}")
    devices = [torch.device("cpu"), *(torch.device("cuda", i) for i in range(torch.cuda.device_count()))]
    wrong = False
    for device in devices:
        print(f"\n{_name(device)}")
        if device.type == "cuda" and (obstacle := triton_obstacle(device)) is not None:
            print(f"  the backend triton {obstacle}")
        for stack, backend, error in checks(device):
            wrong |= not error <= TOLERANCE
            verdict = "agrees with the reference" if error <= TOLERANCE else "WRONG"
            print(f"  {stack}: {backend}; {verdict} (largest difference {error:.1g})")
    return int(wrong)


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _fairseq() -> str:
    found = [f"{package} {version}" for package in FAIRSEQ if (version := _version(package)) is not None]
    if len(found) == 2:
        return f"{' and '.join(found)} overwrite each other: pip uninstall both, then {INSTALL_FAIRSEQ}"
    return found[0] if found else f"fairseq is not installed, which the plugin needs; {INSTALL_FAIRSEQ}"


def torchaudio_problem() -> str | None:
    """Why torchaudio cannot be imported; None: it can be, or is not installed.

    fairseq requires it but does not use it, and transformers imports it if it is installed.
    """
    try:
        importlib.import_module("torchaudio")
    except ModuleNotFoundError:
        return None
    except (ImportError, OSError, RuntimeError) as error:
        return (
            f"torchaudio {_version('torchaudio')} cannot be imported next to this torch ({error}), which breaks "
            "transformers and minicons: pip uninstall torchaudio (nothing here needs it)"
        )
    return None


def _name(device: torch.device) -> str:
    import torch

    if device.type == "cuda":
        return f"{device}: {torch.cuda.get_device_name(device)}"
    return f"{device}: {torch.get_num_threads()} threads"


def checks(device: torch.device) -> Iterator[tuple[str, str, float]]:
    """For each stack: its name, the backend that is used on the device, and its largest error."""
    import torch

    from fairseq_stack import ops
    from fairseq_stack.kinds import kinds

    def random(*shape: int) -> torch.Tensor:
        return torch.rand(*shape, generator=torch.Generator().manual_seed(0)).to(device)

    for op in dict.fromkeys(kind.op for kind in kinds() if kind.op is not None):
        inputs = op.example(random, LENGTH)
        backend = ops.automatic_backend(op.backends, device).name
        difference = op.compute(*inputs, backend=backend) - op.compute(*inputs, backend="reference")
        yield op.name, backend, float(difference.abs().max())
