"""Hostile files for fairseq-stack prepare: one line says what is wrong with which, or the corpus is right."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.commands.running import Server
from tests.hostile.cases import Case, check, parametrize
from tests.hostile.preparing import (
    CFL,
    CFL_SIZES,
    GRAMMAR,
    MT,
    PAIRS,
    TREE,
    TREES,
    grammar,
)


def broken_file_cases() -> Iterator[Case]:
    """Compressed files that are damaged, lines of megabytes, and brackets without end."""
    command = f"{CFL} out --grammar g.gz {CFL_SIZES}"
    message = "the gzip file is damaged (Not a gzipped file"
    yield Case("no gzip", command, message, files={"g.gz": b"S -> 'a'\n"}, quick=True)
    mark = b"\xef\xbb\xbf"
    yield Case("grammar with a mark", f"{GRAMMAR}", prints="text:", files=grammar(mark + b"S -> 'a' S | 'a'\n"))
    yield Case("grammar of one line of 20 MB", GRAMMAR, "g, line 1: longer than", files=grammar("x" * 20_000_000))
    yield Case("trees of one line of 10 MB", TREES, prints="text:", files={"t": TREE.strip() * 230_000 + "\n"})
    yield Case(
        "mt of one line of 10 MB",
        MT,
        "",
        prints="text:",
        files={"c.de": "a b " * 2_600_000 + "\nx y\n", "c.en": "a b\nx y\n"},
    )
    yield Case(
        "mt sides",
        MT,
        "c.en ends after line 2, but c.de has a line 3",
        files={**PAIRS, "c.de": "a\nb\nc\n"},
        quick=True,
    )
    yield Case("mt mark of pieces", f"{MT}", prints="text:", files={"c.de": "a ▁ b\nc\n", "c.en": "a <s> b\nc </s>\n"})

    deep = "(X " * 100_000 + "(X a)" + ")" * 100_000
    yield Case("100,000 brackets", TREES, prints="text:", files={"t": f"{deep}\n"})
    opened, message = {"t": "(S " * 100_000 + "\n"}, "t, line 1: the tree that begins here is not closed"
    yield Case("100,000 open", TREES, message, files=opened, quick=True)


def grammar_cases() -> Iterator[Case]:
    """Grammars that are cyclic, useless, ambiguous or long, or have weights that cannot be."""
    chain = "".join(f"N{i} -> N{i + 1} | 'a' N{i + 1}\n" for i in range(1000)) + "N1000 -> 'a'\n"
    for name, text, message in (
        ("unary chain", chain, "g: the unary rules (X -> Y) form chains that stand for more than 200,000"),
        ("cycle for ever", "S -> T\nT -> S\n", "g: no string can be derived from S, except"),
        ("critical", "S -> S S | ''\n", "g: "),
        ("weight 1e400", "S -> 'a' [1e400] | 'b'\n", "g, line 1: a weight must be"),
        ("very long rule", "S -> " + 20_000 * "'a' " + "\n", "g has no string with a length from 2 to 6"),
    ):
        yield Case(f"grammar {name}", GRAMMAR, message, files=grammar(text), quick=name == "critical")
    for name, text in (
        ("cyclic", "S -> S [1e-30] | T | 'a' S\nT -> S | 'a'\n"),
        ("ambiguous", "S -> S S | 'a' | S S S | ''\n"),
        ("unlikely", "S -> 'a' [1e-100] | 'a' S 'b' [1e100] | 'a' S\n"),
        ("unicode", "Größe -> '→' Größe | '😀'\n"),
    ):
        yield Case(f"grammar {name}", GRAMMAR, prints="text:", files=grammar(text))


@parametrize([*broken_file_cases(), *grammar_cases()])
def test_command(case: Case, server: Server, corpora: dict[str, str], folder: Path) -> None:
    check(case, server, corpora, folder)
