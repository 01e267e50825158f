"""The names of what a corpus folder holds, on which what writes a folder and what reads it agree."""

from __future__ import annotations

SPLITS = ("train", "valid", "test")

GENERALISATION = "gen"
"""A further split, of which the pairs are of a kind that the others do not have."""

MANIFEST_NAME = "manifest.json"

TEXT = "text"
"""The folder with the text that people read."""

PIECES = "pieces"
"""The folder with the same text in pieces of words, if it is not in :data:`TEXT`."""

DATA_BIN = "data-bin"
"""The folder in fairseq's binary format."""

SUFFIX = "txt"
"""The end of the names of text files for language modelling."""

VOCABULARY_NAME = "vocabulary.txt"
"""The dictionary of a text, next to it, where fairseq does not make it."""

LOWER_BOUND_NAME = "lower_bound.json"
"""The cross-entropy of the distribution from which a corpus was drawn."""

WORD_MARK = "\u2581"
"""What SentencePiece writes for a space."""

BYTE_MARK = "\u0120"
"""What GPT-2's pieces of bytes have for a space."""

PIECE_MODEL_NAME = "spm.model"
"""The SentencePiece model of a text in one language."""

TOKENIZER_NAME = "tokenizer.json"
"""The tokenizer of GPT-2's pieces."""
