"""``fairseq-stack surprisal CHECKPOINT [FILE]``: the surprisal of each word of a text."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from pathlib import Path

from fairseq_stack.files import read_lines
from fairseq_stack_preprocess.text.progress import progress

from .arguments import Subparsers
from .checkpoint import add_checkpoint, load_checkpoint, on_device
from .sentences import add_scoring, check_scoring

DESCRIPTION = """\
Print the surprisal of each word under a language model, -log p(word | the words of
the sentence before it), as a table with tabs between its columns: the numbers of
sentence and word, the word, the number of its tokens, its surprisal, and whether
the model does not know it. Each line is a sentence: raw text if fairseq-stack
prepare cut the model's data into pieces, and tokens separated by blanks otherwise.
The first word is predicted from the beginning of the sentence. The surprisal of a
word of several pieces is the sum of theirs."""

EXAMPLE = """\
example:
  fairseq-stack surprisal checkpoints/ptb sentences.txt > surprisals.tsv"""

UNITS = {"bits": math.log(2), "nats": 1.0}


def add_parser(subparsers: Subparsers) -> None:
    """Declare the subcommand."""
    parser = subparsers.add_parser(
        "surprisal", help="print the surprisal of each word of a text", description=DESCRIPTION, epilog=EXAMPLE
    )
    add_checkpoint(parser)
    parser.add_argument("file", metavar="FILE", nargs="?", type=Path, help="the sentences (default: standard input)")
    parser.add_argument("--unit", choices=list(UNITS), default="bits", help="unit of the surprisals (default: bits)")
    parser.add_argument("--end", action="store_true", help="also print the surprisal of the end of each sentence")
    parser.add_argument(
        "--correct-word-ends",
        action="store_true",
        help="count the end of a word of pieces with the word, not with the next one (Pimentel and Meister, 2024)",
    )
    add_scoring(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the table."""
    check_scoring(args)
    sentences = None if args.file is None else read_lines(args.file)
    hub = load_checkpoint(args.checkpoint, args.data)
    from fairseq_stack.hub.surprisals import surprisals

    found = surprisals(
        on_device(hub, args),
        _standard_input() if sentences is None else sentences,
        correct_word_ends=args.correct_word_ends,
        batch_size=args.batch_size,
        max_tokens=args.max_tokens,
    )
    total = None if sentences is None else len(sentences)
    print(f"sentence\tword_id\tword\tn_tokens\tsurprisal_{args.unit}\tis_unk")
    for number, words in enumerate(progress(found, label="surprisals", total=total, unit="sentence"), start=1):
        for place, word in enumerate(words if args.end else words[:-1], start=1):
            surprisal = word.surprisal / UNITS[args.unit]
            print(number, place, word.text, word.num_tokens, f"{surprisal:.6f}", int(word.is_unknown), sep="\t")
    return 0


def _standard_input() -> Iterator[str]:
    for line in sys.stdin:
        yield line.rstrip("\n")
