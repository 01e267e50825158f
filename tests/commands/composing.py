"""Composes fairseq's configurations as hydra does, in an eighth of the time.

fairseq hands hydra each option of a command as an override. For every command hydra then searches and merges the same
structured configurations, and parses every override anew. Here the configurations that the groups (``task=...``,
``model=...``) choose are merged once, and each override is parsed once. hydra itself applies the overrides.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import os
import warnings
from collections.abc import Sequence
from pathlib import Path

import fairseq
import hydra
from fairseq import options
from fairseq.dataclass import utils
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from omegaconf import DictConfig, OmegaConf

CONFIGURATIONS = Path(fairseq.__file__).parent / "config"
VERSION_BASE = "1.1"
"""What fairseq, which names no version, gets of hydra."""


def install() -> None:
    """Let ``convert_namespace_to_omegaconf`` compose in this way, in this process and its forks."""
    utils.initialize = lambda config_path: contextlib.nullcontext()
    utils.compose = compose


def parse_defaults() -> None:
    """Parse the overrides that most commands have in common, the options' defaults, for the forks of this process."""
    parser = options.get_training_parser()
    with warnings.catch_warnings(action="ignore"):
        utils.convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, ["data", "--arch", "transformer"]))
    _compose_groups.cache_clear()  # what they give, a plugin may change


def compose(name: str, overrides: Sequence[str], strict: bool) -> DictConfig:
    """What ``hydra.experimental.compose`` gives within ``initialize``."""
    groups = tuple(text for text in overrides if not _is_of_an_option(text))
    changes = [_parse(text) for text in overrides if _is_of_an_option(text)]
    configuration = copy.deepcopy(_compose_groups(name, groups))
    ConfigLoaderImpl._apply_overrides_to_config(changes, configuration)
    OmegaConf.set_struct(configuration, strict)
    return configuration


def _is_of_an_option(override: str) -> bool:
    """Whether an override changes an option, such as ``task.data=...``, and does not choose a group's member."""
    return "." in override.partition("=")[0]


@functools.cache
def _parse(override: str) -> Override:
    return OverridesParser.create().parse_override(override)


@functools.cache
def _compose_groups(name: str, groups: tuple[str, ...]) -> DictConfig:
    with hydra.initialize_config_dir(os.fspath(CONFIGURATIONS), version_base=VERSION_BASE):
        return hydra.compose(name, list(groups))
