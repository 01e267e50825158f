"""The register of everything that is changed in fairseq, and how it is installed and described."""

from __future__ import annotations

import functools
import importlib
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

_replacements: dict[str, Callable[..., Any]] = {}  # by the place of fairseq's function
_settings: dict[str, Callable[[], None]] = {}  # by what is set
_scriptable: set[Callable[..., Any]] = set()
_END = re.compile(r"(?:For (.+?)\. )?Unnecessary with (.+)\.")


def replaces(*places: str, scriptable: bool = False) -> Callable[[Function], Function]:
    """Register a function that takes the place of one of fairseq's, such as ``fairseq.trainer:Trainer.train_step``.

    It is called with fairseq's function and then with the arguments of the call. Several places are given if modules of
    fairseq import the function by its name. :func:`table` reads the docstring: the first paragraph says what is
    different, and the last one for which models, unless for every one, and what makes the change unnecessary.

    A function that is ``scriptable`` is not called with fairseq's: TorchScript has to read what models of fairseq call.
    """

    def register(function: Function) -> Function:
        if scriptable:
            _scriptable.add(function)
        _replacements.update(dict.fromkeys(places, function))
        return function

    return register


def sets(name: str) -> Callable[[Function], Function]:
    """Register a function that changes something in the process other than a function of fairseq.

    It may be called several times. Its docstring is like the docstring of a replacement.
    """

    def register(function: Function) -> Function:
        _settings[name] = function
        return function

    return register


def install() -> None:
    """Install everything that is registered. What is installed already stays as it is."""
    for setting in _settings.values():
        setting()
    for place, function in _replacements.items():
        module, _, path = place.partition(":")
        *classes, name = path.split(".")
        for loaded in _loaded(module):
            if hasattr(loaded, path.split(".")[0]):  # a command that is being imported may lack it
                _replace(functools.reduce(getattr, classes, loaded), name, function)


def _loaded(name: str) -> Iterator[Any]:
    """The modules of this name. A command may be ``__main__``, and is not imported only to be changed."""
    if not name.startswith("fairseq_cli."):
        yield importlib.import_module(name)
        return
    if name in sys.modules:
        yield sys.modules[name]
    if is_running_as_main(name):
        yield sys.modules["__main__"]


def is_running_as_main(name: str) -> bool:
    """Whether this process was started as ``python -m NAME``."""
    file = getattr(sys.modules["__main__"], "__file__", None) or ""
    return os.path.splitext(file)[0].split(os.sep)[-2:] == name.split(".")


def _replace(owner: Any, name: str, function: Callable[..., Any]) -> None:
    original = getattr(owner, name)
    if function in (original, getattr(original, "replacement", None)):
        return
    if function in _scriptable:
        setattr(owner, name, function)
        return

    def replacement(*args: Any, **kwargs: Any) -> Any:
        return function(original, *args, **kwargs)

    # The attributes of a function, in which fairseq counts, go with it.
    functools.update_wrapper(replacement, original, updated=() if isinstance(original, type) else ("__dict__",))
    vars(replacement)["replacement"] = function
    is_static = isinstance(inspect.getattr_static(owner, name), staticmethod)
    setattr(owner, name, staticmethod(replacement) if is_static else replacement)


def table() -> str:
    """All changes as a table in Markdown, from the docstrings.

    Raises:
        ValueError: a docstring does not end as :func:`replaces` says.
    """
    rows: dict[Callable[..., Any], str] = {}
    for place, function in {**_replacements, **_settings}.items():
        rows.setdefault(function, f"| `{place.replace(':', '.')}` | {_description(function)} |".replace("``", "`"))
    head = ["| what is replaced | what is different | for | unnecessary with |", "| --- | --- | --- | --- |"]
    return "\n".join([*head, *sorted(rows.values())])


def _description(function: Callable[..., Any]) -> str:
    paragraphs = [" ".join(text.split()) for text in (inspect.getdoc(function) or "").split("\n\n")]
    ending = _END.fullmatch(paragraphs[-1])
    if ending is None:
        raise ValueError(f"{function.__module__}.{function.__qualname__}: its docstring does not end with a reason")
    return " | ".join([paragraphs[0].rstrip("."), ending[1] or "every model", ending[2]])
