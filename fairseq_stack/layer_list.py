"""Layer lists: the one spelling of a stack of layers in flags, presets and reports.

A list such as ``2xsdpa,nd-3-3-5,2xsdpa`` names the self-attention of each layer, the first layer first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from fairseq_stack.errors import UserError

GRAMMAR = (
    "a layer list is comma-separated, one entry a layer: 'sdpa', 'sup-M' or 'nd-Q-S-M' "
    "(M = size of the stack vectors, Q = states, S = stack symbols; all at least 1), "
    "each optionally repeated K times as 'Kx...', for example '2xsdpa,nd-3-3-5,2xsdpa'"
)

MOST_LAYERS = 10_000
"""A longer list would take minutes only to be built."""

_MOST_DIGITS = 9

_ENTRY = re.compile(r"(?:(?P<times>\d+)x)?(?P<kind>sdpa|sup|nd)(?P<sizes>(?:-\d+)*)")


@dataclass(frozen=True)
class ScaledDotProduct:
    """Multi-head scaled dot-product attention (SDPA)."""

    def __str__(self) -> str:
        return "sdpa"


@dataclass(frozen=True)
class Superposition:
    """Superposition stack attention with stack vectors of size m."""

    size: int

    def __str__(self) -> str:
        return f"sup-{self.size}"


@dataclass(frozen=True)
class Nondeterministic:
    """Nondeterministic stack attention with |Q| states, |Gamma| stack symbols and stack vectors of size m."""

    num_states: int
    num_symbols: int
    size: int

    def __str__(self) -> str:
        return f"nd-{self.num_states}-{self.num_symbols}-{self.size}"


LayerKind = ScaledDotProduct | Superposition | Nondeterministic

_KINDS: dict[str, tuple[type[ScaledDotProduct | Superposition | Nondeterministic], int]] = {
    "sdpa": (ScaledDotProduct, 0),
    "sup": (Superposition, 1),
    "nd": (Nondeterministic, 3),
}


def parse_layer_list(text: str) -> tuple[LayerKind, ...]:
    """Read a layer list.

    Args:
        text: the list; blanks around entries are ignored.

    Returns:
        the attention of each layer, the first layer first; at least one.

    Raises:
        UserError: with the position of the first entry that is wrong, and the grammar; or there are more than
            ``MOST_LAYERS`` layers.
    """
    layers: list[LayerKind] = []
    position = 0
    for entry in text.split(","):
        start = position + len(entry) - len(entry.lstrip())
        times, kind = _parse_entry(text, entry.strip(), start)
        if len(layers) + times > MOST_LAYERS:
            raise UserError(
                f"layer list {_shortened(text)!r}: expected at most {MOST_LAYERS:,} layers, got "
                f"{len(layers) + times:,} up to position {start + 1}"
            )
        layers.extend([kind] * times)
        position += len(entry) + 1
    return tuple(layers)


def format_layer_list(layers: Sequence[LayerKind]) -> str:
    """Spell layers as a list that :func:`parse_layer_list` reads, repetitions contracted."""
    entries: list[tuple[int, LayerKind]] = []
    for layer in layers:
        if entries and entries[-1][1] == layer:
            entries[-1] = (entries[-1][0] + 1, layer)
        else:
            entries.append((1, layer))
    return ",".join(str(layer) if times == 1 else f"{times}x{layer}" for times, layer in entries)


def _parse_entry(text: str, entry: str, start: int) -> tuple[int, LayerKind]:
    match = _ENTRY.fullmatch(entry)
    if match is None:
        raise _error(text, entry, start, "expected 'sdpa', 'sup-M' or 'nd-Q-S-M'")
    make, num_sizes = _KINDS[match["kind"]]
    numbers = [match["times"] or "1", *match["sizes"].split("-")[1:]]
    if any(len(number) > _MOST_DIGITS for number in numbers):
        raise _error(text, entry, start, f"expected numbers of at most {_MOST_DIGITS} digits")
    times, *sizes = map(int, numbers)
    if len(sizes) != num_sizes:
        expected = f"{num_sizes} number{'' if num_sizes == 1 else 's'}"
        raise _error(text, entry, start, f"'{match['kind']}' takes {expected}, not {len(sizes)}")
    if times < 1 or any(size < 1 for size in sizes):
        raise _error(text, entry, start, "every number must be at least 1")
    return times, make(*sizes)


def _shortened(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}..."


def _error(text: str, entry: str, start: int, problem: str) -> UserError:
    found = f"{_shortened(entry)!r}" if entry else "nothing"
    return UserError(f"layer list {_shortened(text)!r}: {problem} at position {start + 1}, got {found}; {GRAMMAR}")
