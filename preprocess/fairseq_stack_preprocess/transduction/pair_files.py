"""The files that every task has.

- ``text/SPLIT.input``, ``text/SPLIT.target``: one pair per line, symbols separated by spaces; both have the same
number;
- ``text/vocabulary.txt``: the dictionary of both sides of ``data-bin``: the alphabet in its order;
- ``task.json``: the task, its alphabet in the order of the one-hot vectors, the blank, the scored symbols, and for each
  split the number of symbols of the longest input that could be in it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ..layout import TEXT
from ..text.output import write_alphabet, write_columns, write_lines
from .pairs import Alphabet, Pair

SOURCE, TARGET = "input", "target"
TASK_NAME = "task.json"


def write_pairs(folder: Path, split: str, pairs: Iterable[Pair], alphabet: Alphabet) -> dict[str, Any]:
    """Write the text of a split; return its counts, in which symbols do not count what fairseq appends."""
    scored, scored_symbols, by_length = frozenset(alphabet.scored), 0, Counter[int]()

    def rows() -> Iterator[tuple[str, str]]:
        nonlocal scored_symbols
        for pair in pairs:
            by_length[len(pair.input)] += 1
            scored_symbols += sum(symbol in scored for symbol in pair.target)
            yield " ".join(pair.input), " ".join(pair.target)

    write_columns([folder / TEXT / f"{split}.{side}" for side in (SOURCE, TARGET)], rows())
    return {
        "pairs": by_length.total(),
        "symbols": sum(length * number for length, number in by_length.items()),
        "scored_symbols": scored_symbols,
        "pairs_by_length": {str(length): by_length[length] for length in sorted(by_length)},
    }


def write_task(folder: Path, task: str, alphabet: Alphabet, longest: Mapping[str, int]) -> Path:
    """Write ``task.json`` and ``vocabulary.txt``, whose path is returned.

    ``longest`` is the maximum length of an input in each split.
    """
    content = {
        "task": task,
        "alphabet": alphabet.symbols,
        "blank": alphabet.blank,
        "scored": alphabet.scored,
        "longest": longest,
    }
    write_lines(folder / TASK_NAME, [json.dumps(content, indent=2, ensure_ascii=False)])
    return write_alphabet(folder, alphabet.symbols)
