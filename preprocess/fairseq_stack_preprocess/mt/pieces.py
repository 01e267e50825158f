"""The text of ``mt`` in BPE pieces, the models that cut it, and the dictionaries."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from ..errors import PrepareError
from ..layout import MANIFEST_NAME, PIECES, TEXT
from ..progress import say
from ..text.output import create_text
from ..text.sentence_pieces import (
    Encoder,
    count_unknown,
    made_blank,
    restricted,
    train_model,
    write_dictionary,
    write_vocabulary,
)
from ..text.streams import read_lines
from .split_text import SplitReport, side_of
from .translation_options import CORPUS, Options


def _lines(path: Path) -> Iterator[str]:
    """The lines of a text that :mod:`.split_text` wrote, in the form that SentencePiece gets."""
    return made_blank(read_lines(path, keep_separators=True))


def write_pieces(options: Options, folder: Path, reports: dict[str, SplitReport]) -> dict[str, int]:
    """Train BPE on the training text, write models, vocabularies, dictionaries and the pieces of every split.

    Returns:
        For each language the number of different pieces in its training text.
    """
    (folder / PIECES).mkdir()
    models = _new_models(options, folder) if options.like is None else _copied_models(options.like, options, folder)
    encoders = {language: Encoder(model) for language, model in models.items()}
    trained: dict[str, Counter[str]] = {}
    for languages, dictionary in dictionaries(options, folder).items():
        known = frozenset().union(*(encoders[language].pieces() for language in languages))
        for language in languages:
            trained[language] = _write_side(encoders[language], known, folder, language, reports)
        if options.like is None:
            write_dictionary(known, sum((trained[language] for language in languages), Counter()), dictionary)
        else:
            dictionary.write_bytes((options.like / PIECES / dictionary.name).read_bytes())
    return {f"{language}_distinct_pieces": len(trained[language]) for language in options.languages()}


def dictionaries(options: Options, folder: Path) -> dict[tuple[str, ...], Path]:
    """The dictionary of both languages, or of each."""
    name = "vocabulary.txt"
    is_joint = options.joint if options.like is None else (options.like / PIECES / name).is_file()
    if is_joint:
        return {options.languages(): folder / PIECES / name}
    return {(language,): folder / PIECES / f"vocabulary.{language}.txt" for language in options.languages()}


def _write_side(
    encoder: Encoder, known: frozenset[str], folder: Path, language: str, reports: dict[str, SplitReport]
) -> Counter[str]:
    """Write the pieces of a language in every split, and return how often each occurs in train."""
    say(f"{CORPUS}: pieces of {language}")
    counts = {}
    for split, report in reports.items():
        path = side_of(folder / PIECES, split, language)
        counts[split] = _encode(encoder, side_of(folder / TEXT, split, language), path, report)
        unknown = count_unknown(counts[split], known, f"{CORPUS}: {path.name}")
        figures = {"pieces": counts[split].total(), **unknown}
        report.pieces |= {f"{language}_{name}": value for name, value in figures.items()}
    return counts["train"]


def _copied_models(like: Path, options: Options, folder: Path) -> dict[str, bytes]:
    """The model of each language of another corpus, copied."""
    models = {}
    for language in options.languages():
        name = f"sentencepiece.{language}.model"
        try:
            models[language] = (like / name).read_bytes()
        except OSError as error:
            raise PrepareError(
                f"--like {like}: expected the folder of a corpus of {options.source} and {options.target} that "
                f"prepare {CORPUS} wrote, with {name}"
            ) from error
        (folder / name).write_bytes(models[language])
    _require_same_normalization(like, options)
    return models


def _require_same_normalization(like: Path, options: Options) -> None:
    """Raise PrepareError if the text of another corpus is normalised in another way."""
    try:
        theirs = json.loads((like / MANIFEST_NAME).read_text(encoding="utf-8"))["options"]
        normalization, moses = theirs["normalization"], theirs["moses"]
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise PrepareError(f"--like {like}: expected {MANIFEST_NAME} of prepare {CORPUS}, got {error!r}") from error
    if (normalization, moses) != (options.normalization, options.moses):
        used = f"--normalization {normalization} {'--moses' if moses else '--no-moses'}"
        raise PrepareError(f"--like {like}: its text was prepared with {used}; give the same")


def _new_models(options: Options, folder: Path) -> dict[str, bytes]:
    """The model of each language, restricted to its frequent pieces."""
    models: dict[str, bytes] = {}
    for languages in dictionaries(options, folder):
        say(f"{CORPUS}: training BPE on {' and '.join(languages)}")
        model = train_model(
            chain.from_iterable(_lines(side_of(folder / TEXT, "train", language)) for language in languages),
            pieces=options.pieces,
            hard_limit=options.hard_limit,
            normalization=options.piece_normalization,
        )
        models |= {language: _restrict(model, options, folder, language) for language in languages}
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
