"""Words in the tokens of a corpus that exists, for text that its model is to read."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import PrepareError
from ..layout import DATA_BIN, MANIFEST_NAME, PIECE_MODEL_NAME, TOKENIZER_NAME
from ..text.byte_pieces import read_tokenizer
from ..text.fairseq_words import check_word
from ..text.sentence_pieces import read_model
from ..text.streams import read_lines
from .treebank_pieces import GPT2Cutter, SentencePieceCutter
from .word_classes import word_or_class

DICTIONARY = f"{DATA_BIN}/dict.txt"

Cut = Callable[[Sequence[str], str], list[list[str]]]
"""Returns the tokens of each word of a text, from its beginning; PrepareError, which names a place, if a word cannot be
in the corpus. The tokens of a word depend on no other word; those of the first word may differ."""


@dataclass(frozen=True)
class Tokens:
    """The tokens of a corpus.

    Attributes:
        cut: cuts words into them.
        dictionary: fairseq's dictionary.
        symbols: the tokens in the dictionary.
        files: what words are cut by, which is to lie next to other text in these tokens; none if tokens are words.
        packages: the distributions that cut.
    """

    cut: Cut
    dictionary: Path
    symbols: frozenset[str]
    files: tuple[Path, ...] = ()
    packages: tuple[str, ...] = ()


def tokens_of(folder: Path) -> Tokens:
    """The tokens of the corpus in a folder: pieces of words, words with classes for rare ones, or words.

    Args:
        folder: the folder of the corpus, or its ``data-bin``.

    Raises:
        PrepareError: the folder holds no dictionary, or a file cannot be used.
    """
    root = folder.absolute().parent if folder.name == DATA_BIN else folder
    path = root / DICTIONARY
    if not path.is_file():
        raise PrepareError(f"{folder} has no {DICTIONARY}; expected the corpus that the model was trained on")
    symbols = frozenset(line.rpartition(" ")[0] for line in read_lines(path, keep_separators=True))
    model, tokenizer = root / PIECE_MODEL_NAME, root / TOKENIZER_NAME
    if model.is_file():
        cutter = SentencePieceCutter(read_model(model))
        return Tokens(cutter.cut, path, symbols, (model,), ("sentencepiece",))
    if tokenizer.is_file():
        of_gpt2 = GPT2Cutter(read_tokenizer(root, "--like"))
        return Tokens(of_gpt2.cut, path, symbols, (tokenizer,), ("tokenizers",))
    return Tokens(_words(symbols, has_classes(root / MANIFEST_NAME)), path, symbols)


def _words(symbols: frozenset[str], has_classes: bool) -> Cut:
    def cut(words: Sequence[str], place: str) -> list[list[str]]:
        for word in words:
            check_word(word, place)
        return [[word_or_class(word, symbols) if has_classes else word] for word in words]

    return cut


def has_classes(manifest: Path) -> bool:
    """Whether rare words of a corpus are classes, by its manifest; PrepareError if that is damaged."""
    if not manifest.is_file():
        return False
    try:
        content = json.loads(manifest.read_text(encoding="utf-8"))
    except ValueError as error:
        raise PrepareError(f"{manifest} is not a file of fairseq-stack prepare: {error}") from error
    corpus, options = (content.get("corpus"), content.get("options")) if isinstance(content, dict) else (None, None)
    return corpus == "ptb" or (
        corpus == "treebank" and isinstance(options, dict) and options.get("rare_words") != "keep"
    )
