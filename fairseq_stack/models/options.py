"""What becomes of the options before a model is built from them."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from omegaconf import OmegaConf

from fairseq_stack.layer_list import LayerKind, parse_layer_list
from fairseq_stack.models.config import StackOptions
from fairseq_stack.models.presets import Settings


def plain_namespace(args: Any) -> Namespace:
    """A namespace of the options, whichever form fairseq holds them in: in others our own options get lost."""
    if OmegaConf.is_config(args):
        return Namespace(**OmegaConf.to_container(args, resolve=True))
    return args


def fill_in(args: Any, settings: Settings) -> None:
    """Set the options that the user has not set."""
    for name, value in settings.items():
        setattr(args, name, getattr(args, name, value))


def option_defaults() -> Settings:
    """The defaults of the options that all stack transformers share."""
    return {name: field.default for name, field in StackOptions.__dataclass_fields__.items() if name != "_name"}


def parse_option(flag: str, layers: str) -> tuple[LayerKind, ...]:
    """Parse a layer list given by a flag; errors name the flag."""
    try:
        return parse_layer_list(layers)
    except ValueError as error:
        raise ValueError(f"{flag}: {error}") from None


def check_options(args: Namespace) -> None:
    """Raise ValueError if options do not go together."""
    if args.output_bias and args.adaptive_softmax_cutoff:
        raise ValueError("--output-bias and --adaptive-softmax-cutoff cannot be combined")
    if args.quant_noise_pq:
        raise ValueError("--quant-noise-pq: stack attention has no quantization noise")
    if args.stack_positions == "interleaved":
        for name in ("encoder_learned_pos", "decoder_learned_pos"):
            if getattr(args, name, None):
                raise ValueError(f"--stack-positions interleaved and --{name.replace('_', '-')} cannot be combined")
    if not args.compact_vocab:
        if args.compact_vocab_unk:
            raise ValueError("--compact-vocab-unk needs --compact-vocab")
        return
    for name in ("adaptive_softmax_cutoff", "merge_src_tgt_embed", "base_layers", "encoder_embed_path",
                 "decoder_embed_path", "adaptive_input"):  # fmt: skip
        if getattr(args, name, None):
            raise ValueError(f"--compact-vocab and --{name.replace('_', '-')} cannot be combined")
