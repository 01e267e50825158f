"""fairseq_stack: sequence models that have stacks in them, as a fairseq plugin.

``fairseq-train --user-dir ...`` imports this package and its :mod:`~fairseq_stack.models`,
:mod:`~fairseq_stack.tasks`, :mod:`~fairseq_stack.optim` and :mod:`~fairseq_stack.criterions`, which register what they
hold with fairseq. The differentiable stacks in :mod:`fairseq_stack.ops` need only torch, and importing them imports
nothing else.
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import logging
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

__version__ = "0.1.0"


def register() -> None:
    """Register the architectures, tasks, schedules and criterions with fairseq; calling it again changes nothing.

    Raises:
        ImportError: if fairseq is missing or not supported.
    """
    importlib.import_module("fairseq_stack.models")
    importlib.import_module("fairseq_stack.tasks")
    importlib.import_module("fairseq_stack.optim")
    importlib.import_module("fairseq_stack.criterions")


class _RegisterAfterFairseq(importlib.abc.MetaPathFinder):
    """Calls :func:`register` when fairseq has been imported.

    fairseq ignores ``--user-dir`` if the package has been imported before. So a process that imports
    ``fairseq_stack.ops`` and then runs a command of fairseq would not find the models.
    """

    def __init__(self) -> None:
        self._searching = False

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != "fairseq" or self._searching:
            return None
        self._searching = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._searching = False
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def execute_and_register(module: ModuleType) -> None:
            execute(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            try:
                register()
            except ImportError as error:  # fairseq itself works, and not everybody wants the plugin
                logging.getLogger(__name__).warning("fairseq_stack is not registered with fairseq: %s", error)

        spec.loader.exec_module = execute_and_register  # type: ignore[method-assign]
        return spec


if "fairseq" in sys.modules:
    register()
else:
    sys.meta_path.insert(0, _RegisterAfterFairseq())
