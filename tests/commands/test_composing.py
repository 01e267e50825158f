"""The short cut composes what hydra composes."""

from __future__ import annotations

import copy

import pytest
from fairseq import options
from fairseq.dataclass import utils
from hydra.experimental import compose, initialize
from omegaconf import OmegaConf

import fairseq_stack.models  # noqa: F401

TRANSLATION = [
    *("data", "--task", "translation", "--arch", "stack_transformer_nd_small", "--compact-vocab"),
    *("--optimizer", "adam", "--adam-betas", "(0.9, 0.98)", "--lr", "0.1,0.2", "--save-dir", "/a b/c=d,e", "-s", "d'e"),
]
LANGUAGE_MODELING = [
    *("data", "--task", "language_modeling", "--arch", "transformer_lm", "--tokens-per-sample", "50"),
    *("--lr-scheduler", "reduce_lr_on_plateau", "--bpe", "sentencepiece", "--sentencepiece-model", "m"),
]


@pytest.mark.parametrize("arguments", [TRANSLATION, LANGUAGE_MODELING], ids=["translation", "language-modeling"])
def test_equals_hydra(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    parser = options.get_training_parser(default_task=arguments[2])
    parsed = options.parse_args_and_arch(parser, arguments)
    actual = [utils.convert_namespace_to_omegaconf(copy.deepcopy(parsed)) for _ in range(2)]
    assert utils.compose is not compose
    monkeypatch.setattr(utils, "compose", compose)
    monkeypatch.setattr(utils, "initialize", initialize)
    expected = utils.convert_namespace_to_omegaconf(copy.deepcopy(parsed))
    for composed in actual:
        assert OmegaConf.is_struct(composed) == OmegaConf.is_struct(expected)
        assert str(composed) == str(expected)
