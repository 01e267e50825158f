"""``fairseq-stack surprisal CHECKPOINT [FILE]``: the surprisal of each word of a text."""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from fairseq_stack.errors import UserError
from fairseq_stack.files import read_lines
from fairseq_stack_preprocess.progress import progress, say

from .arguments import Subparsers
from .checkpoint import add_language_model, load_language_model, on_device
from .sentence_options import add_scoring, add_telescoping, sizes

if TYPE_CHECKING:
    from fairseq_stack.hub.language_model import LanguageModel
    from fairseq_stack.hub.regions import Region
    from fairseq_stack.hub.surprisals import Word

Row: TypeAlias = "tuple[tuple[object, ...], Word | Region]"
"""What the table says of a word or a region before its number of tokens, and the word or the region."""

DESCRIPTION = """\
Print the surprisal of each word under a language model, -log p(word | the words of
the sentence before it), as a tab-separated table: the numbers of the sentence and
the word, the word, its number of tokens, its surprisal, and whether it is unknown
to the model. Each line is a sentence: raw text if fairseq-stack prepare split the
model's data into pieces, and space-separated tokens otherwise. The first word is
predicted from the beginning of the sentence. The surprisal of a word of several
pieces is the sum of theirs. For models that parse, probabilities are summed over a
beam of parses."""

EXAMPLE = """\
example:
  fairseq-stack surprisal checkpoints/ptb sentences.txt > surprisals.tsv"""

UNITS = {"bits": math.log(2), "nats": 1.0}


def add_parser(subparsers: Subparsers) -> None:
    """Declare the subcommand."""
    parser = subparsers.add_parser(
        "surprisal", help="print the surprisal of each word of a text", description=DESCRIPTION, epilog=EXAMPLE
    )
    add_language_model(parser)
    parser.add_argument("file", metavar="FILE", nargs="?", type=Path, help="the sentences (default: standard input)")
    parser.add_argument("--unit", choices=list(UNITS), default="bits", help="unit of the surprisals (default: bits)")
    parser.add_argument("--end", action="store_true", help="also print the surprisal of the end of each sentence")
    parser.add_argument(
        "--correct-word-ends",
        action="store_true",
        help="charge the end of a word to the word, not to the next one (Pimentel and Meister, 2024)",
    )
    parser.add_argument(
        "--regions",
        metavar="MARK",
        help="print a row for each region of a sentence instead of each word; MARK, such as '|', is a separate word "
        "between regions and is not read",
    )
    add_telescoping(parser)
    add_scoring(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the table, once all sentences are scored: a sentence that is refused leaves no part of it."""
    sentences = None if args.file is None else read_lines(args.file)
    _check_mark(args, sentences)
    model = load_language_model(args)
    lines = iter(_standard_input() if sentences is None else sentences)
    rows_of = _rows_of_words if args.regions is None else _rows_of_regions
    total = None if sentences is None else len(sentences)
    columns = ["word_id", "word"] if args.regions is None else ["region_id", "region", "n_words"]
    table: list[tuple[object, ...]] = [("sentence", *columns, "n_tokens", f"surprisal_{args.unit}", "is_unk")]
    unknown = 0
    sentences_done = progress(rows_of(model, lines, args), label="surprisals", total=total, unit="sentence")
    for number, rows in enumerate(sentences_done, start=1):
        for place, (texts, part) in enumerate(rows, start=1):
            surprisal = f"{part.surprisal / UNITS[args.unit]:.6f}"
            table.append((number, place, *texts, part.num_tokens, surprisal, int(part.is_unknown)))
            unknown += part.is_unknown
    for cells in table:
        print(*cells, sep="\t")
    if unknown:
        parts = "unknown words" if args.regions is None else "regions with unknown words"
        say(f"{parts}: {unknown:,} (is_unk is 1; the model reads <unk> for such a word)")
    return 0


def _check_mark(args: argparse.Namespace, sentences: Sequence[str] | None) -> None:
    mark = args.regions
    if mark is None:
        return
    if mark.split() != [mark]:
        raise UserError(f"--regions {mark!r}: expected a marker without spaces, such as '|'")
    if sentences is not None and not any(mark in sentence for sentence in sentences):
        raise UserError(f"--regions {mark}: no line of {args.file} has this marker between regions")


def _rows_of_words(model: LanguageModel, lines: Iterator[str], args: argparse.Namespace) -> Iterator[list[Row]]:
    for words in _words(model, lines, args):
        yield [((word.text,), word) for word in (words if args.end else words[:-1])]


def _rows_of_regions(model: LanguageModel, lines: Iterator[str], args: argparse.Namespace) -> Iterator[list[Row]]:
    from fairseq_stack.hub.regions import marked_regions, regions_of

    numbered = enumerate(lines, start=1)
    regions, again = itertools.tee(marked_regions(line, args.regions, number) for number, line in numbered)
    sentences = (" ".join(filter(None, parts)) for parts in again)
    for parts, words in zip(regions, _words(model, sentences, args), strict=True):
        rows: list[Row] = [((part.text, part.num_words), part) for part in regions_of(parts, words)]
        yield [*rows, ((words[-1].text, 1), words[-1])] if args.end else rows


def _words(model: LanguageModel, sentences: Iterable[str], args: argparse.Namespace) -> Iterator[list[Word]]:
    from fairseq_stack.hub.surprisals import surprisals

    return surprisals(
        on_device(model, args),
        sentences,
        correct_word_ends=args.correct_word_ends,
        telescoping=args.telescoping,
        **sizes(args),
    )


def _standard_input() -> Iterator[str]:
    for line in sys.stdin:
        yield line.rstrip("\n")
