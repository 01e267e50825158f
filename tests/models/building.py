"""Builds models as fairseq's command line does, for synthetic dictionaries."""

from __future__ import annotations

import copy
import functools
import math
import re
from collections.abc import Iterable
from typing import Any

import pytest
import torch
from fairseq import options
from fairseq.data import Dictionary
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.tasks.language_modeling import LanguageModelingTask
from fairseq.tasks.translation import TranslationTask
from omegaconf import DictConfig
from torch import Tensor, nn

from fairseq_stack.models.presets import PRESETS
from fairseq_stack.modules import StackAttention, StackLSTM
from fairseq_stack.tasks.pushdown_language_modeling import PushdownLanguageModelingTask
from fairseq_stack.tasks.stack_transduction import StackTransductionTask


def dictionary_of(*words: str) -> Dictionary:
    dictionary = Dictionary()
    for word in words:
        dictionary.add_symbol(word)
    return dictionary


def make_dictionary(num_symbols: int, multiple_of: int = 1) -> Dictionary:
    """A dictionary of the symbols w0, w1, ... beside fairseq's four special ones."""
    dictionary = dictionary_of(*(f"w{index}" for index in range(num_symbols)))
    dictionary.pad_to_multiple_(multiple_of)
    return dictionary


COMPACT = ("--compact-vocab",)
DICTIONARY = make_dictionary(9)


def build_language_model(arch: str, dictionary: Dictionary, *flags: str, **options: Any) -> Any:
    """The language model that ``fairseq-train --arch ARCH FLAGS`` would build, with ``options`` changed."""
    of_task, of_model = configure("language_modeling", arch, flags, options)
    task = LanguageModelingTask(of_task, dictionary, dictionary)
    return task.build_model(of_model)


def build_pushdown_model(arch: str, dictionary: Dictionary, *flags: str) -> Any:
    """The syntactic language model that ``fairseq-train --arch ARCH FLAGS`` would build."""
    of_task, of_model = configure("pushdown_language_modeling", arch, flags)
    task = PushdownLanguageModelingTask(of_task, dictionary, dictionary)
    return task.build_model(of_model)


def build_translation_model(
    arch: str, dictionary: Dictionary, *flags: str, target_dictionary: Dictionary | None = None, **options: Any
) -> Any:
    """The translation model that ``fairseq-train --arch ARCH FLAGS`` would build, with ``options`` changed."""
    of_task, of_model = configure("translation", arch, flags, options)
    task = TranslationTask(of_task, dictionary, target_dictionary or dictionary)
    return task.build_model(of_model)


def build_transduction_model(arch: str, dictionary: Dictionary, *flags: str) -> Any:
    """The model of transductions that ``fairseq-train --arch ARCH FLAGS`` would build."""
    of_task, of_model = configure("stack_transduction", arch, flags)
    return StackTransductionTask(of_task, dictionary).build_model(of_model)


def build_opinionated_model(preset: str, flags: tuple[str, ...] = ()) -> Any:
    """A model of this preset in evaluation mode, in float64, with parameters that make it opinionated.

    The stacks get a loud voice, so that what goes wrong in them changes what the model prefers.
    """
    make = build_translation_model if preset in PRESETS["stack_transformer"] else build_language_model
    model = make(preset, DICTIONARY, *flags).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=2.0 * (1, *parameter.shape)[-1] ** -0.5)
        for module in model.modules():
            if isinstance(module, StackLSTM):
                of_readings = module.gates.weight[:, module.input_size : -module.hidden_size]
                of_readings.mul_(10.0 * max(1.0, of_readings.size(1) / 10) ** -0.5)  # many would saturate the gates
            elif isinstance(module, StackAttention) and isinstance(module.output, nn.Linear):
                module.output.weight.mul_(10.0)
        # Shared embeddings would otherwise make the model repeat its last token.
        if hasattr(model.decoder, "layer_norm"):
            model.decoder.layer_norm.weight.normal_()
    return model


def differs_in_size_only(preset: str) -> bool:
    """Whether other presets have all that a preset has, in other sizes."""
    sizes = r".*_(medium|large|tr)|stack_lstm_lm_(lstm_2020|sup_2020|(?!sup_hidden).*_ptb)"
    return re.fullmatch(rf"{sizes}|(?!.*(nd_x2|rnn_nd_r|lstm_sup_r)_qf).*_qf", preset) is not None


def each_model(presets: Iterable[str], *others: tuple[str, tuple[str, ...]]) -> pytest.MarkDecorator:
    """Run a test with presets and both kinds of vocabulary, and with other presets and flags.

    What depends on the vocabulary does not depend on the stacks: without ``--hostile`` the compact one is combined with
    the nondeterministic stack alone, and no preset is tested that only has other sizes.
    """
    cases = [
        pytest.param(
            *(preset, flags),
            id=f"{preset}-{'compact' if flags else 'stock'}-vocab",
            marks=[pytest.mark.hostile] * (differs_in_size_only(preset) or (flags == COMPACT and "_nd_" not in preset)),
        )
        for preset in presets
        for flags in ((), COMPACT)
    ] + [pytest.param(preset, flags, id=preset + "".join(flags)) for preset, flags in others]
    return pytest.mark.parametrize(("preset", "flags"), cases)


def random_words(*shape: int) -> Tensor:
    return torch.randint(DICTIONARY.nspecial, len(DICTIONARY), shape)


def with_eos(sentences: list[Tensor], left_pad: bool, extra_pads: int = 0) -> Tensor:
    """A batch of sentences, EOS added, padded on one side."""
    length = max(map(len, sentences)) + 1 + extra_pads
    batch = torch.full((len(sentences), length), DICTIONARY.pad())
    for row, words in zip(batch, sentences, strict=True):
        sentence = torch.cat([words, torch.tensor([DICTIONARY.eos()])])
        row[-len(sentence) :] = sentence if left_pad else row[-len(sentence) :]
        if not left_pad:
            row[: len(sentence)] = sentence
    return batch


def xavier_bound(module: nn.Module, gain: float = 1.0) -> float:
    """The largest weight that Xavier's uniform initialisation gives."""
    rows, columns = module.get_parameter("weight").shape
    return gain * math.sqrt(6 / (rows + columns))


def assert_uniform(module: nn.Module, name: str, bound: float) -> None:
    """Assert that a parameter looks as if drawn from [-bound, bound]."""
    largest = module.get_parameter(name).abs().max().item()
    assert 0.8 * bound < largest <= bound, f"{name}: {largest} for a bound of {bound}"


def count_parameters(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def configure(
    task: str, arch: str, flags: tuple[str, ...], options: dict[str, Any] | None = None
) -> tuple[DictConfig, Any]:
    """The configurations of the task and the model, copied: that of the whole does not copy a model's that is old."""
    cfg = _composed(task, arch, flags)
    model = copy.deepcopy(cfg.model)
    for name, value in (options or {}).items():
        setattr(model, name, value)
    return copy.deepcopy(cfg.task), model


@functools.cache
def _composed(task: str, arch: str, flags: tuple[str, ...]) -> DictConfig:
    """Composing takes hydra a second."""
    parser = options.get_training_parser(default_task=task)
    args = options.parse_args_and_arch(parser, ["data", "--task", task, "--arch", arch, *flags])
    return convert_namespace_to_omegaconf(args)
