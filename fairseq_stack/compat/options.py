"""Fields of fairseq's dataclasses, which are the options of its commands."""

from __future__ import annotations

import inspect
from dataclasses import field, make_dataclass
from typing import Any


def set_dataclass_default(config: type, name: str, default: object) -> None:
    """Change a field's default where instances, fairseq's parsers and OmegaConf look for it."""
    config.__dataclass_fields__[name].default = default  # type: ignore[attr-defined]
    setattr(config, name, default)
    init = vars(config)["__init__"]  # generated with the old default
    arguments = list(inspect.signature(init).parameters)
    defaults = list(init.__defaults__)
    defaults[arguments.index(name) - len(arguments)] = default
    init.__defaults__ = tuple(defaults)


def add_dataclass_field(config: Any, name: str, kind: type, default: object, help: str) -> None:
    """Add a field where instances, fairseq's parsers and OmegaConf look for it."""
    added = (name, kind, field(default=default, metadata={"help": help}))
    longer: Any = make_dataclass(config.__name__, [added], bases=(config,))
    config.__annotations__[name] = kind
    setattr(config, name, default)
    config.__dataclass_fields__ = longer.__dataclass_fields__
    config.__init__ = longer.__init__
