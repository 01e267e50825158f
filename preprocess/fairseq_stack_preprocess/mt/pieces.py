"""The text of ``mt`` in BPE pieces, and the models that cut it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from ..text.binarise import TEXT
from ..text.output import create_text
from ..text.progress import say
from ..text.sentence_pieces import Encoder, made_blank, restricted, train_model, write_vocabulary
from ..text.streams import read_lines
from .options import CORPUS, Options
from .sentences import SplitReport, side_of

PIECES = "pieces"
"""The folder of the text in pieces."""


def _lines(path: Path) -> Iterator[str]:
    """The lines of a text that :mod:`.sentences` wrote, in the form that SentencePiece gets."""
    return made_blank(read_lines(path, keep_separators=True))


def write_pieces(options: Options, folder: Path, reports: dict[str, SplitReport]) -> dict[str, int]:
    """Train BPE on the training text, write models, vocabularies and the pieces of every split.

    Returns:
        For each language the number of different pieces in its training text.
    """
    (folder / PIECES).mkdir()
    models = _train_models(options, folder)
    used = {}
    for language in options.languages():
        say(f"{CORPUS}: pieces of {language}")
        encoder = Encoder(_restrict(models[language], options, folder, language))
        for split, report in reports.items():
            path = side_of(folder / PIECES, split, language)
            counts = _encode(encoder, side_of(folder / TEXT, split, language), path, report)
            report.pieces[language] = counts.total()
            if split == "train":
                used[f"{language}_distinct_pieces"] = len(counts)
    return used


def _train_models(options: Options, folder: Path) -> dict[str, bytes]:
    """The model of each language, as trained; with a shared model both are the same object."""
    sides = [options.languages()] if options.joint else [(language,) for language in options.languages()]
    models: dict[str, bytes] = {}
    for languages in sides:
        say(f"{CORPUS}: training BPE on {' and '.join(languages)}")
        model = train_model(
            chain.from_iterable(_lines(side_of(folder / TEXT, "train", language)) for language in languages),
            pieces=options.pieces,
            hard_limit=options.hard_limit,
            normalization=options.piece_normalization,
        )
        models |= dict.fromkeys(languages, model)
    return models


def _restrict(model: bytes, options: Options, folder: Path, language: str) -> bytes:
    """Write the vocabulary of a language, and its model restricted to frequent pieces, which is returned."""
    vocabulary = Encoder(model).vocabulary(_lines(side_of(folder / TEXT, "train", language)))
    write_vocabulary(vocabulary, folder / f"sentencepiece.{language}.vocabulary")
    if options.piece_threshold:
        model = restricted(model, lambda piece: vocabulary[piece] >= options.piece_threshold)
    (folder / f"sentencepiece.{language}.model").write_bytes(model)
    return model


def _encode(encoder: Encoder, text: Path, path: Path, report: SplitReport) -> Counter[str]:
    """Write the pieces of a text and return how often each occurs."""
    used: Counter[str] = Counter()
    with create_text(path) as file:
        for pieces in encoder.encode(made_blank(read_lines(text, keep_separators=True), report.made_blank)):
            used.update(pieces)
            file.write(" ".join(pieces) + "\n")
    return used
