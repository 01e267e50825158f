"""Hostile flags and targets of fairseq-stack prepare: one line says what to do, or the corpus is right."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.commands.running import Server
from tests.hostile.cases import Case, check, parametrize
from tests.hostile.conftest import PLUGIN, TRAINING
from tests.hostile.conftest import SMALL as SMALL_MODEL
from tests.hostile.preparing import (
    CFL,
    CFL_SIZES,
    DYCK,
    MIKOLOV_FILES,
    MT,
    NESTED,
    PAIRS,
    PTB,
    PTB_FILES,
    REVERSAL,
    SMALL,
    TRANSDUCTION,
    TREE_FILES,
    TREES,
    S,
)


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
    yield Case("reversal huge size", f"{REVERSAL} out {SMALL} --train-size {10**15}", "--train-size must be at most")
    yield Case("reversal huge length", f"{REVERSAL} out {SMALL} --max-length {10**18}", "--max-length must be at most")
    yield Case("reversal huge alphabet", f"{REVERSAL} out {SMALL} --symbols {10**30}", "--symbols must be at most")
    yield Case("transduction deep", f"{TRANSDUCTION} formula --depth {10**30}", "--depth must be at most 100, got 1000")
    yield Case("transduction long", f"{TRANSDUCTION} formula --depth 90", "at this depth; at most 10000 are allowed")
    yield Case("transduction mean", f"{TRANSDUCTION} copy --mean-length inf", "the range of lengths, got inf")
    yield Case(
        "transduction std", f"{TRANSDUCTION} copy --std-length nan", "--std-length must be from 0 to 10000, got nan"
    )
    yield Case("nested huge size", f"{NESTED} out {SMALL} --train-size {10**15}", "--train-size must be at most")
    yield Case("nested deep", f"{NESTED} out {SMALL} --depth 31", "--depth must be at most 30, got 31")
    yield Case("depth is an option", f"{NESTED} out {SMALL} --depth --force", "--depth: expected one argument")
    yield Case("last of two counts", f"{NESTED} out {SMALL} --depth 99 --depth 0 ", prints="text:")
    for value in ("nan", "inf", "-inf", "-1", "0", "1e400"):
        yield Case(
            f"dyck depth {value}", f"{DYCK} {CFL_SIZES} --mean-nesting-depth={value}", "--mean-nesting-depth must be"
        )
    yield Case("dyck types", f"{DYCK} {CFL_SIZES} --bracket-types 10000", "--bracket-types must be greater than 0 and")
    yield Case("dyck probability", f"{CFL} out --task hardest-cfl --semicolon-probability 1", "must be greater than 0")
    yield Case("cfl huge size", f"{DYCK} {CFL_SIZES} --train-size {10**15}", "--train-size must be at most")
    yield Case("cfl huge test", f"{DYCK} {CFL_SIZES} --test-per-length {10**15}", "--test-per-length must be at most")
    yield Case("cfl huge length", f"{DYCK} {CFL_SIZES} --max-length 10001", "--max-length must be at most 10000")
    yield Case("cfl huge batch", f"{DYCK} {CFL_SIZES} --batch-size {10**30}", prints="text:")
    yield Case("cfl odd lengths only", f"{DYCK} --min-length 41 --max-length 41", "has no string with a length from 41")
    yield Case("cfl neither", f"{CFL} out", "one of the arguments --task --grammar is required", quick=True)
    yield Case("cfl 1000 kinds of brackets", f"{DYCK} {CFL_SIZES} --bracket-types 1000", prints="text:")
    for flag, value, message in (
        ("--max-ratio", "nan", "--max-ratio must be at least 1, got nan"),
        ("--pieces", "3", "--pieces 3: SentencePiece could not train: "),
        ("--pieces", str(10**12), "--pieces must be at most"),
        ("--workers", "100000", "--workers must be at most"),
        ("--piece-normalization", "nonsense", "--piece-normalization nonsense: SentencePiece could not train"),
        ("--sample-rule", "''", "--sample-rule: invalid choice: ''"),
        ("--source", "''", "--source: expected letters"),
        ("--source", "../de", "--source: expected letters"),
        ("--source", "d.e", "--source: expected letters"),
        ("--source", "'d e'", "--source: expected letters"),
        ("--source", "de-", "--source: expected letters"),
        ("--source", "fr", "c.fr is missing"),
    ):
        yield Case(f"mt {flag} {value}", f"{MT} {flag}={value}", message, files=PAIRS)
    yield Case(
        "mt infinite ratio", f"{MT} --max-ratio inf --max-chars {10**30}", prints="text:", files=PAIRS, quick=True
    )
    yield Case("mt all dropped", f"{MT} --max-chars 1", "--train: none of the 2 pairs read is left", files=PAIRS)
    yield Case("treebank huge", f"{TREES} --pieces {10**12}", "--pieces must be at most", files=TREE_FILES)
    yield Case(
        "treebank missing", f"{TREES} --test nothing", "--test nothing: no such file or folder", files=TREE_FILES
    )
    yield Case(
        "treebank model", f"{TREES} --piece-model t", "--piece-model t is not a SentencePiece model", files=TREE_FILES
    )
    yield Case("ptb raw missing", PTB, "--raw raw is not a folder")
    for value in ("25", "2-", "'2,2'", "²", "21-2", "''"):
        yield Case(f"ptb sections {value}", f"{PTB} --train-sections {value}", "--train-sections: ", files=PTB_FILES)
    yield Case("ptb", f"{PTB}", prints="text:", files=PTB_FILES)
    yield Case(
        "mikolov", f"{S} prepare ptb out --raw raw --no-binarise --mikolov stream", prints="text:", files=MIKOLOV_FILES
    )


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


@parametrize([*flag_cases(), *target_cases()])
def test_command(case: Case, server: Server, corpora: dict[str, str], folder: Path) -> None:
    check(case, server, corpora, folder)


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
