"""The models of the papers by name, for ``--arch`` and for ``fairseq-hydra-train``.

A preset is a file in ``configs/model``, and says which model has which options. Hydra asks for files: it reads the
configuration before fairseq imports the plugin that could make it.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from fairseq.models import register_model_architecture

from fairseq_stack.models.shared_options import WITHOUT_SCALE

Settings = dict[str, Any]
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the compiled one is four times as fast


def read_presets() -> dict[str, dict[str, Settings]]:
    """For each model, the options of its presets by their names."""
    presets: dict[str, dict[str, Settings]] = {}
    for path in sorted(Path(__file__).parent.parent.glob("configs/model/*.yaml")):
        settings = yaml.load(path.read_text(encoding="utf-8"), _LOADER)
        presets.setdefault(settings.pop("_name"), {})[path.stem] = settings
    return presets


PRESETS = read_presets()


def register_presets(model: str, complete: Callable[[Namespace], None] = lambda args: None) -> None:
    """Let ``--arch`` know the presets of a model; ``complete`` then fills in what depends on their options."""
    for name, settings in PRESETS[model].items():

        def architecture(args: Namespace, settings: Settings = settings) -> None:
            fill_in(args, settings)
            complete(args)

        register_model_architecture(model, name)(architecture)


def fill_in(args: Any, settings: Settings) -> None:
    """Set the options that the user has not set."""
    if getattr(args, "stack_init", None) in WITHOUT_SCALE:
        settings = settings | {"stack_init_scale": None}  # the preset's is for another initialisation
    for name, value in settings.items():
        setattr(args, name, getattr(args, name, value))
