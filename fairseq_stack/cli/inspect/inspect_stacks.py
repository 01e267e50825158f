"""``fairseq-stack inspect`` of a model with stacks as layers: what they do in one sentence or in many."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from fairseq_stack.errors import UserError
from fairseq_stack_preprocess.progress import progress, say

from . import inspect_parses
from .sentence_options import reads_many, refuse_unused, sentences_of

if TYPE_CHECKING:
    from fairseq_stack.hub.interface import Hub
    from fairseq_stack.inspection.operations import MeanOperations
    from fairseq_stack.inspection.readings import Readings
    from fairseq_stack.modules import InspectedStack

SHOWN = ("weights", "operations", "transitions", "runs", "readings")
TEXTS = (".gv", ".tsv")
LEAST = 0.1
USED = {".json": ("show", "runs"), ".gv": ("least",), ".tsv": ("least",), "runs": ("runs",), "transitions": ("least",)}
"""The options for one sentence, by the kind of numbers or text, or by what a picture shows."""

Stack = TypeVar("Stack", "InspectedStack", "MeanOperations", "Readings")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare how the readings of many sentences are named."""
    parser.add_argument(
        "--by",
        choices=("input", "prediction"),
        help="for --show readings: label a stack reading with the token before it, or with the first token that it "
        "helps to predict: the next token in attention, the token after next in an LSTM; encoders are left out "
        "(default: input)",
    )
    parser.add_argument(
        "--after",
        metavar="WORD",
        help="for --show readings, and --show operations of many sentences: leave out what is before this word in a "
        "sentence",
    )


def inspect_stacks(hub: Hub, args: argparse.Namespace) -> str | list[Any] | None:
    """The numbers or the text to write; None if a picture is drawn."""
    if args.show in inspect_parses.SHOWN:
        raise UserError(f"--show {args.show}: the model does not parse sentences; expected one of {', '.join(SHOWN)}")
    if args.show == "readings":
        return _readings(hub, args)
    return _operations(hub, args) if reads_many(args) else _sentence(hub, args)


def _readings(hub: Hub, args: argparse.Namespace) -> list[Any] | None:
    """The readings of many sentences in two principal components, by symbol."""
    if args.output.suffix in TEXTS:
        raise UserError(f"--output with {args.output.suffix}: expected .json or a picture of the readings")
    shown, many = ("--show readings", ("sentences",)) if reads_many(args) else ("the readings of one sentence", ())
    refuse_unused(args, shown, "show", "translation", "layer", "by", "after", *many)
    from fairseq_stack.inspection.pictures import draw_readings
    from fairseq_stack.inspection.readings import readings

    sentences = sentences_of(hub, args)
    read = progress(sentences, label="sentences", total=len(sentences), unit="sentence")
    by: Literal["input", "prediction"] = args.by or "input"
    stacks = _chosen(readings(hub, read, by=by, after=args.after), args)
    if args.output.suffix == ".json":
        return [stack.as_json() for stack in stacks]
    draw_readings(stacks, by, args.output, args.title)
    return None


def _operations(hub: Hub, args: argparse.Namespace) -> str | list[Any] | None:
    """What each stack does at each symbol of many sentences, on average."""
    if args.output.suffix == ".gv":
        raise UserError("--output with .gv: expected .json, .tsv or a picture of many sentences")
    refuse_unused(args, "the operations in many sentences", "show", "layer", "sentences", "after")
    from fairseq_stack.inspection.operations import mean_operations
    from fairseq_stack.inspection.pictures import draw_mean_operations
    from fairseq_stack.inspection.texts import operations_as_tsv

    sentences = sentences_of(hub, args)
    read = progress(sentences, label="sentences", total=len(sentences), unit="sentence")
    stacks = _chosen(mean_operations(hub, read, after=args.after), args)
    if args.output.suffix == ".json":
        return [stack.as_json() for stack in stacks]
    if args.output.suffix == ".tsv":
        return operations_as_tsv(stacks)
    draw_mean_operations(stacks, args.output, args.title)
    return None


def _sentence(hub: Hub, args: argparse.Namespace) -> str | list[Any] | None:
    """What the stacks do in one sentence; of a picture of runs, standard error also has the share of each run."""
    from fairseq_stack.inspection import pictures, stacks

    shown, least = args.show or SHOWN[0], LEAST if args.least is None else args.least
    used = USED.get(args.output.suffix) or ("show", *USED.get(shown, ()))
    refuse_unused(args, f"{shown} of one sentence in {args.output.suffix}", "translation", "layer", *used)
    (sentence,) = sentences_of(hub, args)
    inspected = _chosen(stacks.inspect_stacks(hub, sentence, num_runs=args.runs or 1), args)
    if args.output.suffix == ".json":
        return [stack.as_json() for stack in inspected]
    if args.output.suffix in TEXTS:
        return _as_text(inspected, args.output.suffix, least)
    if shown == "operations":
        pictures.draw_operations(inspected, args.output, args.title)
    elif shown == "transitions":
        pictures.draw_transitions(inspected, least, args.output, args.title)
    elif shown == "runs":
        for name in pictures.draw_runs(inspected, args.output, args.title):
            say(name)
    else:
        pictures.draw_all_weights(inspected, args.output, args.title)
    return None


def _as_text(stacks: Sequence[InspectedStack], suffix: str, least: float) -> str:
    """The likely transitions, or the contents of the stack in the end, of the only automaton."""
    from fairseq_stack.inspection import texts
    from fairseq_stack.modules import InspectedAutomaton

    automata = [stack for stack in stacks if isinstance(stack, InspectedAutomaton)]
    if len(automata) != 1:
        names = ", ".join(stack.layer for stack in automata) or "none"
        raise UserError(
            f"--output with {suffix}: expected one nondeterministic stack, got {names}; choose one by --layer"
        )
    (stack,) = automata
    if suffix == ".tsv":
        return texts.transitions_as_tsv(stack, least)
    return texts.contents_as_graphviz(stack.contents(len(stack.inputs), least), stack.inputs)


def _chosen(stacks: Sequence[Stack], args: argparse.Namespace) -> Sequence[Stack]:
    """The stacks that ``--layer`` names."""
    if not stacks:
        raise UserError(f"{args.checkpoint} has no stack to show")
    if args.layer is None:
        return [stack for stack in stacks if stack.is_automaton] or stacks
    chosen = [stack for stack in stacks if args.layer in ("all", stack.layer)]
    if not chosen:
        names = ", ".join(stack.layer for stack in stacks)
        raise UserError(f"--layer {args.layer}: expected 'all' or one of the model's stacks: {names}")
    return chosen
