"""Layer lists: the one spelling of a stack of layers in flags, presets and reports.

A list such as ``2xsdpa,nd-3-3-5,2xsdpa`` names the self-attention of each layer, the first layer first.
"""

from __future__ import annotations

import re

from fairseq_stack.errors import UserError
from fairseq_stack.kinds.kind import Layer
from fairseq_stack.kinds.register import kinds

MOST_LAYERS = 10_000
"""Building a longer list alone would take minutes."""

_MOST_DIGITS = 9


def parse_layer_list(text: str) -> tuple[Layer, ...]:
    """Read a layer list.

    Args:
        text: the list; blanks around entries are ignored.

    Returns:
        the attention of each layer, the first layer first; at least one.

    Raises:
        UserError: an entry is wrong (the message has its position and the grammar), or there are more than
            ``MOST_LAYERS`` layers.
    """
    layers: list[Layer] = []
    position = 0
    for entry in text.split(","):
        start = position + len(entry) - len(entry.lstrip())
        times, layer = _parse_entry(text, entry.strip(), start)
        if len(layers) + times > MOST_LAYERS:
            raise UserError(
                f"layer list {_shortened(text)!r}: expected at most {MOST_LAYERS:,} layers, got "
                f"{len(layers) + times:,} up to position {start + 1}"
            )
        layers.extend([layer] * times)
        position += len(entry) + 1
    return tuple(layers)


def grammar() -> str:
    """How to write a layer list, in one line."""
    meanings = {size.letter: size.meaning for kind in kinds() for size in kind.sizes}
    letters = ", ".join(f"{letter} = {meaning}" for letter, meaning in meanings.items())
    return (
        f"a layer list is comma-separated, one entry a layer: {spellings()} ({letters}; all at least 1), each "
        "optionally repeated K times as 'Kx...', for example '2xsdpa,nd-3-3-5,2xsdpa'"
    )


def spellings() -> str:
    """All kinds, as an enumeration."""
    *others, last = (f"'{kind.spelling}'" for kind in kinds())
    return f"{', '.join(others)} or {last}"


def _parse_entry(text: str, entry: str, start: int) -> tuple[int, Layer]:
    known = {kind.name: kind for kind in kinds()}
    match = re.fullmatch(rf"(?:(?P<times>\d+)x)?(?P<kind>{'|'.join(known)})(?P<sizes>(?:-\d+)*)", entry)
    if match is None:
        raise _error(text, entry, start, f"expected {spellings()}")
    kind = known[match["kind"]]
    numbers = [match["times"] or "1", *match["sizes"].split("-")[1:]]
    if any(len(number) > _MOST_DIGITS for number in numbers):
        raise _error(text, entry, start, f"expected numbers of at most {_MOST_DIGITS} digits")
    times, *sizes = map(int, numbers)
    if len(sizes) != len(kind.sizes):
        expected = f"{len(kind.sizes)} number{'' if len(kind.sizes) == 1 else 's'}"
        raise _error(text, entry, start, f"'{kind.name}' takes {expected}, not {len(sizes)}")
    if times < 1 or any(size < 1 for size in sizes):
        raise _error(text, entry, start, "every number must be at least 1")
    return times, Layer(kind, tuple(sizes))


def _shortened(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}..."


def _error(text: str, entry: str, start: int, problem: str) -> UserError:
    found = f"{_shortened(entry)!r}" if entry else "nothing"
    return UserError(f"layer list {_shortened(text)!r}: {problem} at position {start + 1}, got {found}; {grammar()}")
