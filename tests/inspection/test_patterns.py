"""The patterns of DuSell and Chiang (2023): what their print_marked_reversal.py prints for 2 and 3 symbols."""

from __future__ import annotations

import pytest

from fairseq_stack.inspection.patterns import PATTERNS, Pattern, marked_reversal


@pytest.mark.parametrize(
    ("pattern", "w"),
    [("rainbow", "0120120"), ("barcode", "0112220"), ("increasing-barcode", "0120011")],
)
def test_three_symbols(pattern: Pattern, w: str) -> None:
    assert marked_reversal(pattern, "012", len(w)).split() == [*w, "#", *w[::-1]]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_any_length(pattern: Pattern) -> None:
    assert [len(marked_reversal(pattern, ["a"], length).split()) for length in (0, 1, 9)] == [1, 3, 19]
    with pytest.raises(ValueError, match="at least one symbol"):
        marked_reversal(pattern, [], 3)
