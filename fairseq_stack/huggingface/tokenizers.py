"""Tokenizers for transformers whose ids are those of a fairseq dictionary.

Words separated by spaces need nothing but the library ``tokenizers``. Pieces are cut by SentencePiece itself, after the
normalisation of the corpus: some of its models, such as those with unused pieces, have no counterpart in
``tokenizers``, and neither have pieces that the dictionary lacks.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizer, PreTrainedTokenizerFast

from fairseq_stack.companions import MANIFEST
from fairseq_stack.errors import UserError
from fairseq_stack.files import read_lines
from fairseq_stack.hub.text import joined, piece_tokenizer

SPECIAL_SYMBOLS = ("<s>", "<pad>", "</s>", "<unk>")
"""The first symbols of every fairseq dictionary, in its order."""
END = "</s>"
DICTIONARY = "dict.txt"
PIECES = "sentencepiece.model"
_ROLES = {"bos_token": END, "eos_token": END, "pad_token": "<pad>", "unk_token": "<unk>"}
_INPUTS = ["input_ids", "attention_mask"]


def require_plain(symbols: Sequence[str], name: str) -> None:
    """Raise UserError if a dictionary, called ``name``, has other special symbols than usual or a symbol twice."""
    if tuple(symbols[: len(SPECIAL_SYMBOLS)]) != SPECIAL_SYMBOLS:
        expected = " ".join(SPECIAL_SYMBOLS)
        raise UserError(f"{name}: expected a dictionary that begins with {expected}, got {' '.join(symbols[:4])}")
    twice, count = Counter(symbols).most_common(1)[0]
    if count > 1:
        raise UserError(f"{name} has the symbol {twice!r} twice, which no tokenizer of transformers can have")


def word_tokenizer(symbols: Sequence[str], *, begins: bool, **settings: Any) -> PreTrainedTokenizerFast:
    """A tokenizer of words separated by white space.

    It finds special symbols within words as well, so that ``</s>`` may be appended to a text. fairseq has none there.

    Args:
        symbols: of the dictionary, in its order.
        begins: whether ``</s>`` begins a text, as in the input of a language model; otherwise it ends it.
        settings: of transformers, such as ``padding_side``, or ``bos_token`` and ``eos_token`` instead of ``</s>``.
    """
    settings = {"clean_up_tokenization_spaces": False, **_ROLES, **settings}
    end = settings["eos_token"]
    ids = {symbol: index for index, symbol in enumerate(symbols)}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token="<unk>"))
    # Python, and so fairseq, also splits words at these characters.
    tokenizer.normalizer = normalizers.Replace(Regex("[\x1c-\x1f]"), " ")
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{end} $A" if begins else f"$A {end}",
        pair=f"{end} $A $B:1" if begins else f"$A $B:1 {end}:1",
        special_tokens=[(end, ids[end])],
    )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_input_names=_INPUTS, **settings)


class PieceTokenizer(PreTrainedTokenizer):
    """A tokenizer of raw text: it is normalised as the corpus was and cut into pieces by SentencePiece.

    Args:
        dictionary_file: the dictionary, in fairseq's format.
        piece_file: the SentencePiece model.
        manifest_file: of the corpus, if ``fairseq-stack prepare`` made it.
        language: the language of the text, for a translation model; None for a language model.
        begins: whether ``</s>`` begins a text, as in the input of a language model; otherwise it ends it.
        settings: of transformers, such as ``padding_side``.

    Raises:
        UserError: a file cannot be used.
    """

    vocab_files_names = {"dictionary_file": DICTIONARY, "piece_file": PIECES, "manifest_file": MANIFEST}  # noqa: RUF012
    model_input_names = _INPUTS

    def __init__(
        self,
        dictionary_file: str | None,
        piece_file: str | None,
        manifest_file: str | None = None,
        language: str | None = None,
        begins: bool = False,
        **settings: Any,
    ) -> None:
        if dictionary_file is None or piece_file is None:  # transformers has not found them
            raise UserError(f"the tokenizer has no files; expected tokenizer.json, or {DICTIONARY} and {PIECES}")
        self._files = {DICTIONARY: dictionary_file, PIECES: piece_file, MANIFEST: manifest_file}
        self._symbols = [*SPECIAL_SYMBOLS, *(line.rpartition(" ")[0] for line in read_lines(Path(dictionary_file)))]
        self._ids = {symbol: index for index, symbol in enumerate(self._symbols)}
        self._cut = piece_tokenizer(Path(piece_file), Path(manifest_file) if manifest_file else None, language)
        settings = {"clean_up_tokenization_spaces": False, **_ROLES, **settings}
        settings["special_tokens_pattern"] = "bos" if begins else "eos"
        super().__init__(language=language, begins=begins, **settings)

    @property
    def vocab_size(self) -> int:
        """The number of symbols of the dictionary."""
        return len(self._symbols)

    def get_vocab(self) -> dict[str, int]:
        """The index of each symbol."""
        return self._ids | self.added_tokens_encoder

    def _tokenize(self, text: str, **kwargs: Any) -> list[str]:
        return self._cut(text).split()

    def _convert_token_to_id(self, token: str) -> int:
        return self._ids.get(token, self._ids["<unk>"])

    def _convert_id_to_token(self, index: int) -> str:
        return self._symbols[index]

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        """Pieces made into text."""
        return joined(" ".join(tokens))

    def save_vocabulary(self, save_directory: str, filename_prefix: str | None = None) -> tuple[str, ...]:
        """Copy the dictionary, the SentencePiece model and the manifest into a folder."""
        prefix = f"{filename_prefix}-" if filename_prefix else ""
        copies = {file: os.path.join(save_directory, prefix + name) for name, file in self._files.items() if file}
        for file, copy in copies.items():
            if os.path.abspath(file) != os.path.abspath(copy):
                shutil.copyfile(file, copy)
        return tuple(copies.values())
