"""What a model reads for ``fairseq-stack inspect``: text, or lines of a file or of a data set."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fairseq_stack.cli.arguments import add_number
from fairseq_stack.errors import UserError
from fairseq_stack.files import read_lines
from fairseq_stack_preprocess.progress import say

if TYPE_CHECKING:
    from fairseq_stack.hub.interface import Hub
    from fairseq_stack.inspection.sentences import Sentence


OF_MANY = ("readings", "operations")
"""What ``--show`` shows of many lines."""
NOT_FOR_ALL = (
    *("sentences", "translation", "layer", "show", "runs", "least", "by", "after"),
    *("tree", "beam", "verb", "subject", "distractors"),
)
"""Options that only some models and outputs have; None where they are not given."""


def add_sentences(parser: argparse.ArgumentParser) -> None:
    """Declare where the sentences are from."""
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--text", metavar="TEXT", help="the sentence that the model reads")
    source.add_argument("--file", metavar="FILE", type=Path, help="a text with one sentence per line: see --line")
    source.add_argument(
        "--split", metavar="NAME", help="a split of the binarised data in --data, such as valid: see --line"
    )
    add_number(parser, "--line", "the line of --file or --split, counted from 1", least=1)
    many = "for --show readings, and --show operations without --line: read at most the first N lines (default: 100)"
    add_number(parser, "--sentences", many, least=1)
    parser.add_argument(
        "--translation",
        metavar="SENTENCE",
        help="the translation that the decoder reads (default: for a line of --split its translation there, and "
        "otherwise the model's own)",
    )


def check_sentences(args: argparse.Namespace) -> None:
    """Raise UserError if the options contradict each other."""
    has_lines = args.file is not None or args.split is not None
    if args.line is not None and not has_lines:
        raise UserError("--line: expected --file or --split with it")
    if reads_many(args) and args.show not in OF_MANY:
        raise UserError(
            f"--file and --split: give the line to show by --line, or for stacks --show {' or '.join(OF_MANY)}"
        )
    if args.split is not None and args.data is None:
        raise UserError("--split: name the folder of the binarised data by --data")
    if args.translation is not None and args.text is None:
        raise UserError("--translation: expected --text with it")


def refuse_unused(args: argparse.Namespace, shown: str, *used: str) -> None:
    """Raise UserError if an option of :data:`NOT_FOR_ALL` is given that is not ``used`` for what is ``shown``."""
    given = [name for name in NOT_FOR_ALL if getattr(args, name) is not None and name not in used]
    if given:
        raise UserError(f"{', '.join(f'--{name}' for name in given)}: not an option for {shown}; leave it out")


def reads_many(args: argparse.Namespace) -> bool:
    """Whether the arguments name lines, and none of them."""
    return args.line is None and (args.file is not None or args.split is not None)


def sentences_of(hub: Hub, args: argparse.Namespace) -> list[Sentence]:
    """The sentences that the arguments name; one, unless they name lines and none of them."""
    from fairseq_stack.hub.paths import data_bin_of
    from fairseq_stack.inspection.sentences import require_line, sentence_of_text, sentences_of_split

    first, count = (1, args.sentences or 100) if args.line is None else (args.line, 1)
    if args.file is not None:
        lines = read_lines(args.file)
        require_line(str(args.file), len(lines), first)
        texts = lines[first - 1 : first - 1 + count]
        sentences = [sentence_of_text(hub, text, name=f"{args.file}, line {n}") for n, text in enumerate(texts, first)]
        say_unknown(hub, texts)
        return sentences
    if args.split is not None:
        return sentences_of_split(hub, data_bin_of(args.data), args.split, first, count)
    sentence = sentence_of_text(hub, args.text, args.translation)
    say_unknown(hub, [args.text])
    return [sentence]


def say_unknown(hub: Hub, texts: Sequence[str]) -> None:
    """Say on standard error which tokens of texts the model reads as ``<unk>``, as the dictionary lacks them."""
    dictionary = hub.src_dict
    unknown = dict.fromkeys(token for text in texts for token in hub.cut(text) if token not in dictionary)
    if unknown:
        say(f"the model does not know {', '.join(map(repr, unknown))}: it reads {dictionary.unk_word} there")


def text_of(args: argparse.Namespace) -> str:
    """The one sentence of raw text that the arguments name, for a model that parses."""
    from fairseq_stack.inspection.sentences import require_line

    if args.file is not None:
        lines = read_lines(args.file)
        require_line(str(args.file), len(lines), args.line)
        return lines[args.line - 1]
    if args.text is None:
        raise UserError("a model that parses reads --text, or a line of --file")
    return str(args.text)
