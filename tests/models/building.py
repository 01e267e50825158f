"""Builds models as fairseq's command line does, for synthetic dictionaries."""

from __future__ import annotations

from typing import Any

from fairseq import options
from fairseq.data import Dictionary
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.tasks.language_modeling import LanguageModelingTask
from fairseq.tasks.translation import TranslationTask
from omegaconf import DictConfig
from torch import nn

import fairseq_stack.models  # noqa: F401  (registers the architectures)


def make_dictionary(num_symbols: int, multiple_of: int = 1) -> Dictionary:
    """A dictionary of the symbols w0, w1, ... beside fairseq's four special ones."""
    dictionary = Dictionary()
    for index in range(num_symbols):
        dictionary.add_symbol(f"w{index}", n=num_symbols - index)
    dictionary.pad_to_multiple_(multiple_of)
    return dictionary


def build_language_model(arch: str, dictionary: Dictionary, *flags: str) -> Any:
    """The language model that ``fairseq-train --arch ARCH FLAGS`` would build."""
    cfg = _configure("language_modeling", arch, flags)
    task = LanguageModelingTask(cfg.task, dictionary, dictionary)
    return task.build_model(cfg.model)


def build_translation_model(
    arch: str, dictionary: Dictionary, *flags: str, target_dictionary: Dictionary | None = None
) -> Any:
    """The translation model that ``fairseq-train --arch ARCH FLAGS`` would build."""
    cfg = _configure("translation", arch, flags)
    task = TranslationTask(cfg.task, dictionary, target_dictionary or dictionary)
    return task.build_model(cfg.model)


def count_parameters(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def _configure(task: str, arch: str, flags: tuple[str, ...]) -> DictConfig:
    parser = options.get_training_parser(default_task=task)
    args = options.parse_args_and_arch(parser, ["data", "--task", task, "--arch", arch, *flags])
    return convert_namespace_to_omegaconf(args)
