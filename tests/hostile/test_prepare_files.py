"""Hostile files for fairseq-stack prepare: one line says what is wrong with which, or the corpus is right."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.commands.running import Server
from tests.hostile.cases import Case, check, parametrize
from tests.hostile.preparing import (
    CFL,
    CFL_SIZES,
    GRAMMAR,
    MIKOLOV,
    MIKOLOV_FILES,
    MT,
    PAIRS,
    PTB,
    TREE,
    TREE_FILES,
    TREES,
    grammar,
)


def broken_file_cases() -> Iterator[Case]:
    """Files of every kind, as grammar, side of parallel text, trees and Mikolov's text."""
    squeezed = gzip.compress(b"S -> 'a' S | 'a'\n" * 1000, mtime=0)
    kinds: dict[str, tuple[str | bytes, str]] = {
        "empty": ("", "{} is empty: expected text in line 1"),
        "binary": (bytes(range(1, 256)) * 10, "{}, line "),
        "nul": ("a\0b\n", "{}, line 1: a NUL character"),
        "utf-16": ("S -> 'a'\n".encode("utf-16"), "{}, line 1: a NUL character"),
        "latin-1": ("ä\n".encode("latin-1"), "{}, line 1: not UTF-8: "),
        "cr-lf": ("a\r\nb\r\n", "{}, line 1: ends in CR LF"),
        "cr": ("a\rb\n", "{}, line 1: a carriage return within the line"),
        "u2028": ("a\u2028b\n", "{}, line 1: U+2028"),
        "surrogate": (b"\xed\xa0\x80\n", "{}, line 1: not UTF-8: "),
    }
    commands: dict[str, tuple[str, str, dict[str, str]]] = {
        "grammar": (GRAMMAR, "g", {}),
        "mt": (MT, "c.en", PAIRS),
        "trees": (TREES, "t", TREE_FILES),
        "mikolov": (MIKOLOV, "raw/ptb.test.txt", MIKOLOV_FILES),
    }
    for kind, (content, message) in kinds.items():
        for name, (command, victim, files) in commands.items():
            yield Case(f"{name} {kind}", command, message.format(victim), files={**files, victim: content})
    for kind, content, message in (
        ("early end", squeezed[: len(squeezed) // 2], "the gzip file ends early"),
        ("no gzip", b"S -> 'a'\n", "the gzip file is damaged (Not a gzipped file"),
        ("rubbish after", gzip.compress(b"S -> 'a'\n") + b"rubbish", "the gzip file is damaged"),
    ):
        yield Case(
            f"gzip {kind}",
            f"{CFL} out --grammar g.gz {CFL_SIZES}",
            message,
            files={"g.gz": content},
            quick=kind == "no gzip",
        )
    yield Case(
        "gzip empty", f"{CFL} out --grammar g.gz {CFL_SIZES}", "g.gz is empty: expected text", files={"g.gz": b""}
    )
    mark = b"\xef\xbb\xbf"
    yield Case("grammar with a mark", f"{GRAMMAR}", prints="text:", files=grammar(mark + b"S -> 'a' S | 'a'\n"))
    yield Case("grammar a mark only", f"{GRAMMAR}", "g is empty: expected text in line 1", files=grammar(mark))
    yield Case("grammar missing", GRAMMAR, "--grammar g: No such file or directory")
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
    yield Case(
        "mt blank lines",
        MT,
        "--train: none of the 3 pairs read is left",
        files={"c.de": "\n \n\t\n", "c.en": "a\nb\nc\n"},
    )
    deep = "(X " * 100_000 + "(X a)" + ")" * 100_000
    yield Case("100,000 brackets", TREES, prints="text:", files={"t": f"{deep}\n"})
    for name, text, message in (
        ("open", "(S (NN a)\n", "t, line 1: the tree that begins here is not closed where the file ends"),
        ("100,000 open", "(S " * 100_000 + "\n", "t, line 1: the tree that begins here is not closed"),
        ("closed", "(S (NN a)))\n", "t, line 1: a closing bracket without an opening bracket"),
        ("text", "hello\n", "t, line 1: text outside brackets: 'hello'"),
        ("empty bracket", "(S ())\n", "t, line 1: "),
        ("two words", "(S (NN a b))\n", "t, line 1: two words in one bracket"),
        ("special", "(S (NN </s>))\n", "t, line 1: fairseq reserves the symbol </s>"),
        ("no-break space", "(S (NN a\u00a0b))\n", "t, line 1: U+00A0 at position"),
        ("traces", "(S (-NONE- *))\n", "--train: no sentence is left of 1 trees"),
        ("no tree", "\n\n", "t, line 2: the file holds no tree"),
    ):
        yield Case(f"trees {name}", TREES, message, files={"t": text}, quick=name == "open")
    yield Case(
        "mikolov eos",
        MIKOLOV,
        "raw/ptb.test.txt, line 1: holds <eos>",
        files={**MIKOLOV_FILES, "raw/ptb.test.txt": "a <eos>\n"},
    )
    yield Case(
        "mikolov blank", MIKOLOV, "the file holds no sentence", files={**MIKOLOV_FILES, "raw/ptb.test.txt": "\n"}
    )
    yield Case(
        "mikolov missing",
        MIKOLOV,
        "there is neither ptb.test.txt nor",
        files={"raw/ptb.train.txt": "a\n", "raw/ptb.valid.txt": "a\n"},
    )
    yield Case("ptb no section", PTB, "raw/a.mrg: expected a name such as wsj_0203.mrg", files={"raw/a.mrg": TREE})


def grammar_cases() -> Iterator[Case]:
    """Grammars that are cyclic, useless, ambiguous or long, or have weights that cannot be."""
    chain = "".join(f"N{i} -> N{i + 1} | 'a' N{i + 1}\n" for i in range(1000)) + "N1000 -> 'a'\n"
    for name, text, message in (
        ("unary chain", chain, "g: the unary rules (X -> Y) form chains that stand for more than 200,000"),
        (
            "one nonterminal a thousand times",
            f"S -> {'A ' * 1000}| 'a'\nA -> 'a' | ''\n",
            "g: the unary rules (X -> Y)",
        ),
        ("useless", "S -> S 'a'\n", "g: no string can be derived from S, except perhaps the empty one"),
        ("empty string only", "S -> ''\n", "g: no string can be derived from S, except perhaps the empty one"),
        ("cycle for ever", "S -> T\nT -> S\n", "g: no string can be derived from S, except"),
        ("critical", "S -> S S | ''\n", "g: "),
        ("weight 0", "S -> 'a' [0] | 'b'\n", "g, line 1: a weight must be a number from 1e-100 to 1e+100"),
        ("weight nan", "S -> 'a' [nan] | 'b'\n", "g, line 1: a weight must be"),
        ("weight inf", "S -> 'a' [inf] | 'b'\n", "g, line 1: a weight must be"),
        ("weight 1e400", "S -> 'a' [1e400] | 'b'\n", "g, line 1: a weight must be"),
        ("weight 1e-400", "S -> 'a' [1e-400] | 'b'\n", "g, line 1: a weight must be"),
        ("weight negative", "S -> 'a' [-1] | 'b'\n", "g, line 1: a weight must be"),
        ("weight of words", "S -> 'a' [half]\n", "g, line 1: a weight must be"),
        ("two weights", "S -> 'a' [1] [2]\n", "g, line 1: the weight [1] must be at the end of a right side"),
        ("no rule", "S -> A\n", "g, line 1: A has no rule; a terminal is written 'A'"),
        ("comment only", "# nothing\n", "g: no rule; a rule looks like: S -> 'a' S 'b' [0.5]"),
        ("no arrow", "S 'a'\n", "g, line 1: expected -> after S, got 'a'"),
        ("open quote", "S -> 'a\n", "g, line 1: the quotation mark at column 6 is not closed"),
        ("bar first", "| 'a'\n", "g, line 1: a line that begins with | continues a rule"),
        ("nothing right", "S ->\n", "g, line 1: a right side is missing; the empty string is written ''"),
        ("reserved", "S -> '<unk>'\n", "g, line 1: fairseq reserves the terminal <unk>"),
        ("blank", "S -> 'a b'\n", "g, line 1: a terminal must have no blanks"),
        ("other lengths", "S -> 'a'\n", "g has no string with a length from 2 to 6"),
        ("long rule", "S -> " + 3_000 * "'a' " + "\n", "g has no string with a length from 2 to 6"),
        ("very long rule", "S -> " + 20_000 * "'a' " + "\n", "g has no string with a length from 2 to 6"),
    ):
        yield Case(f"grammar {name}", GRAMMAR, message, files=grammar(text), quick=name in ("weight nan", "long rule"))
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


KINDS: dict[str, tuple[Callable[[Path], object], str]] = {
    "pipe": (os.mkfifo, "is a pipe, expected a file"),
    "device": (lambda path: path.symlink_to("/dev/zero"), "is a device, expected a file"),
    "dangling link": (lambda path: path.symlink_to("nowhere"), "is a link to nowhere, which is missing"),
    "folder": (Path.mkdir, "is a folder, expected a file"),
    "link to itself": (lambda path: path.symlink_to(path.name), "Too many levels of symbolic links"),
}
READERS: dict[str, tuple[str, str, dict[str, str]]] = {
    "grammar": (GRAMMAR, "g", {}),
    "side": (MT, "c.en", {"c.de": "x\n"}),
    "trees": (TREES.replace("--test t", "--test u"), "u", TREE_FILES),
    "mikolov": (
        MIKOLOV,
        "raw/ptb.test.txt",
        {name: text for name, text in MIKOLOV_FILES.items() if "test" not in name},
    ),
    "model": (f"{TREES} --piece-model m", "m", TREE_FILES),
}


@pytest.mark.hostile
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reader", READERS)
def test_what_is_not_a_file(reader: str, kind: str, server: Server, corpora: dict[str, str], folder: Path) -> None:
    command, name, files = READERS[reader]
    make, message = KINDS[kind]
    (folder / name).parent.mkdir(exist_ok=True)
    make(folder / name)
    if (reader, kind) == ("trees", "folder"):
        message = "--test u: the folder holds no .mrg file"
    check(Case("", command, message, files=files), server, corpora, folder)
