"""The options of commands that score sentences of English with a language model."""

from __future__ import annotations

import argparse
import re
import unicodedata
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fairseq_stack_preprocess.text.penn import penn_splitter

from .arguments import GREATEST_BEAM, add_number
from .checkpoint import add_device

if TYPE_CHECKING:
    from fairseq_stack.hub.language_model import LanguageModel

_BRACKET = re.compile("-[LR][RSC]B-", flags=re.IGNORECASE)


def add_scoring(parser: argparse.ArgumentParser) -> None:
    """Declare the beam of parses, the sizes of batches and ``--cpu``."""
    kept = "for models that parse: number of parses kept per sentence, whose probabilities are summed"
    add_number(parser, "--beam", f"{kept} (default: 50)", least=1, most=GREATEST_BEAM)
    add_number(parser, "--batch-size", "maximum number of sentences at a time (default: no limit)", least=1)
    add_number(
        parser,
        "--max-tokens",
        "maximum number of tokens at a time; each parse of a beam counts separately",
        2000,
        least=1,
    )
    add_device(parser)


def add_telescoping(parser: argparse.ArgumentParser) -> None:
    """Declare ``--telescoping``."""
    parser.add_argument(
        "--telescoping",
        action="store_true",
        help="for models that parse: surprisals that sum to -log p(sentence), instead of surprisals of a "
        "distribution of the next word",
    )


def sizes(args: argparse.Namespace) -> dict[str, Any]:
    """The sizes that :func:`fairseq_stack.hub.surprisals.surprisals` takes."""
    return {"beam_size": args.beam, "batch_size": args.batch_size, "max_tokens": args.max_tokens}


def beam_in_signature(
    model: LanguageModel, args: argparse.Namespace, telescoping: bool | None = None
) -> dict[str, object]:
    """What signatures say of a model that parses: its beam and, where it matters, which surprisals."""
    from fairseq_stack.hub.parse_beams import BEAM_SIZE

    if not model.parses_sentences:
        return {}
    beam: dict[str, object] = {"beam": args.beam or BEAM_SIZE}
    return beam if telescoping is None else {**beam, "surprisals": "telescoping" if telescoping else "conditional"}


def add_text(parser: argparse.ArgumentParser) -> None:
    """Declare what is done to sentences so that they look like the text of the model."""
    parser.add_argument("--penn", action="store_true", help="split as in the Penn Treebank: can't is ca n't")
    parser.add_argument("--lowercase", action="store_true", help="convert the text to lowercase")
    parser.add_argument(
        "--without-punctuation", action="store_true", help="leave out punctuation tokens, as in Mikolov's text"
    )


def text_changer(args: argparse.Namespace) -> tuple[Callable[[str], str], str]:
    """What is done to a sentence, and its name in signatures."""
    steps: dict[str, Callable[[str], str]] = {}
    if args.penn:
        split = penn_splitter()
        steps["penn"] = lambda sentence: " ".join(split(sentence))
    if args.lowercase:
        steps["lowercase"] = str.lower
    if args.without_punctuation:
        steps["without-punctuation"] = _without_punctuation

    def change(sentence: str) -> str:
        for step in steps.values():
            sentence = step(sentence)
        return sentence

    return change, "+".join(steps) or "as-is"


def _without_punctuation(sentence: str) -> str:
    return " ".join(
        token for token in sentence.split() if not (all(map(_is_punctuation, token)) or _BRACKET.fullmatch(token))
    )


def _is_punctuation(character: str) -> bool:
    return unicodedata.category(character).startswith("P")
