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
    CFL_SIZES,
    DYCK,
    MT,
    NESTED,
    PAIRS,
    PTB,
    PTB_FILES,
    REVERSAL,
    SMALL,
    TRANSFORMATIONS,
    S,
)


def flag_cases() -> Iterator[Case]:
    """Wrong, empty, huge, negative and option-like values of flags that take numbers."""
    for name, value in {"newline": "'a\nb'", "5000 digits": "9" * 5000}.items():
        quick = name == "5000 digits"
        yield Case(f"seed {name}", f"{REVERSAL} out {SMALL} --seed {value}", "invalid int value", quick=quick)
    for flag in ("--train-size", "--max-length", "--test-per-length"):
        yield Case(f"huge {flag}", f"{DYCK} {CFL_SIZES} {flag} {10**18}", f"{flag} must be at most")
    yield Case("dyck depth", f"{DYCK} {CFL_SIZES} --mean-nesting-depth=1e400", "--mean-nesting-depth must be")
    yield Case("cfl 1000 kinds of brackets", f"{DYCK} {CFL_SIZES} --bracket-types 1000", prints="text:")
    yield Case(
        "mt infinite ratio", f"{MT} --max-ratio inf --max-chars {10**30}", prints="text:", files=PAIRS, quick=True
    )
    weights = f"{TRANSFORMATIONS} --task tense-reinflection --subject-weights"
    yield Case(
        "infinite weights", f"{weights} 1 1 1 1 inf", "--subject-weights must be 5 numbers from 0 to ", quick=True
    )
    yield Case("weights 1e100 and 1e-320", f"{weights} 1e100 0 1e-320 0 1e100", prints="text:")
    yield Case("ptb sections", f"{PTB} --train-sections ²", "--train-sections: ", files=PTB_FILES)


def target_cases() -> Iterator[Case]:
    """Targets that exist, are not folders, cannot be written, or have odd names."""
    run = f"{NESTED} {{}} {SMALL}".format
    ours = {"out/file": "x"}
    yield Case("target is foreign", run("out --force"), "it does not hold a manifest.json", files=ours, quick=True)
    web = {"out/manifest.json": '{"name":"my web app"}', "out/thesis.tex": "x"}
    yield Case(
        "target is a web app", run("out --force"), "its manifest.json does not describe a corpus", files=web, quick=True
    )

    yield Case("target in /proc", run("/proc/out"), "cannot write to /proc: ")
    yield Case("target is /", run("/ --force"), "it does not hold a manifest.json")
    yield Case("target of 300 bytes", run("x" * 300), "File name too long", quick=True)
    for name in ("it's", "a\nb", "ä😀", "ä" * 127, "$(ls)", "{{}}", "a/../b"):
        quoted = "'" + name.replace("'", "'\"'\"'") + "'"
        yield Case(f"target named {name[:9]!r}", run(quoted), prints="text:", quick=name == "a\nb")
    yield Case("target after --", f"{NESTED} {SMALL} -- -out", prints="text:")


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
