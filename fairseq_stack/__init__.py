"""fairseq_stack: sequence models that have stacks in them, in PyTorch and as a fairseq plugin.

The names of ``__all__`` need only torch: layers of :mod:`fairseq_stack.modules` and models of
:mod:`fairseq_stack.networks`, which are imported when they are asked for.

``fairseq-train --user-dir ...`` imports this package and its :mod:`~fairseq_stack.models`,
:mod:`~fairseq_stack.tasks`, :mod:`~fairseq_stack.optim` and :mod:`~fairseq_stack.criterions`, which register what they
hold with fairseq.
"""

from __future__ import annotations

import importlib.abc
import logging
import sys
from typing import TYPE_CHECKING, Any

from fairseq_stack.version import __version__ as __version__

if TYPE_CHECKING:
    from fairseq_stack.modules import (
        DeltaAttention,
        DeltaStackAttention,
        NondeterministicStackAttention,
        StackAttention,
        StackLSTM,
        StratificationStackAttention,
        SuperpositionStackAttention,
        SymbolStackAttention,
    )
    from fairseq_stack.networks import (
        LSTMOptions,
        StackLSTMLM,
        StackTransformer,
        StackTransformerLM,
        TransformerOptions,
    )

__all__ = [
    "DeltaAttention",
    "DeltaStackAttention",
    "LSTMOptions",
    "NondeterministicStackAttention",
    "StackAttention",
    "StackLSTM",
    "StackLSTMLM",
    "StackTransformer",
    "StackTransformerLM",
    "StratificationStackAttention",
    "SuperpositionStackAttention",
    "SymbolStackAttention",
    "TransformerOptions",
]
_LAST_IMPORT_OF_FAIRSEQ = "fairseq.model_parallel"


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    layers = importlib.import_module("fairseq_stack.modules")
    return (
        getattr(layers, name)
        if hasattr(layers, name)
        else getattr(importlib.import_module("fairseq_stack.networks"), name)
    )


def __dir__() -> list[str]:
    return [*globals(), *__all__]


def register() -> None:
    """Register the architectures, tasks, schedules and criterions with fairseq; calling it again changes nothing.

    Raises:
        ImportError: if fairseq is missing or not supported.
    """
    importlib.import_module("fairseq_stack.models")
    importlib.import_module("fairseq_stack.tasks")
    importlib.import_module("fairseq_stack.optim")
    importlib.import_module("fairseq_stack.criterions")


class _RegisterWithFairseq(importlib.abc.MetaPathFinder):
    """Calls :func:`register` at the end of ``import fairseq``. It finds nothing itself.

    fairseq ignores ``--user-dir`` if the package has been imported before, and offers no other way to load plugins.
    Without this, the architectures would be unknown in a process that imports ``fairseq_stack.ops`` and then runs a
    command of fairseq, in ``from_pretrained`` of fairseq's own classes after ``import fairseq_stack``, and to
    :mod:`.hub`, which models are built on and so cannot import them.
    """

    def find_spec(self, name: str, *_: object) -> None:
        if name != _LAST_IMPORT_OF_FAIRSEQ:
            return
        try:
            register()
        except ImportError as error:  # fairseq itself works, and not everybody wants the plugin
            logging.getLogger(__name__).warning("fairseq_stack is not registered with fairseq: %s", error)


if "fairseq" in sys.modules:
    register()
else:
    sys.meta_path.insert(0, _RegisterWithFairseq())
