from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairseq_stack.errors import UserError
from fairseq_stack.kinds import (
    NONDETERMINISTIC,
    SDPA,
    SUPERPOSITION,
    Kind,
    Layer,
    kinds,
    parse_layer_list,
    parse_stacks,
)


@st.composite
def layers(draw: st.DrawFn) -> Layer:
    kind: Kind = draw(st.sampled_from(kinds()))
    sizes = tuple(draw(st.integers(1, 999)) for _ in kind.sizes)
    beside = draw(st.none() | st.just(Layer(NONDETERMINISTIC, (3, 3, 5), 9))) if kind.build is None else None
    return Layer(kind, sizes, draw(st.none() | st.integers(1, 999)) if kind.limited_memory else None, beside)


def test_reads_repetitions_blanks_and_limited_memory() -> None:
    sdpa, nondeterministic = Layer(SDPA), Layer(NONDETERMINISTIC, (3, 3, 5))
    assert parse_layer_list(" 2xsdpa, nd-3-3-5 ,2xsdpa") == (sdpa, sdpa, nondeterministic, sdpa, sdpa)
    limited = Layer(NONDETERMINISTIC, (3, 3, 5), window=35)
    assert str(limited) == "nd-3-3-5@35"
    assert parse_layer_list("2xnd-3-3-5@35,sdpa") == (limited, limited, sdpa)
    beside = Layer(SDPA, beside=limited)
    assert parse_layer_list("sdpa,2xsdpa + nd-3-3-5@35") == (sdpa, beside, beside)


@given(st.lists(layers(), min_size=1, max_size=8))
def test_reads_what_layers_are_called(listed: list[Layer]) -> None:
    assert parse_layer_list(",".join(map(str, listed))) == tuple(listed)


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("", 1),
        ("sdpa,", 6),
        (",sdpa", 1),
        ("sdpa, sdpaa", 7),
        ("sdpa + np-3", 8),
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
        ("sdpa,nd-3-3-5@", 6),
        ("nd-3-3-5@0", 1),
        ("nd-3-3-5@-1", 1),
        ("nd-3-3-5@4@4", 1),
        ("nd@4-3-3-5", 1),
        ("nd-3-3-5@1234567890", 1),
        ("sdpa,sup-3+sdpa", 6),
        ("sdpa,sdpa+sdpa", 11),
        ("sdpa+sup-3+sup-3", 6),
        ("sdpa+2xsup-3", 1),
    ],
)
def test_errors_name_the_position(text: str, position: int) -> None:
    with pytest.raises(ValueError, match=rf"at position {position}\b.*'2xsdpa,nd-3-3-5,2xsdpa'"):
        parse_layer_list(text)


@pytest.mark.parametrize(("name", "entry"), [("sdpa", "sdpa@4"), ("sup", "2xsup-3@4"), ("strat", "strat-3@4")])
def test_kinds_that_cannot_have_limited_memory(name: str, entry: str) -> None:
    message = f": '{name}' cannot have limited memory ('@D') at position 6, got '{entry}'; for example"
    with pytest.raises(UserError, match=re.escape(message)):
        parse_layer_list(f"sdpa,{entry}")


def test_reads_stacks_side_by_side() -> None:
    superposition = Layer(SUPERPOSITION, (3,))
    assert parse_stacks("2xsup-3 + nd-3-3-5") == (superposition, superposition, Layer(NONDETERMINISTIC, (3, 3, 5)))
    assert parse_stacks("none") == ()
    assert parse_stacks("nd-3-3-5@35+sup-3") == (Layer(NONDETERMINISTIC, (3, 3, 5), window=35), superposition)


@given(
    st.lists(
        layers().filter(lambda layer: layer.kind.build is not None and layer.kind.recurrent), min_size=1, max_size=8
    )
)
def test_reads_what_stacks_are_called(listed: list[Layer]) -> None:
    assert parse_stacks("+".join(map(str, listed))) == tuple(listed)


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("", 1),
        ("sdpa", 1),
        ("pushdown", 1),
        ("sup-3+", 7),
        ("sup-3, sup-3", 1),
        ("sup-3+none", 7),
        ("sup-3+ nd-3", 8),
        ("0xsup-3", 1),
    ],
)
def test_errors_of_stacks_name_the_position(text: str, position: int) -> None:
    with pytest.raises(UserError, match=rf"^stacks '.*': .* at position {position}, .*for example 'sup-10\+nd-2-3-5'"):
        parse_stacks(text)


def test_more_stacks_than_can_be_built() -> None:
    with pytest.raises(UserError, match="expected at most 10,000 stacks, got 10,001 up to position 7"):
        parse_stacks("sup-3+10000xsup-3")


@given(st.text(alphabet="sdpauntrx@-0123456789, ", max_size=20))
def test_any_text_is_a_list_or_a_clear_error(text: str) -> None:
    try:
        listed = parse_layer_list(text)
    except ValueError as error:
        assert "at position" in str(error)
    else:
        assert len(listed) >= 1
