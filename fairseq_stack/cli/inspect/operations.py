"""``fairseq-stack inspect --show operations`` of many sentences: what each stack does at each symbol, on average."""

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


def inspect_operations(hub: Hub, args: argparse.Namespace) -> None:
    """Write the picture, the table or the numbers.

    Raises:
        UserError: the format does not fit, or the model cannot read a sentence.
    """
    if args.output.suffix in (".gv", ".tex"):
        raise UserError(f"--output with {args.output.suffix}: expected .json, .tsv or a picture of many sentences")
    from fairseq_stack.inspection.operations import mean_operations
    from fairseq_stack.inspection.pictures import draw_mean_operations
    from fairseq_stack.inspection.texts import operations_as_tsv

    sentences = sentences_of(hub, args)
    read = progress(sentences, label="sentences", total=len(sentences), unit="sentence")
    stacks = chosen(mean_operations(hub, read), args.checkpoint, args.layer)
    if args.output.suffix not in (".json", ".tsv"):
        draw_mean_operations(stacks, args.output)
        return
    if args.output.suffix == ".tsv":
        text = operations_as_tsv(stacks)
    else:
        text = f"{json.dumps([stack.as_json() for stack in stacks], indent=2, ensure_ascii=False)}\n"
    with written_whole(args.output) as file:
        file.write(text.encode())
