"""Completes and checks the options before a model is built from them."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from fairseq_stack.compat.building import is_from_checkpoint
from fairseq_stack.errors import UserError
from fairseq_stack.kinds import SDPA, Layer, parse_layer_list
from fairseq_stack.models.options import check_compact_vocabulary, check_kinds, flag
from fairseq_stack.models.presets import Settings
from fairseq_stack.models.transformer.config import StackOptions


def option_defaults() -> Settings:
    """The defaults of the options that all stack transformers share."""
    return {name: field.default for name, field in StackOptions.__dataclass_fields__.items() if name != "_name"}


def parse_option(flag: str, layers: str) -> tuple[Layer, ...]:
    """Parse a layer list given by a flag; errors name the flag."""
    try:
        return parse_layer_list(layers)
    except UserError as error:
        raise UserError(f"{flag}: {error}") from None


def set_depth(args: Any, layers_name: str, depth_name: str) -> None:
    """Set the depth to the length of the layer list, unless the user has set a depth: see :func:`settle_layers`."""
    layers = getattr(args, layers_name, None)
    if layers is not None and getattr(args, depth_name, None) is None:
        setattr(args, depth_name, len(parse_option(flag(layers_name), layers)))


def settle_layers(args: Any, layers_name: str, depth_name: str, model: str) -> None:
    """Check a layer list of a model, if there is one, and set the depth to its length.

    Raises:
        UserError: if the model cannot have such layers, or the user has set another depth for a new model.
    """
    set_depth(args, layers_name, depth_name)
    layers, depth = getattr(args, layers_name), getattr(args, depth_name)
    if layers is None:
        return
    listed = parse_option(flag(layers_name), layers)
    check_kinds(flag(layers_name), listed, model)
    length = len(listed)
    if depth != length and not is_from_checkpoint():
        raise UserError(
            f"{flag(depth_name)} {depth} and {flag(layers_name)} {layers} ({length} layer{'s' * (length > 1)}) do "
            f"not agree; leave {flag(depth_name)} out, since the layer list sets the depth"
        )
    setattr(args, depth_name, length)


def layers_of(args: Any, layers_name: str, depth_name: str) -> tuple[Layer, ...]:
    """The attention of the layers, the first layer first; without a layer list all are SDPA."""
    layers = getattr(args, layers_name)
    if layers is None:
        return (Layer(SDPA),) * getattr(args, depth_name)
    return parse_option(flag(layers_name), layers)


def check_options(args: Namespace) -> None:
    """Raise UserError if options cannot be combined."""
    if args.output_bias and args.adaptive_softmax_cutoff:
        raise UserError("--output-bias and --adaptive-softmax-cutoff cannot be combined")
    if args.quant_noise_pq:
        raise UserError("--quant-noise-pq: stack attention has no quantization noise")
    if args.stack_positions == "interleaved":
        for name in ("encoder_learned_pos", "decoder_learned_pos"):
            if getattr(args, name, None):
                raise UserError(f"--stack-positions interleaved and {flag(name)} cannot be combined")
    check_compact_vocabulary(args)
    if not args.compact_vocab:
        return
    for name in ("adaptive_softmax_cutoff", "merge_src_tgt_embed", "base_layers", "encoder_embed_path",
                 "decoder_embed_path", "adaptive_input"):  # fmt: skip
        if getattr(args, name, None):
            raise UserError(f"--compact-vocab and {flag(name)} cannot be combined")
