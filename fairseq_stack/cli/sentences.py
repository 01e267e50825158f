"""The options of commands that score sentences of English with a language model."""

from __future__ import annotations

import argparse
import unicodedata
from collections.abc import Callable

from fairseq_stack.errors import UserError
from fairseq_stack_preprocess.errors import require_at_least

from .checkpoint import add_device


def add_scoring(parser: argparse.ArgumentParser) -> None:
    """Declare the sizes of batches and ``--cpu``."""
    parser.add_argument("--batch-size", type=int, metavar="N", help="most sentences at a time (default: no limit)")
    parser.add_argument(
        "--max-tokens", type=int, metavar="N", default=2000, help="most tokens at a time (default: 2000)"
    )
    add_device(parser)


def check_scoring(args: argparse.Namespace) -> None:
    """Raise an error for sizes that are out of range."""
    for name in ("batch_size", "max_tokens"):
        require_at_least(f"--{name.replace('_', '-')}", getattr(args, name), 1)


def add_text(parser: argparse.ArgumentParser) -> None:
    """Declare what is done to sentences so that they look like the text of the model."""
    parser.add_argument("--penn", action="store_true", help="split as in the Penn Treebank: can't is ca n't")
    parser.add_argument("--lowercase", action="store_true", help="make all letters small")
    parser.add_argument(
        "--without-punctuation", action="store_true", help="leave out tokens of punctuation, as in Mikolov's text"
    )


def text_changer(args: argparse.Namespace) -> tuple[Callable[[str], str], str]:
    """What is done to a sentence, and its name in signatures.

    Raises:
        UserError: nltk is not installed, which ``--penn`` needs.
    """
    steps: dict[str, Callable[[str], str]] = {}
    if args.penn:
        steps["penn"] = _penn()
    if args.lowercase:
        steps["lowercase"] = str.lower
    if args.without_punctuation:
        steps["without-punctuation"] = _without_punctuation

    def change(sentence: str) -> str:
        for step in steps.values():
            sentence = step(sentence)
        return sentence

    return change, "+".join(steps) or "as-is"


def _penn() -> Callable[[str], str]:
    try:
        from nltk.tokenize import TreebankWordTokenizer
    except ImportError as error:
        raise UserError("--penn needs nltk (pip install nltk)") from error
    tokenizer = TreebankWordTokenizer()
    return lambda sentence: " ".join(tokenizer.tokenize(sentence))


def _without_punctuation(sentence: str) -> str:
    return " ".join(token for token in sentence.split() if not all(map(_is_punctuation, token)))


def _is_punctuation(character: str) -> bool:
    return unicodedata.category(character).startswith("P")
