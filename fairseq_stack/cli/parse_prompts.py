"""``fairseq-stack parse-prompts CHECKPOINT --data DIR``: the parses of prompts by a model that parses."""

from __future__ import annotations

import argparse
from pathlib import Path

from fairseq_stack.errors import UserError
from fairseq_stack.files import require_writable, written_whole
from fairseq_stack_preprocess.layout import DATA_BIN, SUFFIX
from fairseq_stack_preprocess.progress import progress

from .arguments import GREATEST_BEAM, add_number
from .checkpoint import add_checkpoint, add_device, load_checkpoint, on_device
from .evaluate_pushdown import BEAM

SUMMARY = "parse prompts for classification by a model that parses"

DESCRIPTION = """\
Parse the prompts that fairseq-stack prepare classification wrote to DIR with a model
that parses (pushdown_transformer_lm). SPLIT.attach has the attachments of the best
parse of a beam, as fairseq-train reads them. The prompt is parsed without its label,
whose tokens attach to themselves."""

EXAMPLE = """\
example:
  fairseq-stack parse-prompts checkpoints/trees --data data/rte --beam 50"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_checkpoint(parser, corpus="the corpus of fairseq-stack prepare classification, or its data-bin")
    kept = f"number of parses kept per prompt: 1 for greedy decisions (default: {BEAM})"
    add_number(parser, "--beam", kept, least=1, most=GREATEST_BEAM)
    add_number(parser, "--max-tokens", "maximum number of tokens at a time, in all parses", 8000, least=1)
    parser.add_argument(
        "--attachments", metavar="DIR", type=Path, help="the folder to write to (default: text/ of the corpus)"
    )
    add_device(parser)


def run(args: argparse.Namespace) -> int:
    from fairseq_stack.evaluation.prompts import read_prompts
    from fairseq_stack.hub.parsed_strings import best_parses, require_parses

    corpus = read_prompts(args.data)
    folder = corpus.text if args.attachments is None else args.attachments
    paths = {split: folder / f"{split}.attach" for split in corpus.splits}
    for path in paths.values():
        require_writable(path)
    hub = require_parses(on_device(load_checkpoint(args, corpus.folder / DATA_BIN), args))
    contents = {}
    for split in paths:
        prompts, labels = corpus.read(split)
        parses = best_parses(
            hub,
            prompts,
            beam_size=args.beam or BEAM,
            max_tokens=args.max_tokens,
            are_prefixes=corpus.labels is not None,
        )
        try:
            parsed = dict(progress(parses, label=split, total=len(prompts), unit="prompt"))
        except UserError as error:
            raise UserError(f"{corpus.text / split}.{SUFFIX}: {error}") from None
        lengths = [0 if corpus.labels is None else len(corpus.labels[label]) for label in labels]
        lines = (_line(parsed[number], length) for number, length in enumerate(lengths))
        contents[split] = "".join(f"{line}\n" for line in lines)
    for split, path in paths.items():
        with written_whole(path) as file:
            file.write(contents[split].encode())
        print(path)
    return 0


def _line(attached: list[int], label: int) -> str:
    """The attachments of a prompt and of a label with so many tokens."""
    own = range(len(attached) + 1, len(attached) + 1 + label)
    return " ".join(map(str, [*attached, *own]))
