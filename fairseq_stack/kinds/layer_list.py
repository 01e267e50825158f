"""Layer lists: the one spelling of a stack of layers in flags, presets and reports.

A list such as ``2xsdpa,nd-3-3-5,2xsdpa`` names the self-attention of each layer, the first layer first. In the layer
``sdpa+nd-3-3-5``, a stack stands beside attention. Stacks that work side by side are spelt in the same way:
``sup-10+nd-2-3-5``. ``nd-3-3-5@35`` has limited memory of 35 steps.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from fairseq_stack.errors import UserError
from fairseq_stack.kinds.kind import BESIDE, WINDOW, Kind, Layer
from fairseq_stack.kinds.register import kinds

MOST_LAYERS = 10_000
"""Building a longer list alone would take minutes."""

_MOST_DIGITS = 9


def parse_layer_list(text: str) -> tuple[Layer, ...]:
    """Read a layer list.

    Args:
        text: the list; spaces around entries are ignored.

    Returns:
        the attention of each layer, the first layer first; at least one.

    Raises:
        UserError: an entry is wrong (the message has its position and an example), or there are more than
            ``MOST_LAYERS`` layers.
    """
    return _parse(text, _LAYERS)


def parse_stacks(text: str) -> tuple[Layer, ...]:
    """Read a list of stacks that work side by side, joined by ``+``.

    Args:
        text: the list; spaces around entries are ignored. ``none`` is the list without stacks.

    Raises:
        UserError: as :func:`parse_layer_list`, or an entry is not a stack.
    """
    return () if isinstance(text, str) and text.strip() == "none" else _parse(text, _STACKS)


def spellings(stacks_only: bool = False) -> str:
    """All kinds, or all that are stacks, as an enumeration for help texts."""
    described = _kinds_of_stacks() if stacks_only else kinds()
    text = f"{_enumeration(described)}; with @D, the stack remembers D steps"
    return text if stacks_only else f"{text}; {_BESIDE}"


class _Syntax(NamedTuple):
    """How lists of one sort are written.

    Attributes:
        name: what such a list is called.
        entries: what it lists.
        separator: what stands between entries.
        kinds: the kinds that entries may have.
        example: such a list.
    """

    name: str
    entries: str
    separator: str
    kinds: Callable[[], Sequence[Kind]]
    example: str

    def error(self, text: str, entry: str, start: int, problem: str) -> UserError:
        shown = f"{_shortened(entry)!r}" if entry else "nothing"
        where = f"{self.name} {_shortened(text)!r}: {problem} at position {start + 1}, got {shown}"
        return UserError(f"{where}; for example '{self.example}'")


_BESIDE = f"'sdpa{BESIDE}nd-3-3-5' is attention with a stack beside it"


def _kinds_of_stacks() -> tuple[Kind, ...]:
    return tuple(kind for kind in kinds() if kind.build is not None and kind.recurrent)


_LAYERS = _Syntax("layer list", "layers", ",", kinds, "2xsdpa,nd-3-3-5,2xsdpa")
_STACKS = _Syntax("stacks", "stacks", "+", _kinds_of_stacks, "sup-10+nd-2-3-5")


def _enumeration(described: Sequence[Kind]) -> str:
    *others, last = map(_spelling, described)
    return f"{', '.join(others)} or {last}"


def _spelling(kind: Kind) -> str:
    return f"'{kind.spelling}{'[@D]' if kind.limited_memory else ''}'"


def _letters(kind: Kind) -> str:
    sizes = (*kind.sizes, *([WINDOW] if kind.limited_memory else []))
    return ", ".join(f"{size.letter} = {size.meaning}" for size in sizes)


def _parse(text: str, syntax: _Syntax) -> tuple[Layer, ...]:
    if not isinstance(text, str):
        raise UserError(f"{syntax.name}: expected text, for example '{syntax.example}', got {text!r}")
    layers: list[Layer] = []
    position = 0
    for entry in text.split(syntax.separator):
        start = position + len(entry) - len(entry.lstrip())
        times, layer = _parse_entry(text, entry.strip(), start, syntax)
        if len(layers) + times > MOST_LAYERS:
            raise UserError(
                f"{syntax.name} {_shortened(text)!r}: expected at most {MOST_LAYERS:,} {syntax.entries}, got "
                f"{len(layers) + times:,} up to position {start + 1}"
            )
        layers.extend([layer] * times)
        position += len(entry) + 1
    return tuple(layers)


def _parse_entry(text: str, entry: str, start: int, syntax: _Syntax) -> tuple[int, Layer]:
    """How many layers an entry stands for, and the layer."""
    if syntax is not _LAYERS or BESIDE not in entry:
        return _parse_part(text, entry, start, syntax, syntax.kinds())
    first, _, second = entry.partition(BESIDE)
    times, layer = _parse_part(text, first.rstrip(), start, syntax, [kind for kind in kinds() if kind.build is None])
    second = second.lstrip()
    number, stack = _parse_part(text, second, start + len(entry) - len(second), syntax, _kinds_of_stacks())
    if number != 1:
        raise syntax.error(text, entry, start, "only one stack can stand beside attention")
    return times, replace(layer, beside=stack)


def _parse_part(text: str, part: str, start: int, syntax: _Syntax, among: Sequence[Kind]) -> tuple[int, Layer]:
    known = {kind.name: kind for kind in among}
    match = re.fullmatch(
        rf"(?:(?P<times>\d+)x)?(?P<kind>{'|'.join(known)})(?P<sizes>(?:-\d+)*)(?:@(?P<window>\d+))?", part
    )
    if match is None:
        raise syntax.error(text, part, start, f"expected {_enumeration(among)}")
    kind = known[match["kind"]]
    if match["window"] is not None and not kind.limited_memory:
        raise syntax.error(text, part, start, f"'{kind.name}' cannot have limited memory ('@D')")
    numbers = [match["times"] or "1", match["window"] or "1", *match["sizes"].split("-")[1:]]
    if any(len(number) > _MOST_DIGITS for number in numbers):
        raise syntax.error(text, part, start, f"expected numbers of at most {_MOST_DIGITS} digits")
    times, window, *sizes = map(int, numbers)
    if len(sizes) != len(kind.sizes):
        meanings = f" ({_letters(kind)})" if kind.sizes else ""
        raise syntax.error(text, part, start, f"expected {_spelling(kind)}{meanings}")
    if min(times, window, *sizes) < 1:
        raise syntax.error(text, part, start, "every number must be at least 1")
    return times, Layer(kind, tuple(sizes), window if match["window"] else None)


def _shortened(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}..."
