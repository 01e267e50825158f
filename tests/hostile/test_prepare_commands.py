"""Hostile commands to fairseq-stack: each ends as it should, or with one line that says what to do."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.commands.running import Server
from tests.hostile.conftest import PLUGIN, TRAINING
from tests.hostile.conftest import SMALL as SMALL_MODEL
from tests.hostile.running import Case, check, parametrize

S = "fairseq-stack"
SMALL = "--train-size 4 --valid-size 4 --test-size 4 --no-binarise"
NESTED = f"{S} prepare nested-translation"
REVERSAL = f"{S} prepare reversal"
CFL_SIZES = (
    "--min-length 2 --max-length 6 --test-min-length 2 --test-max-length 6 --train-size 4 --valid-size 4 "
    "--test-per-length 1 --no-binarise"
)
CFL = f"{S} prepare cfl"
DYCK = f"{CFL} out --task dyck"
GRAMMAR = f"{CFL} out --grammar g {CFL_SIZES}"
MT = f"{S} prepare mt out --source de --target en --train c --valid c --test c --pieces 40 --no-binarise"
TREES = f"{S} prepare treebank out --train t --valid t --test t --no-binarise"
PTB = f"{S} prepare ptb out --raw raw --no-binarise"
MIKOLOV = f"{PTB} --mikolov sentences"

PAIRS = {"c.de": "Das ist es.\nUnd das auch.\n", "c.en": "This is it.\nAnd this, too.\n"}
TREE = "(S (NP (DT The) (NN dog)) (VP (VBZ barks)))\n"
TREE_FILES = {"t": TREE * 3}
MIKOLOV_FILES = {f"raw/ptb.{split}.txt": "ein wort\n<unk> N\n" for split in ("train", "valid", "test")}
PTB_FILES = {f"raw/{section}/wsj_{section}01.mrg": TREE * 3 for section in ("02", "23", "24")}


def grammar(text: str | bytes) -> dict[str, str | bytes]:
    return {"g": text}


def flag_cases() -> Iterator[Case]:
    """Wrong, empty, huge, negative and option-like values of flags that take numbers."""
    whole = {
        "word": ("x", "invalid int value: 'x'"),
        "empty": ("''", "invalid int value: ''"),
        "fraction": ("1.5", "invalid int value: '1.5'"),
        "nan": ("nan", "invalid int value: 'nan'"),
        "arabic": ("½", "invalid int value"),
        "newline": ("'a\nb'", r"invalid int value: 'a\nb'"),
    }
    for name, (value, message) in whole.items():
        yield Case(f"reversal seed {name}", f"{REVERSAL} out {SMALL} --seed {value}", message)
    yield Case("seed of 5000 digits", f"{REVERSAL} out {SMALL} --seed {'9' * 5000}", "invalid int value", quick=True)
    for flag, least in {
        "--train-size": 1,
        "--valid-size": 1,
        "--test-size": 1,
        "--seed": 0,
        "--symbols": 2,
        "--min-length": 2,
    }.items():
        yield Case(
            f"reversal {flag} -1", f"{REVERSAL} out {SMALL} {flag}=-1", f"{flag} must be at least {least}, got -1"
        )
    yield Case("reversal odd", f"{REVERSAL} out {SMALL} --min-length 11", "--min-length must be even")
    yield Case("reversal range", f"{REVERSAL} out {SMALL} --max-length 8", "--max-length 8 is less than --min-length")
    yield Case("reversal huge size", f"{REVERSAL} out {SMALL} --train-size {10**15}", "--train-size must be at most")
    yield Case("reversal huge length", f"{REVERSAL} out {SMALL} --max-length {10**18}", "--max-length must be at most")
    yield Case("reversal huge alphabet", f"{REVERSAL} out {SMALL} --symbols {10**30}", "--symbols must be at most")
    yield Case("nested huge size", f"{NESTED} out {SMALL} --train-size {10**15}", "--train-size must be at most")
    yield Case("nested deep", f"{NESTED} out {SMALL} --depth 31", "--depth must be at most 30, got 31")
    yield Case("nested negative depth", f"{NESTED} out {SMALL} --depth=-1", "--depth must be at least 0, got -1")
    yield Case("nested test depth", f"{NESTED} out {SMALL} --test-depth=-1", "--test-depth must be at least 0")
    yield Case("nested all sentences", f"{NESTED} out {SMALL} --depth 0 --limit 0", "--limit must be at least 1, got 0")
    yield Case("depth is an option", f"{NESTED} out {SMALL} --depth --force", "--depth: expected one argument")
    yield Case("last of two counts", f"{NESTED} out {SMALL} --depth 99 --depth 0 ", prints="text:")
    for value in ("nan", "inf", "-inf", "-1", "0", "1e400"):
        yield Case(
            f"dyck depth {value}", f"{DYCK} {CFL_SIZES} --mean-nesting-depth={value}", "--mean-nesting-depth must be"
        )
    yield Case("dyck types", f"{DYCK} {CFL_SIZES} --bracket-types 10000", "--bracket-types must be greater than 0 and")
    yield Case("dyck word", f"{DYCK} {CFL_SIZES} --bracket-types x", "invalid int value: 'x'")
    yield Case("dyck other's parameter", f"{DYCK} {CFL_SIZES} --mean-commas 2", "--mean-commas is not a parameter of")
    yield Case("dyck probability", f"{CFL} out --task hardest-cfl --semicolon-probability 1", "must be greater than 0")
    yield Case("cfl huge size", f"{DYCK} {CFL_SIZES} --train-size {10**15}", "--train-size must be at most")
    yield Case("cfl huge test", f"{DYCK} {CFL_SIZES} --test-per-length {10**15}", "--test-per-length must be at most")
    yield Case("cfl huge length", f"{DYCK} {CFL_SIZES} --max-length 10001", "--max-length must be at most 10000")
    yield Case("cfl huge batch", f"{DYCK} {CFL_SIZES} --batch-size {10**30}", prints="text:")
    yield Case("cfl no length", f"{DYCK} --min-length 0", "--min-length must be at least 1, got 0")
    yield Case("cfl odd lengths only", f"{DYCK} --min-length 41 --max-length 41", "has no string with a length from 41")
    yield Case("cfl neither", f"{CFL} out", "one of the arguments --task --grammar is required", quick=True)
    yield Case("cfl both", f"{DYCK} --grammar g", "--grammar: not allowed with argument --task")
    yield Case("cfl task", f"{CFL} out --task dick", "--task: invalid choice: 'dick'")
    yield Case("cfl strip", f"{DYCK} --strip-cr", "--strip-cr needs --grammar")
    yield Case("cfl unary", f"{CFL} out --task count-3 --unary-start", "--unary-start is for context-free tasks")
    yield Case("cfl 1000 kinds of brackets", f"{DYCK} {CFL_SIZES} --bracket-types 1000", prints="text:")
    for flag, value, message in (
        ("--max-ratio", "nan", "--max-ratio must be at least 1, got nan"),
        ("--max-ratio", "0.5", "--max-ratio must be at least 1, got 0.5"),
        ("--max-ratio", "x", "invalid float value: 'x'"),
        ("--max-chars", "0", "--max-chars must be at least 1, got 0"),
        ("--sample", "0", "--sample must be at least 1, got 0"),
        ("--pieces", "1", "--pieces must be at least 2, got 1"),
        ("--pieces", "3", "--pieces 3: SentencePiece could not train: "),
        ("--pieces", str(10**12), "--pieces must be at most"),
        ("--piece-threshold", "-1", "--piece-threshold must be at least 0, got -1"),
        ("--workers", "0", "--workers must be at least 1, got 0"),
        ("--workers", "100000", "--workers must be at most"),
        ("--normalization", "nfd", "--normalization: invalid choice: 'nfd'"),
        ("--piece-normalization", "nonsense", "--piece-normalization nonsense: SentencePiece could not train"),
        ("--sample-rule", "''", "--sample-rule: invalid choice: ''"),
        ("--source", "en", "--source and --target are both en"),
        ("--source", "''", "--source: expected letters"),
        ("--source", "../de", "--source: expected letters"),
        ("--source", "d.e", "--source: expected letters"),
        ("--source", "'d e'", "--source: expected letters"),
        ("--source", "de-", "--source: expected letters"),
        ("--source", "fr", "c.fr is missing"),
        ("--train", "nothing", "--train: no text for nothing: expected nothing.de and nothing.en"),
        ("--raw", "here", "--raw needs --preset"),
        ("--limit", "-1", "--limit must be at least 1, got -1"),
        ("--seed", "-1", "--seed must be at least 0, got -1"),
    ):
        yield Case(f"mt {flag} {value}", f"{MT} {flag}={value}", message, files=PAIRS)
    yield Case(
        "mt infinite ratio", f"{MT} --max-ratio inf --max-chars {10**30}", prints="text:", files=PAIRS, quick=True
    )
    yield Case("mt nothing given", f"{S} prepare mt out", "missing: --source, --target, --train, --valid, --test")
    yield Case("mt preset", f"{S} prepare mt out --preset x", "--preset: invalid choice: 'x'")
    yield Case(
        "mt no download",
        f"{S} prepare mt out --preset europarl-dusell-2024 --raw raw --no-download",
        "--raw raw: no text for train: expected training/europarl-v7.de-en or europarl-v7.de-en, or training-",
    )
    yield Case("mt all dropped", f"{MT} --max-chars 1", "--train: none of the 2 pairs read is left", files=PAIRS)
    yield Case("treebank nothing", f"{S} prepare treebank out", "the following arguments are required: --train")
    yield Case("treebank both", f"{TREES} --pieces 40 --piece-model m", "give only one of the two", files=TREE_FILES)
    yield Case("treebank pieces", f"{TREES} --pieces 1", "--pieces must be at least 2, got 1", files=TREE_FILES)
    yield Case("treebank huge", f"{TREES} --pieces {10**12}", "--pieces must be at most", files=TREE_FILES)
    yield Case("treebank rare", f"{TREES} --pieces 40 --rare-words keep", "--rare-words is for words", files=TREE_FILES)
    yield Case("treebank limit", f"{TREES} --limit 0", "--limit must be at least 1, got 0", files=TREE_FILES)
    yield Case(
        "treebank missing", f"{TREES} --test nothing", "--test nothing: no such file or folder", files=TREE_FILES
    )
    yield Case(
        "treebank model", f"{TREES} --piece-model t", "--piece-model t is not a SentencePiece model", files=TREE_FILES
    )
    yield Case("ptb no raw", f"{S} prepare ptb out", "the following arguments are required: --raw")
    yield Case("ptb raw missing", PTB, "--raw raw is not a folder")
    for value in ("25", "2-", "'2,2'", "²", "21-2", "''"):
        yield Case(f"ptb sections {value}", f"{PTB} --train-sections {value}", "--train-sections: ", files=PTB_FILES)
    yield Case("ptb sections twice", f"{PTB} --test-sections 24", "section 24 is in valid already", files=PTB_FILES)
    yield Case("ptb", f"{PTB}", prints="text:", files=PTB_FILES)
    yield Case("mikolov slips", f"{MIKOLOV} --slips", "--slips is for trees", files=MIKOLOV_FILES)
    yield Case(
        "mikolov", f"{S} prepare ptb out --raw raw --no-binarise --mikolov stream", prints="text:", files=MIKOLOV_FILES
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


def target_cases() -> Iterator[Case]:
    """Targets that exist, are not folders, cannot be written, or have odd names."""
    run = f"{NESTED} {{}} {SMALL}".format
    ours = {"out/file": "x"}
    yield Case("target exists", run("out"), "out already exists; give --force to replace it", files=ours)
    yield Case("target is foreign", run("out --force"), "it does not hold a manifest.json", files=ours, quick=True)
    web = {"out/manifest.json": '{"name":"my web app"}', "out/thesis.tex": "x"}
    yield Case(
        "target is a web app", run("out --force"), "its manifest.json does not describe a corpus", files=web, quick=True
    )
    yield Case(
        "target is a file", run("out --force"), "out is not a folder; --force replaces folders", files={"out": "x"}
    )
    yield Case("target in a file", run("out/more"), "cannot write to ", files={"out": "x"})
    yield Case("target deep in a file", run("out/more/and/more"), "cannot make the folder ", files={"out": "x"})
    yield Case("target in /proc", run("/proc/out"), "cannot write to /proc: ")
    yield Case("target is /dev/null", run("/dev/null --force"), "/dev/null is not a folder")
    yield Case("target is the current folder", run("."), "already exists")
    yield Case(
        "target is the current folder, forced",
        run(". --force"),
        "it does not hold a manifest.json",
        files={"mine": "x"},
    )
    yield Case("target is /", run("/ --force"), "it does not hold a manifest.json")
    yield Case("target without a name", run("''"), "already exists")
    yield Case("target of 300 bytes", run("x" * 300), "File name too long", quick=True)
    yield Case("target of 4200 bytes", run("x/" * 2100), "File name too long")
    for name in (
        "a b",
        "it's",
        '"',
        "a\nb",
        "ä😀",
        "x" * 255,
        "ä" * 127,
        "$(ls)",
        "%s",
        "{{}}",
        ".hidden",
        "a/../b",
    ):
        quoted = "'" + name.replace("'", "'\"'\"'") + "'"
        yield Case(f"target named {name[:9]!r}", run(quoted), prints="text:", quick=name == "a\nb")
    yield Case("target -- only", run("--"), "unrecognized arguments: 4")
    yield Case("target after --", f"{NESTED} {SMALL} -- -out", prints="text:")
    yield Case("target with a dash", run("-out"), "the following arguments are required: FOLDER")
    yield Case("two targets", run("out other"), "unrecognized arguments: other")
    yield Case("dry run", run("out --dry-run"), prints="nothing is written (--dry-run)")
    yield Case(
        "dry run of what is refused", run("out --dry-run --force"), "it does not hold a manifest.json", files=ours
    )


def other_cases() -> Iterator[Case]:
    """The other subcommands."""
    yield Case("nothing", S, "the following arguments are required: SUBCOMMAND", quick=True)
    yield Case("typo", f"{S} prepair", "invalid choice: 'prepair'")
    yield Case("empty", f"{S} ''", "invalid choice: ''")
    yield Case("abbreviation", f"{S} --vers", "error: ")
    yield Case("version", f"{S} --version", prints="fairseq-stack ")
    yield Case("help", f"{S} --help", prints="subcommands", quick=True)
    yield Case("help of prepare", f"{S} prepare --help", prints="corpora")
    yield Case("version and more", f"{S} --version prepare", prints="fairseq-stack ")
    yield Case("prepare nothing", f"{S} prepare", "the following arguments are required: CORPUS")
    yield Case("user-dir", f"{S} user-dir", prints="fairseq_stack")
    yield Case("user-dir and more", f"{S} user-dir x", "unrecognized arguments: x")
    yield Case("doctor", f"{S} doctor", prints="compiled kernels")
    yield Case("doctor and more", f"{S} doctor --x", "unrecognized arguments: --x")
    yield Case("show", f"{S} show {{corpora}}/mt", prints="corpus: nested-translation")
    yield Case("show data-bin", f"{S} show {{mt}}", prints="corpus: nested-translation")
    yield Case("show nothing", f"{S} show", "the following arguments are required: FOLDER")
    yield Case("show missing", f"{S} show nowhere", "nowhere is not a folder")
    yield Case("show a file", f"{S} show f", "f is not a folder", files={"f": "x"})
    yield Case("show empty", f"{S} show d", "d holds no corpus", files={"d/x": ""})
    yield Case("show split", f"{S} show {{corpora}}/mt --split dev", "has no split dev; it has train, valid, test")
    yield Case("show -1", f"{S} show {{corpora}}/mt --examples=-1", "--examples must be at least 0, got -1")
    yield Case("show huge", f"{S} show {{corpora}}/mt --first {10**30}", "the sentences of train are 0 to 39")
    yield Case("show all", f"{S} show {{corpora}}/mt --examples {10**30}", prints="train 39")
    yield Case(
        "show manifest",
        f"{S} show d",
        "d/manifest.json is not a manifest",
        files={"d/manifest.json": "[1", "d/text/train.txt": "a\n"},
    )
    yield Case(
        "show list",
        f"{S} show d",
        "is not a manifest: expected an object",
        files={"d/manifest.json": "[1]", "d/text/train.txt": "a\n"},
    )
    odd = '{"corpus": 3, "options": [1], "splits": {"train": 4}, "inputs": 5, "dropped": "x"}'
    yield Case(
        "show odd manifest",
        f"{S} show d",
        "d/manifest.json is not a manifest: ",
        files={"d/manifest.json": odd, "d/text/train.txt": "a\n"},
    )
    yield Case(
        "show deep manifest",
        f"{S} show d",
        "d/manifest.json is not a manifest",
        files={"d/manifest.json": "[" * 100_000, "d/text/train.txt": "a\n"},
    )
    yield Case(
        "show binary text", f"{S} show d", "d/text/train.txt is not UTF-8", files={"d/text/train.txt": b"\xff\n"}
    )
    yield Case("show empty text", f"{S} show d", prints="train", files={"d/text/train.txt": ""})
    yield Case(
        "show broken index",
        f"{S} show d",
        "d/train.de-en.de.idx ",
        files={"d/train.de-en.de.idx": "x", "d/dict.de.txt": "a 1\n"},
    )
    yield Case("show empty index", f"{S} show d", "d/train.idx ", files={"d/train.idx": "", "d/dict.txt": "a 1\n"})
    yield Case("show no dictionary", f"{S} show d", "d/dict.txt is missing", files={"d/train.idx": b"MMIDIDX\0\0"})
    yield Case(
        "show broken dictionary",
        f"{S} show d",
        "d/dict.txt ",
        files={"d/train.idx": "x", "d/dict.txt": "one two three\n"},
    )
    yield Case(
        "show png over text",
        f"{S} show {{corpora}}/mt --png f",
        "f exists and is not a PNG",
        files={"f": "x"},
        quick=True,
    )
    yield Case("show png nowhere", f"{S} show {{corpora}}/mt --png no/f.png", "cannot write no/f.png: No such file")
    yield Case(
        "show png folder", f"{S} show {{corpora}}/mt --png d", "cannot write d: Is a directory", files={"d/x": ""}
    )
    yield Case("show png full", f"{S} show {{corpora}}/mt --png /dev/full", "cannot write /dev/full: No space left")
    yield Case("report nothing", f"{S} report", "the following arguments are required: FOLDER")
    yield Case("report missing", f"{S} report nowhere", "nowhere is not a folder; expected the one that", quick=True)
    yield Case("report empty", f"{S} report d", "d does not hold the results of scripts/demo.sh: d/", files={"d/x": ""})
    yield Case("report corpus", f"{S} report {{corpora}}", "does not hold the results of scripts/demo.sh: ")
    yield Case("report depth", f"{S} report d --depth=-1", "--depth must be at least 0, got -1", files={"d/x": ""})
    yield Case(
        "report over mine",
        f"{S} report d",
        "d/table.md was not written by fairseq-stack report",
        files={"d/table.md": "x"},
    )
    broken = {"d/reversal/corpus/text/valid.nll": "x\n", "d/reversal/corpus/text/valid.txt": "0 0\n"}
    yield Case(
        "report broken", f"{S} report d", "d/reversal/corpus/text/valid.nll, line 1: expected a number", files=broken
    )


CASES = [*flag_cases(), *broken_file_cases(), *grammar_cases(), *target_cases(), *other_cases()]


@parametrize(CASES)
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


@pytest.mark.hostile
def test_languages_with_hyphens_can_be_trained_on(server: Server, folder: Path) -> None:
    for name, text in PAIRS.items():
        (folder / name.replace("de", "de-DE").replace("en", "pt-BR")).write_text(text * 20)
    prepare = MT.replace(" de ", " de-DE ").replace(" en ", " pt-BR ").replace("--no-binarise", "")
    ending = server.run(prepare.split(), folder)
    assert ending.code == 0, ending.errors
    needed = "--source-lang de-DE --target-lang pt-BR"
    assert ending.printed.endswith(f"pass its commands {needed}\n")
    train = f"fairseq-train out/data-bin {needed} {PLUGIN} --task translation --arch stack_transformer {SMALL_MODEL}"
    ending = server.run(f"{train} {TRAINING} --stack-encoder-layers sup-4 --stack-decoder-layers sup-4".split(), folder)
    assert ending.code == 0, ending.errors
    generate = f"fairseq-generate out/data-bin {needed} {PLUGIN} --path checkpoints/checkpoint_last.pt"
    ending = server.run(generate.split(), folder)
    assert ending.code == 0, ending.errors
    assert ending.printed.count("\nH-") == 40
    ending = server.run([S, "show", "out"], folder)
    assert "train de-DE" in ending.printed and "train pt-BR" in ending.printed, ending.errors
