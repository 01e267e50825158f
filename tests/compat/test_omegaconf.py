"""Options read without OmegaConf's checks are the ones that it reads."""

from __future__ import annotations

from typing import Any

import pytest
from fairseq.dataclass.configs import FairseqConfig
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import ConfigAttributeError, MissingMandatoryValue

READ_BY_OMEGACONF: Any = DictConfig.__getattr__.__wrapped__


def test_all_options_of_fairseq_are_read() -> None:
    config = OmegaConf.structured(FairseqConfig)
    groups = [config, *(config[name] for name in config if not OmegaConf.is_missing(config, name))]
    for group in filter(None, groups):
        for name in group:
            if not OmegaConf.is_missing(group, name):
                read, expected = getattr(group, name), READ_BY_OMEGACONF(group, name)
                assert read is expected or read == expected, name


def test_the_checks_of_omegaconf_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    config = OmegaConf.structured(FairseqConfig)
    monkeypatch.setattr(DictConfig, "_get_impl", None)
    assert (config.common.seed, config.common.fp16, config.dataset.max_tokens) == (1, False, None)
    assert config.optimization.lr == [0.25]


def test_references_are_followed() -> None:
    config = OmegaConf.create({"a": 2, "b": "${a}", "groups": {"c": "${..b}"}, "same": "${groups}"})
    assert (config.b, config.groups.c, config.same.c) == (2, 2, 2)
    config.a = 3
    assert config.same.c == 3


def test_what_is_missing_is_an_error() -> None:
    config = OmegaConf.structured(FairseqConfig)
    with pytest.raises(ConfigAttributeError, match="beam"):
        config.beam  # noqa: B018
    with pytest.raises(MissingMandatoryValue, match="data"):
        OmegaConf.create({"data": "???"}).data  # noqa: B018
    assert not hasattr(OmegaConf.create(), "beam")
