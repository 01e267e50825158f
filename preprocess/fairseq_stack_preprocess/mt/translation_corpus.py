"""The corpus ``mt``: parallel text for translation, filtered, sampled, and cut into BPE pieces.

The steps, in the order of DuSell & Chiang (2024), Appendix G.1: every line is normalised
(NFKC, if asked for also Moses' punctuation); pairs are dropped (:class:`.pair_filters.PairFilter`); the
training pairs are sampled; a BPE model is trained on both sides of the training text, or one on each; each
side is cut into the pieces that are frequent on that side of the training text; fairseq-preprocess makes the
binary files. The dictionary has all pieces that text can be cut into.

Files: ``text/{train,valid,test}.{source,target}``, the text before BPE, of which ``text/test.<target>`` is the
reference for sacrebleu; ``pieces/`` with the same names, and ``vocabulary.txt``, the dictionary (or
``vocabulary.<language>.txt``); ``sentencepiece.<language>.model``, which cuts text of
that language, restricted as above; ``sentencepiece.<language>.vocabulary``, how often each piece occurs in the
training text when nothing is restricted, unless the model is another corpus's; ``data-bin/``.
"""

from __future__ import annotations

import unicodedata
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..errors import PrepareError
from ..layout import DATA_BIN, PIECES, SPLITS
from ..progress import say
from ..text.binarise import binarise_translation
from ..text.manifest import Manifest, sha256_of
from ..text.output import corpus_folder
from ..text.sentence_pieces import require_model_format
from .parallel_text import PairedFiles, find_files
from .pieces import dictionaries, write_pieces
from .split_text import write_text
from .translation_options import CORPUS, Options

__all__ = ["CORPUS", "Options", "prepare"]


def prepare(options: Options, folder: Path, *, force: bool = False, workers: int = 1) -> None:
    """Write the corpus into ``folder``, complete or not at all.

    Args:
        options: its options.
        folder: where it is written.
        force: whether an older corpus there is replaced.
        workers: processes that fairseq-preprocess uses.

    Raises:
        PrepareError: the text is not as it should be (see :mod:`.parallel_text`), all of a split is dropped,
            SentencePiece or fairseq fails, or see :func:`.output.corpus_folder`.
    """
    files = find_splits(options)
    if options.piece_threshold and options.like is None:
        require_model_format()
    with corpus_folder(folder, binarise=options.binarise, force=force) as new:
        inputs = _describe_inputs(files, options)
        reports = {split: write_text(split, files[split], options, new) for split in SPLITS}
        vocabulary = write_pieces(options, new, reports)
        if options.binarise:
            say(f"{CORPUS}: fairseq-preprocess")
            known = list(dictionaries(options, new).values())
            binarise_translation(new, *options.languages(), text=PIECES, dictionaries=known, workers=workers)
            vocabulary |= {
                f"{language}_dictionary": _dictionary_size(new, language) for language in options.languages()
            }
        Manifest(
            corpus=CORPUS,
            options=_without_folders(options),
            splits={split: report.counts() for split, report in reports.items()},
            dropped={split: report.dropped for split, report in reports.items()},
            inputs=inputs,
            packages=("sentencepiece", *(("sacremoses",) if options.moses else ())),
            more={"unicode": unicodedata.unidata_version, "vocabulary": vocabulary},
        ).write(new)


def languages_for_fairseq(options: Options) -> str | None:
    """The options that fairseq's commands need for these languages; None if they infer them from the file names.

    They take the languages from a name such as ``train.de-en.de.idx`` only if there is one hyphen.
    """
    if "-" in options.source + options.target:
        return f"--source-lang {options.source} --target-lang {options.target}"
    return None


def find_splits(options: Options) -> dict[str, list[PairedFiles]]:
    """The files of each split.

    Raises:
        PrepareError: a prefix has no files, or only one side.
    """
    files = {}
    for split, prefixes in options.prefixes().items():
        try:
            files[split] = [find_files(prefix, *options.languages()) for prefix in prefixes]
        except PrepareError as error:
            raise PrepareError(f"--{split}: {error}") from error
    return files


def _describe_inputs(files: dict[str, list[PairedFiles]], options: Options) -> dict[str, str]:
    """The sha256 of each input; the number of a prefix is in its name only where there are several."""
    described: dict[str, str] = {}
    if options.like is not None:
        others = [*options.like.glob("sentencepiece.*.model"), *options.like.glob(f"{PIECES}/vocabulary*.txt")]
        described |= {f"like/{path.name}": sha256_of(path) for path in sorted(others)}
    for split, corpora in files.items():
        for number, corpus in enumerate(corpora, start=1):
            place = split if len(corpora) == 1 else f"{split}/{number}"
            described |= {f"{place}/{path.name}": sha256_of(path) for path in (corpus.source, corpus.target)}
    return described


def _without_folders(options: Options) -> dict[str, Any]:
    """The options with the names of prefixes only: the manifest does not say where on this machine they are."""
    names = {"train": [path.name for path in options.train], "valid": options.valid.name, "test": options.test.name}
    return {**asdict(options), **names, "like": options.like.name if options.like is not None else None}


def _dictionary_size(folder: Path, language: str) -> int:
    """The number of symbols of fairseq's dictionary, its four special ones included."""
    with open(folder / DATA_BIN / f"dict.{language}.txt", encoding="utf-8", newline="\n") as file:
        return sum(1 for _ in file) + 4
