"""``fairseq-stack surprisal CHECKPOINT [FILE]``: the surprisal of each word of a text."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from fairseq_stack.files import read_lines
from fairseq_stack_preprocess.progress import progress, say

from .checkpoint import LANGUAGE_MODEL, add_checkpoint, load_language_model, on_device, require_ends
from .sentence_options import add_scoring, add_telescoping, sizes

SUMMARY = "print the surprisal of each word of a text"

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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_checkpoint(parser, checkpoint=LANGUAGE_MODEL)
    parser.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        type=Path,
        default=Path("/dev/stdin"),
        help="the sentences (default: standard input)",
    )
    parser.add_argument("--unit", choices=list(UNITS), default="bits", help="unit of the surprisals (default: bits)")
    parser.add_argument("--end", action="store_true", help="also print the surprisal of the end of each sentence")
    parser.add_argument(
        "--correct-word-ends",
        action="store_true",
        help="charge the end of a word to the word, not to the next one (Pimentel and Meister, 2024)",
    )
    add_telescoping(parser)
    add_scoring(parser)


def run(args: argparse.Namespace) -> int:
    """Print the table, once all sentences are scored: a sentence that is refused leaves no part of it."""
    from fairseq_stack.hub.surprisals import surprisals

    sentences = read_lines(args.file)
    model = on_device(load_language_model(args), args)
    if args.end:
        require_ends(model, "leave out --end")
    scored = surprisals(
        model,
        sentences,
        correct_word_ends=args.correct_word_ends,
        telescoping=args.telescoping,
        **sizes(args),
    )
    table: list[tuple[object, ...]] = []
    unknown = 0
    for number, words in enumerate(
        progress(scored, label="surprisals", total=len(sentences), unit="sentence"), start=1
    ):
        for place, word in enumerate(words if args.end else words[:-1], start=1):
            surprisal = f"{word.surprisal / UNITS[args.unit]:z.6f}"
            table.append((number, place, word.text, word.num_tokens, surprisal, int(word.is_unknown)))
            unknown += word.is_unknown
    print("sentence", "word_id", "word", "n_tokens", f"surprisal_{args.unit}", "is_unk", sep="\t")
    for row in table:
        print(*row, sep="\t")
    if unknown:
        say(f"unknown words: {unknown:,} (is_unk is 1)")
    return 0
