"""``fairseq-stack inspect --show readings``: the readings of many sentences in two principal components, by symbol."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from fairseq_stack.errors import UserError
from fairseq_stack.files import written_whole
from fairseq_stack_preprocess.progress import progress

from .layers import chosen
from .sentences import sentences_of

if TYPE_CHECKING:
    from fairseq_stack.hub.interface import Hub


def add_readings(parser: argparse.ArgumentParser) -> None:
    """Declare how the readings are named."""
    parser.add_argument(
        "--by",
        choices=("input", "prediction"),
        default="input",
        help="for --show readings: name a reading after the last input before it, or after the first word that is "
        "predicted with it: the next one in attention, the next but one in an LSTM; encoders are left out "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--after", metavar="WORD", help="for --show readings: leave out the readings of a sentence before this word"
    )


def inspect_readings(hub: Hub, args: argparse.Namespace) -> None:
    """Write the picture or the numbers.

    Raises:
        UserError: an option does not fit, or the model cannot read a sentence.
    """
    if args.output.suffix in (".gv", ".tex", ".tsv"):
        raise UserError(f"--output with {args.output.suffix}: expected .json or a picture of the readings")
    from fairseq_stack.inspection.pictures import draw_readings
    from fairseq_stack.inspection.readings import readings

    sentences = sentences_of(hub, args)
    read = progress(sentences, label="sentences", total=len(sentences), unit="sentence")
    stacks = chosen(readings(hub, read, by=args.by, after=args.after), args.checkpoint, args.layer)
    if args.output.suffix == ".json":
        text = json.dumps([stack.as_json() for stack in stacks], indent=2, ensure_ascii=False)
        with written_whole(args.output) as file:
            file.write(f"{text}\n".encode())
    else:
        draw_readings(stacks, args.by, args.output)
