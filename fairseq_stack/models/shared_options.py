"""What all families of models have in common in their options: their declaration, and how they are settled.

fairseq reads the types of options at run time: annotations must not be postponed, and optional ones be spelled
``Optional``.
"""

# ruff: noqa: UP045

import math
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any, Optional

from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.tasks import FairseqTask
from fairseq.tasks.translation import TranslationTask
from omegaconf import OmegaConf

from fairseq_stack.errors import UserError
from fairseq_stack.kinds import Layer, kinds, parse_layer_list

VALUE_ACTIVATIONS = ChoiceEnum(["sigmoid", "released"])
WITHOUT_SCALE = ("fairseq", "one-turn")
"""The initialisations that ``--stack-init-scale`` has no effect on."""


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


@dataclass
class PretrainedOptions(FairseqDataclass):
    """The option of language models that may begin as GPT-2."""

    init_from_gpt2: Optional[str] = field(
        default=None,
        metadata={
            "help": "folder of Hugging Face transformers with a GPT-2 (config.json, model.safetensors), whose weights "
            "the model begins with; it sets the sizes and all that GPT-2 decides"
        },
    )


@dataclass
class StackAttentionOptions(FairseqDataclass):
    """The options of layers of stack attention."""

    stack_value_activation: VALUE_ACTIVATIONS = field(  # type: ignore[valid-type]
        default="sigmoid",
        metadata={
            "help": "how pushed vectors are computed: with a sigmoid (Eq. 17 of DuSell & Chiang 2024), or as in the "
            "authors' released code (no activation for sup, exp for nd; strat has no released code)"
        },
    )
    stack_depth_limit: Optional[int] = field(
        default=None,
        metadata={"help": "sup: maximum depth; deeper elements are discarded (default: no limit)"},
    )
    stack_bias: bool = field(
        default=False,
        metadata={"help": "nd, ns: the layers that drive the automaton have biases; --stack-init one-turn sets it"},
    )


def plain_namespace(args: Any) -> Namespace:
    """The options as a namespace, whatever form fairseq holds them in: other forms lose our own options."""
    if OmegaConf.is_config(args):
        return Namespace(**OmegaConf.to_container(args, resolve=True))
    return args


def shared_with(kind: type[Any], options: Any) -> dict[str, Any]:
    """The options of a network, of this dataclass, that a model has by the same names, with values as JSON has them."""
    found = {option.name: getattr(options, option.name) for option in fields(kind) if hasattr(options, option.name)}
    # A default of fairseq's may be a member of an enum.
    return {name: value.value if isinstance(value, Enum) else value for name, value in found.items()}


def flag(name: str) -> str:
    """The flag of an option."""
    return f"--{name.replace('_', '-')}"


def require_language_modeling(model: str, task: FairseqTask) -> None:
    """Raise UserError if the task of a language model is translation."""
    if isinstance(task, TranslationTask):
        raise UserError(f"{model} is a language model: expected --task language_modeling, got {type(task).__name__}")


def require_one_dictionary(model: str, task: FairseqTask) -> None:
    """Raise UserError if a language model is to read other symbols than it predicts."""
    read, predicted = len(task.source_dictionary), len(task.target_dictionary)
    if read != predicted:
        raise UserError(f"--output-dictionary-size: expected {read:,} or no such option for {model}, got {predicted:,}")


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
    for layer in [part for entry in layers for part in entry.parts()]:
        if layer.kind.models is not None and model not in layer.kind.models:
            raise UserError(
                f"{flag(name)}: {layer} is {layer.kind.title}, which {model} cannot have: it needs --arch "
                f"{' or '.join(layer.kind.models)}"
            )


def has_effect(name: str, layers: Sequence[Layer]) -> bool:
    """Whether an option has an effect on one of the layers of a transformer."""
    return any(name in part.kind.options.values() for layer in layers for part in layer.parts())


def require_effect(name: str, layers: Sequence[Layer]) -> None:
    """Raise UserError if an option has no effect on the layers of a transformer."""
    if not has_effect(name, layers):
        taking = " or ".join(kind.name for kind in kinds() if name in kind.options.values())
        listed = ",".join(map(str, layers))
        raise UserError(f"{flag(name)} has no effect: expected a layer of the kind {taking}, got {listed}")


def settle_stack_options(options: Namespace, layers: Sequence[Layer]) -> None:
    """Check the options of stack attention in a transformer, and set the biases that ``--stack-init one-turn`` needs.

    Raises:
        UserError: the limit is not positive, or an option has no effect.
    """
    for option in fields(StackAttentionOptions):  # checkpoints of earlier versions lack some
        vars(options).setdefault(option.name, option.default)
    begins_with_one_turn = getattr(options, "stack_init", None) == "one-turn"
    check_at_least_one(options, "stack_depth_limit")
    if options.stack_depth_limit is not None:
        require_effect("stack_depth_limit", layers)
    if options.stack_bias:
        require_effect("stack_bias", layers)
    options.stack_bias = options.stack_bias or (begins_with_one_turn and has_effect("stack_bias", layers))


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
    if options.stack_init in WITHOUT_SCALE:
        raise UserError(
            f"--stack-init-scale {scale} has no effect with --stack-init {options.stack_init}: expected another "
            "--stack-init, or no scale"
        )
    return scale
