"""Support for current versions of numpy and torch, and for the one version of fairseq that this plugin works with."""

from __future__ import annotations

import argparse
import importlib
from types import SimpleNamespace

import numpy as np
import torch

from fairseq_stack.compat.replacing import sets
from fairseq_stack.errors import INSTALL_FAIRSEQ, MissingPackage

SUPPORTED_FAIRSEQ = "0.12.3"


def require_supported_fairseq() -> None:
    """Import fairseq and check its version, so that the failure comes first and says what to do.

    Raises:
        MissingPackage: if fairseq is missing, cannot be imported or is not a 0.12.3.
    """
    try:
        import fairseq
    except ModuleNotFoundError as error:
        raise MissingPackage(f"fairseq_stack needs fairseq ({error}); {INSTALL_FAIRSEQ}") from error
    except Exception as error:  # 0.12.2 raises ValueError from its dataclasses on Python 3.11
        raise MissingPackage(
            f"fairseq_stack needs fairseq {SUPPORTED_FAIRSEQ}, but the installed version cannot be imported "
            f"({type(error).__name__}: {error}). Versions up to 0.12.2 do not run on Python 3.11 and later: "
            f"pip uninstall fairseq, then {INSTALL_FAIRSEQ}"
        ) from error
    version = str(getattr(fairseq, "__version__", "unknown"))
    if version == SUPPORTED_FAIRSEQ or version.startswith(f"{SUPPORTED_FAIRSEQ}."):
        return
    raise MissingPackage(
        f"fairseq_stack needs fairseq {SUPPORTED_FAIRSEQ}, got version {version}: "
        f"pip uninstall fairseq, then {INSTALL_FAIRSEQ}"
    )


@sets("numpy.compat")
def restore_numpy_compat() -> None:
    """Restore ``np.compat.long``, which fairseq's TokenBlockDataset and LanguagePairDataset use.

    numpy 2 has no ``np.compat``; without it ``--sample-break-mode eos`` and ``fairseq-interactive`` with
    language models crash.

    Unnecessary with a fairseq that uses ``int``.
    """
    if not hasattr(np, "compat"):
        np.compat = SimpleNamespace(long=int)  # type: ignore[attr-defined]


@sets("torch.serialization.add_safe_globals")
def allow_checkpoint_globals() -> None:
    """Let ``torch.load(weights_only=True)``, torch's default since 2.6, read fairseq's checkpoints.

    They hold the Namespace of models without a dataclass and integer arrays, among the metrics of
    ``--eval-bleu``. ``weights_only`` stays on, so torch refuses a checkpoint that names anything else. (That
    does not make a stranger's checkpoint safe, since fairseq evaluates some strings of its configuration.)

    Unnecessary with a fairseq that writes plain containers and tensors.
    """
    core = "numpy._core" if hasattr(np, "_core") else "numpy.core"  # numpy 2, numpy 1
    multiarray = importlib.import_module(f"{core}.multiarray")
    torch.serialization.add_safe_globals(
        [argparse.Namespace, multiarray._reconstruct, np.ndarray, np.dtype, type(np.dtype("int64"))]
    )
