from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairseq_stack.layer_list import (
    LayerKind,
    Nondeterministic,
    ScaledDotProduct,
    Superposition,
    format_layer_list,
    parse_layer_list,
)

sizes = st.integers(1, 999)
kinds = st.one_of(
    st.builds(ScaledDotProduct),
    st.builds(Superposition, sizes),
    st.builds(Nondeterministic, sizes, sizes, sizes),
)


def test_reads_the_design_example() -> None:
    assert parse_layer_list("2xsdpa,nd-3-3-5,2xsdpa") == (
        ScaledDotProduct(),
        ScaledDotProduct(),
        Nondeterministic(3, 3, 5),
        ScaledDotProduct(),
        ScaledDotProduct(),
    )


def test_ignores_blanks_around_entries() -> None:
    assert parse_layer_list(" sdpa , sup-4 ") == (ScaledDotProduct(), Superposition(4))


@given(st.lists(kinds, min_size=1, max_size=8))
def test_reads_what_it_writes(layers: list[LayerKind]) -> None:
    assert parse_layer_list(format_layer_list(layers)) == tuple(layers)


def test_contracts_repetitions() -> None:
    assert format_layer_list(parse_layer_list("sdpa,1xsdpa,sup-3,2xsup-3")) == "2xsdpa,3xsup-3"


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("", 1),
        ("sdpa,", 6),
        (",sdpa", 1),
        ("sdpa, sdpaa", 7),
        ("2xsdpa,np-3", 8),
        ("sup", 1),
        ("sup-3-3", 1),
        ("nd-3-3", 1),
        ("sdpa-3", 1),
        ("sup-0", 1),
        ("sup--3", 1),
        ("nd-3-0-5", 1),
        ("0xsdpa", 1),
        ("-1xsdpa", 1),
        ("sdpa;sdpa", 1),
        ("SDPA", 1),
        ("2 x sdpa", 1),
    ],
)
def test_errors_name_the_position_and_the_grammar(text: str, position: int) -> None:
    with pytest.raises(ValueError, match=rf"at position {position}\b.*'2xsdpa,nd-3-3-5,2xsdpa'"):
        parse_layer_list(text)


@given(st.text(alphabet="sdpaunx-0123456789, ", max_size=20))
def test_any_text_is_a_list_or_a_clear_error(text: str) -> None:
    try:
        layers = parse_layer_list(text)
    except ValueError as error:
        assert "at position" in str(error)
    else:
        assert len(layers) >= 1
