"""Small random GPT-2s in folders, as Hugging Face transformers writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.data import Dictionary

from tests.models.building import dictionary_of

PIECES = [f"{mark}{letter}" for mark in ("", "Ġ") for letter in "abcdefgh"] + ["<|endoftext|>"]
"""A vocabulary. As in GPT-2, the end of text is the last piece."""


def save_gpt2(folder: Path, **settings: Any) -> Any:
    """A GPT-2 with random biases and layer norms as well, in evaluation mode, in float32; it is saved in a folder.

    It has the vocabulary of the folder, or ``PIECES`` if there is none.
    """
    transformers = pytest.importorskip("transformers", reason="GPT-2 is computed by transformers")
    vocabulary = folder / "vocab.json"
    if not vocabulary.is_file():
        folder.mkdir(exist_ok=True)
        vocabulary.write_text(json.dumps({piece: row for row, piece in enumerate(PIECES)}), encoding="utf-8")
    rows = json.loads(vocabulary.read_text(encoding="utf-8"))
    ends = {"bos_token_id": rows["<|endoftext|>"], "eos_token_id": rows["<|endoftext|>"]}
    sizes = {"n_embd": 12, "n_layer": 3, "n_head": 3, "n_positions": 11, "vocab_size": len(rows)}
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**{**sizes, **ends, **settings})).eval()
    for parameter in model.parameters():
        parameter.data.add_(torch.randn_like(parameter), alpha=0.3)
    model.save_pretrained(folder)
    return model


def save_tokenizer(folder: Path, text: str, num_merges: int = 40) -> None:
    """A tokenizer of bytes that is trained on a text, as ``tokenizer.json``, ``vocab.json`` and ``merges.txt``."""
    tokenizers = pytest.importorskip("tokenizers", reason="GPT-2's pieces are cut by tokenizers")
    tokenizer = tokenizers.ByteLevelBPETokenizer()
    size = 256 + 1 + num_merges
    tokenizer.train_from_iterator([text], vocab_size=size, special_tokens=["<|endoftext|>"], show_progress=False)
    folder.mkdir(exist_ok=True)
    tokenizer.save_model(str(folder))
    tokenizer.save(str(folder / "tokenizer.json"))


def some_pieces() -> Dictionary:
    """A dictionary of some of the pieces, in another order."""
    return dictionary_of(*PIECES[-2::-2])


def rows_of(dictionary: Dictionary) -> list[int]:
    """The row of each symbol of the dictionary from ``</s>`` on, but <unk>, in GPT-2's table."""
    return [PIECES.index("<|endoftext|>"), *(PIECES.index(symbol) for symbol in dictionary.symbols[4:])]
