"""What all families of models have in common in their options: their declaration, and how they are settled.

fairseq reads the types of options at run time: annotations must not be postponed.
"""

import math
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from fairseq.dataclass import FairseqDataclass
from fairseq.tasks import FairseqTask
from fairseq.tasks.translation import TranslationTask
from omegaconf import OmegaConf

from fairseq_stack.errors import UserError
from fairseq_stack.kinds import Layer, kinds, parse_layer_list


@dataclass
class VocabularyOptions(FairseqDataclass):
    """The options of embeddings and output layers that the presets set as in the papers."""

    compact_vocab: bool = field(
        default=False,
        metadata={"help": "restrict embeddings and softmax to the symbols that can occur"},
    )
    compact_vocab_unk: bool = field(
        default=False,
        metadata={"help": "with --compact-vocab: <unk> can occur in language modelling (it always can in translation)"},
    )
    output_bias: bool = field(default=False, metadata={"help": "add a bias to the output layer"})


def plain_namespace(args: Any) -> Namespace:
    """The options as a namespace, whatever form fairseq holds them in: other forms lose our own options."""
    if OmegaConf.is_config(args):
        return Namespace(**OmegaConf.to_container(args, resolve=True))
    return args


def plain_value(value: Any) -> Any:
    """The value of an option as JSON has it: a default of fairseq's may be a member of an enum."""
    return value.value if isinstance(value, Enum) else value


def flag(name: str) -> str:
    """The flag of an option."""
    return f"--{name.replace('_', '-')}"


def require_language_modeling(model: str, task: FairseqTask) -> None:
    """Raise UserError if the task of a language model is translation."""
    if isinstance(task, TranslationTask):
        raise UserError(f"{model} is a language model: expected --task language_modeling, got {type(task).__name__}")


def check_at_least_one(options: Namespace, *names: str) -> None:
    """Raise UserError if a number is set that is not positive."""
    for name in names:
        if getattr(options, name) is not None and getattr(options, name) < 1:
            raise UserError(f"{flag(name)}: expected at least 1, got {getattr(options, name)}")


def check_probabilities(options: Namespace, *names: str) -> None:
    """Raise UserError if a probability of dropout is none, or is 1."""
    for name in names:
        if not 0 <= getattr(options, name) < 1:
            raise UserError(f"{flag(name)}: expected a probability below 1, got {getattr(options, name)}")


def check_compact_vocabulary(options: Namespace) -> None:
    """Raise UserError for an option of the compact vocabulary without the vocabulary."""
    if options.compact_vocab_unk and not options.compact_vocab:
        raise UserError("--compact-vocab-unk needs --compact-vocab")


def parse_option(
    options: Any, name: str, parse: Callable[[str], tuple[Layer, ...]] = parse_layer_list
) -> tuple[Layer, ...]:
    """The layers that an option lists; errors name its flag."""
    try:
        return parse(getattr(options, name))
    except UserError as error:
        raise UserError(f"{flag(name)}: {error}") from None


def check_kinds(name: str, layers: Sequence[Layer], model: str) -> None:
    """Raise UserError if a model cannot have one of the layers that an option lists."""
    for layer in layers:
        if layer.kind.models is not None and model not in layer.kind.models:
            raise UserError(
                f"{flag(name)}: {layer} is {layer.kind.title}, which {model} cannot have: it needs --arch "
                f"{' or '.join(layer.kind.models)}"
            )


def check_depth_limit(limit: int | None, layers: Sequence[Layer]) -> None:
    """Check the option ``--stack-depth-limit`` of a transformer with these layers.

    Raises:
        UserError: the limit is not positive, or no layer has a stack that it limits.
    """
    if limit is None:
        return
    if limit < 1:
        raise UserError(f"--stack-depth-limit: expected at least 1, got {limit}")
    if not any("stack_depth_limit" in layer.kind.options.values() for layer in layers):
        limited = " or ".join(kind.name for kind in kinds() if "stack_depth_limit" in kind.options.values())
        listed = ",".join(map(str, layers))
        raise UserError(f"--stack-depth-limit has no effect: expected a layer of the kind {limited}, got {listed}")


def initial_scale(options: Namespace, default: float) -> float:
    """The scale of a new model's parameters: ``--stack-init-scale``.

    Raises:
        UserError: the scale is not a positive number, or ``--stack-init fairseq`` does not use it.
    """
    scale: float | None = options.stack_init_scale
    if scale is None:
        return default
    if not 0 < scale < math.inf:
        raise UserError(f"--stack-init-scale: expected a positive number, got {scale}")
    if options.stack_init == "fairseq":
        raise UserError(
            f"--stack-init-scale {scale} has no effect with --stack-init fairseq: expected another --stack-init, or no "
            "scale"
        )
    return scale
