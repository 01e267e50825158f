"""fairseq_stack: sequence models that have stacks in them, as a fairseq plugin.

``fairseq-train --user-dir ...`` imports this package and its :mod:`~fairseq_stack.models`,
:mod:`~fairseq_stack.tasks`, :mod:`~fairseq_stack.optim` and :mod:`~fairseq_stack.criterions`, which register what they
hold with fairseq. The differentiable stacks in :mod:`fairseq_stack.ops` need only torch, and importing them imports
nothing else.
"""

from __future__ import annotations

import importlib.abc
import logging
import sys

__version__ = "0.1.0"
_LAST_IMPORT_OF_FAIRSEQ = "fairseq.model_parallel"


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
