"""Completes and checks the options before a model is built from them."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

from fairseq_stack.errors import UserError
from fairseq_stack.kinds import Layer, kinds, parse_stacks
from fairseq_stack.models.options import check_compact_vocabulary, check_kinds, flag

MODEL = "stack_lstm_lm"
# What options of stacks are when the user has not set them.
_NOT_SET = {
    "push_hidden_state": False,
    "stack_depth_limit": None,
    "normalize_transitions": False,
    "no_states_in_reading": False,
    "read_log_weights": False,
    "original_bottom": False,
    "bottom_vector": "learned",
}


def stacks_of(args: Namespace) -> tuple[Layer, ...]:
    """The stacks that ``--stack`` gives; errors name the flag."""
    try:
        return parse_stacks(args.stack)
    except UserError as error:
        raise UserError(f"--stack: {error}") from None


def settle(args: Namespace) -> None:
    """Fill in the options whose defaults depend on others, and check all options of a new model.

    Options of stacks that an older checkpoint lacks get the values with which it was trained.

    Raises:
        UserError: an option is wrong, or options cannot be combined.
    """
    for name, default in _NOT_SET.items():
        setattr(args, name, getattr(args, name, default))
    args.states_in_reading = not args.no_states_in_reading  # as kinds know it
    for name in ("decoder_hidden_size", "decoder_embed_dim", "stack_depth_limit"):
        if getattr(args, name) is not None and getattr(args, name) < 1:
            raise UserError(f"{flag(name)}: expected at least 1, got {getattr(args, name)}")
    if args.share_decoder_input_output_embed:
        args.decoder_embed_dim = args.decoder_embed_dim or args.decoder_hidden_size
        if args.decoder_embed_dim != args.decoder_hidden_size:
            raise UserError(
                "--share-decoder-input-output-embed needs embeddings of the size of the hidden state: expected "
                f"--decoder-embed-dim {args.decoder_hidden_size}, got {args.decoder_embed_dim}"
            )
    if args.add_bos_token:
        raise UserError(f"--add-bos-token: {MODEL} reads no beginning of a sentence; leave the option out")
    _settle_dropout(args)
    check_compact_vocabulary(args)
    stacks = stacks_of(args)
    check_kinds("--stack", stacks, MODEL)
    _check_options_of_stacks(args, stacks)
    if args.max_target_positions is None:
        args.max_target_positions = args.tokens_per_sample


def _settle_dropout(args: Namespace) -> None:
    if args.decoder_embed_dim is None and args.decoder_dropout_in:
        raise UserError("--decoder-dropout-in needs embeddings: give --decoder-embed-dim")
    if args.decoder_dropout_in is None:
        args.decoder_dropout_in = args.dropout if args.decoder_embed_dim else 0.0
    if args.decoder_dropout_out is None:
        args.decoder_dropout_out = args.dropout
    for name in ("dropout", "decoder_dropout_in", "decoder_dropout_out", "recurrent_dropout"):
        if not 0 <= getattr(args, name) < 1:
            raise UserError(f"{flag(name)}: expected a probability below 1, got {getattr(args, name)}")


def _check_options_of_stacks(args: Namespace, stacks: Sequence[Layer]) -> None:
    for name, default in _NOT_SET.items():
        option = "states_in_reading" if name == "no_states_in_reading" else name
        if getattr(args, name) != default and not any(_takes(layer, option) for layer in stacks):
            taking = " or ".join(kind.name for kind in kinds() if option in kind.controller_options.values())
            raise UserError(
                f"{flag(name)} has no effect: expected a stack of the kind {taking}, got --stack {args.stack}"
            )
    if args.push_hidden_state:
        for layer in stacks:
            if _takes(layer, "push_hidden_state") and layer.sizes != (args.decoder_hidden_size,):
                raise UserError(
                    f"--push-hidden-state: the stack holds hidden states, expected {layer.kind.name}-"
                    f"{args.decoder_hidden_size}, the size of --decoder-hidden-size, got {layer}"
                )


def _takes(layer: Layer, option: str) -> bool:
    return option in layer.kind.controller_options.values()
