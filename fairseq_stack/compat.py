"""What fairseq needs to run on current versions of numpy and torch, and with this plugin: all of it is here.

:func:`apply` is called by :mod:`fairseq_stack.models` and :mod:`fairseq_stack.tasks` before they touch
fairseq, so that ``--user-dir`` is all a user needs. Nothing happens when this module is imported. Every shim
says why it exists and what makes it unnecessary. No file of fairseq is changed.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import inspect
import os
import sys
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fairseq_stack.ops import computation_dtype

SUPPORTED_FAIRSEQ = "0.12.3"
INSTALL_FAIRSEQ = (
    'install it with: pip install "setuptools<81" wheel cython numpy torch '
    "&& pip install --no-build-isolation fairseq-fixed==0.12.3.1"
)

_UNKNOWN_REASON = "Cannot load model parameters from checkpoint"


def apply() -> None:
    """Install all shims in this process. Calling it again changes nothing.

    Raises:
        ImportError: if fairseq is missing or is a version that this plugin cannot work with.
    """
    require_supported_fairseq()
    restore_numpy_compat()
    allow_checkpoint_globals()
    smooth_over_possible_symbols()
    keep_last_batches()
    keep_double_precision()
    say_why_a_checkpoint_does_not_fit()
    refuse_empty_data()
    make_batches_anew_in_each_epoch()


def require_supported_fairseq() -> None:
    """Import fairseq and check its version, so that the failure comes first and says what to do.

    Raises:
        ImportError: if fairseq is missing, cannot be imported or is not a 0.12.3.
    """
    try:
        import fairseq
    except ModuleNotFoundError as error:
        raise ImportError(f"fairseq_stack needs fairseq ({error}); {INSTALL_FAIRSEQ}") from error
    except Exception as error:  # 0.12.2 raises ValueError from its dataclasses on Python 3.11
        raise ImportError(
            f"fairseq_stack needs fairseq {SUPPORTED_FAIRSEQ}, but the one installed cannot be imported "
            f"({type(error).__name__}: {error}). Versions up to 0.12.2 do not run on Python 3.11 and later: "
            f"pip uninstall fairseq, then {INSTALL_FAIRSEQ}"
        ) from error
    version = str(getattr(fairseq, "__version__", "unknown"))
    if version == SUPPORTED_FAIRSEQ or version.startswith(f"{SUPPORTED_FAIRSEQ}."):
        return
    reason = ""
    if version == "0.12.2":
        reason = " (where self-attention cannot be replaced: the encoder layer reads the weights of self_attn)"
    raise ImportError(
        f"fairseq_stack needs fairseq {SUPPORTED_FAIRSEQ}, got version {version}{reason}: "
        f"pip uninstall fairseq, then {INSTALL_FAIRSEQ}"
    )


def restore_numpy_compat() -> None:
    """Bring back ``np.compat.long``, which fairseq's TokenBlockDataset and LanguagePairDataset use.

    numpy 2 has no ``np.compat``; without it ``--sample-break-mode eos`` and ``fairseq-interactive`` with
    language models crash. Unnecessary with a fairseq that says ``int``.
    """
    if not hasattr(np, "compat"):
        np.compat = SimpleNamespace(long=int)  # type: ignore[attr-defined]


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


def label_smoothed_nll_loss(
    lprobs: Tensor, target: Tensor, epsilon: float, ignore_index: int | None = None, reduce: bool = True
) -> tuple[Tensor, Tensor]:
    """fairseq's label-smoothed loss, smoothed over the symbols that can occur.

    A symbol with log-probability -inf in the first row cannot occur: models give -inf to the same symbols
    everywhere. The loss and its gradient are fairseq's for a vocabulary without these symbols; where every
    log-probability is finite they are fairseq's to the last bit.

    Args:
        lprobs: log-probabilities (..., V).
        target: indices of the right symbols (...) or (..., 1).
        epsilon: probability that is taken from the right symbol and spread over the others.
        ignore_index: targets that do not count.
        reduce: return sums over all targets instead of one loss a target.

    Returns:
        The smoothed loss and the negative log-likelihood.
    """
    if target.dim() == lprobs.dim() - 1:
        target = target.unsqueeze(-1)
    nll_loss = -lprobs.gather(dim=-1, index=target)
    impossible = lprobs.reshape(-1, lprobs.size(-1))[:1].isneginf().any(dim=0)
    num_impossible = int(impossible.sum())
    if num_impossible:  # left out before the sum, since backward through an infinite sum gives NaN
        lprobs = lprobs.masked_fill(impossible, 0.0)
    smooth_loss = -lprobs.sum(dim=-1, keepdim=True)
    if ignore_index is not None:
        pad_mask = target.eq(ignore_index)
        nll_loss = nll_loss.masked_fill(pad_mask, 0.0)
        smooth_loss = smooth_loss.masked_fill(pad_mask, 0.0)
    else:
        nll_loss = nll_loss.squeeze(-1)
        smooth_loss = smooth_loss.squeeze(-1)
    if reduce:
        nll_loss = nll_loss.sum()
        smooth_loss = smooth_loss.sum()
    epsilon_each = epsilon / (lprobs.size(-1) - num_impossible - 1)
    return (1.0 - epsilon - epsilon_each) * nll_loss + epsilon_each * smooth_loss, nll_loss


def smooth_over_possible_symbols() -> None:
    """Put :func:`label_smoothed_nll_loss` in the place of fairseq's wherever a criterion has imported it.

    fairseq's sums the log-probabilities of the whole dictionary, which is infinite with ``--compact-vocab``,
    where symbols that cannot occur (``<pad>``, ``madeupword0000``, ...) have probability 0. Unnecessary with
    a fairseq that skips them.
    """
    from fairseq.criterions import label_smoothed_cross_entropy

    original = label_smoothed_cross_entropy.label_smoothed_nll_loss
    for name, module in list(sys.modules.items()):
        if name.startswith("fairseq.criterions.") and vars(module).get("label_smoothed_nll_loss") is original:
            vars(module)["label_smoothed_nll_loss"] = label_smoothed_nll_loss


def keep_last_batches() -> None:
    """Stop ``--required-batch-size-multiple`` from dropping sentences.

    fairseq 0.12.3 drops the last batch of a data set, without a word, when its size is no multiple of this
    option, and the option is 8 unless given: of 37 sentences ``fairseq-generate`` translates 32, and training
    and validation lose sentences alike. Two things mend it:

    - The default becomes 1, so that ``--batch-size 12`` does not mean 8; a value that is given is respected.
    - The last batch is kept, whatever the value, as it was up to fairseq 0.12.2. ``fairseq-hydra-train``
      needs this: it reads its defaults before it imports plugins.

    Unnecessary with a fairseq that keeps the last batch and has 1 for the default.
    """
    from fairseq.data import data_utils
    from fairseq.dataclass.configs import DatasetConfig

    _set_dataclass_default(DatasetConfig, "required_batch_size_multiple", 1)
    if data_utils.batch_by_size.__module__ != __name__:
        data_utils.batch_by_size = _keeping_last_batch(data_utils.batch_by_size)


def _set_dataclass_default(config: type, name: str, default: object) -> None:
    """Change a field's default where instances, fairseq's parsers and OmegaConf look for it."""
    config.__dataclass_fields__[name].default = default  # type: ignore[attr-defined]
    setattr(config, name, default)
    init = vars(config)["__init__"]  # generated with the old default
    arguments = list(inspect.signature(init).parameters)
    defaults = list(init.__defaults__)
    defaults[arguments.index(name) - len(arguments)] = default
    init.__defaults__ = tuple(defaults)


def _keeping_last_batch(
    batch_by_size: Callable[..., list[np.ndarray]],
) -> Callable[..., list[np.ndarray]]:
    """``batch_by_size`` of ``fairseq.data.data_utils`` without the loss of the last batch."""

    def batch_by_size_keeping_last(indices: Iterable[int], *args: Any, **kwargs: Any) -> list[np.ndarray]:
        if not isinstance(indices, np.ndarray):
            indices = np.fromiter(indices, dtype=np.int64)
        if len(indices) == 0:  # fairseq's looks at the last batch of none
            return []
        batches = batch_by_size(indices, *args, **kwargs)
        num_batched = sum(len(batch) for batch in batches)
        return batches if num_batched == len(indices) else [*batches, indices[num_batched:]]

    return batch_by_size_keeping_last


def softmax(x: Tensor, dim: int, onnx_trace: bool = False) -> Tensor:
    """``fairseq.utils.softmax``: in float32, or in float64 if ``x`` is."""
    return torch.softmax(x, dim, dtype=computation_dtype(x.dtype))


def log_softmax(x: Tensor, dim: int, onnx_trace: bool = False) -> Tensor:
    """``fairseq.utils.log_softmax``: in float32, or in float64 if ``x`` is."""
    return torch.log_softmax(x, dim, dtype=computation_dtype(x.dtype))


def keep_double_precision() -> None:
    """Let attention weights and probabilities of a float64 model be float64.

    fairseq computes every softmax in float32, which is right for half precision but costs a model in float64
    eight digits, so that it cannot be compared exactly with another implementation. Unnecessary with a
    fairseq whose softmax does not round down.
    """
    from fairseq import utils

    utils.softmax = softmax
    utils.log_softmax = log_softmax


def say_why_a_checkpoint_does_not_fit() -> None:
    """Let ``fairseq-train`` end with the reason why it cannot continue from a checkpoint.

    fairseq replaces whatever the model says by "please ensure that the architectures match", which sends people who
    have changed a dictionary the wrong way. Unnecessary with a fairseq that passes the model's error on.
    """
    from fairseq.trainer import Trainer

    if not hasattr(Trainer.load_checkpoint, "__wrapped__"):
        Trainer.load_checkpoint = _saying_why(Trainer.load_checkpoint)


def _saying_why(load_checkpoint: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(load_checkpoint)
    def load_checkpoint_saying_why(self: Any, filename: str, *args: Any, **kwargs: Any) -> Any:
        try:
            return load_checkpoint(self, filename, *args, **kwargs)
        except Exception as error:
            reason = error.__context__
            if reason is None or not str(error).startswith(_UNKNOWN_REASON):
                raise
            raise ValueError(f"cannot continue from {filename}: {reason}") from reason

    return load_checkpoint_saying_why


def refuse_empty_data() -> None:
    """Name the empty data set, instead of "cannot mmap an empty file".

    Unnecessary with a fairseq that says which file is empty.
    """
    from fairseq.data import data_utils

    if not hasattr(data_utils.load_indexed_dataset, "__wrapped__"):
        data_utils.load_indexed_dataset = _refusing_empty(data_utils.load_indexed_dataset)


def _refusing_empty(load_indexed_dataset: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(load_indexed_dataset)
    def load_nonempty_dataset(path: str, *args: Any, **kwargs: Any) -> Any:
        for file in (f"{path}.bin", path):  # binarised, or text of --dataset-impl raw
            if os.path.isfile(file) and os.path.getsize(file) == 0:
                raise ValueError(
                    f"the data set {file} is empty: expected at least one sentence; the text that "
                    "fairseq-preprocess made it from had none"
                )
        return load_indexed_dataset(path, *args, **kwargs)

    return load_nonempty_dataset


def make_batches_anew_in_each_epoch() -> None:
    """Let resumed training see the batches that uninterrupted training sees.

    fairseq groups sentences into batches by a seed that depends on the epoch, but only once, in the first epoch of a
    run, which is another one after resuming: then equally long sentences are grouped differently, and the parameters
    are not those of an uninterrupted run. It is as if ``--update-epoch-batch-itr True`` were always given.
    Unnecessary with a fairseq where the groups do not depend on where a run began.
    """
    from fairseq.tasks import FairseqTask

    FairseqTask.can_reuse_epoch_itr = _cannot_reuse_epoch_itr


def _cannot_reuse_epoch_itr(self: Any, dataset: Any) -> bool:
    return False
