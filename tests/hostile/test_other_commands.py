"""Hostile uses of the other commands of fairseq-stack: one line says what to do, or the command works."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.commands.running import Server
from tests.hostile.preparing import S
from tests.hostile.running import Case, check, parametrize


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
    yield Case("evaluate nothing", f"{S} evaluate-cfl", "required: CHECKPOINT, --data", quick=True)


def plot_cases() -> Iterator[Case]:
    """Figures and tables."""
    yield Case("plot nothing", f"{S} plot", "the following arguments are required: WHAT")
    yield Case("plot typo", f"{S} plot length", "invalid choice: 'length'")
    log = 'num. shared model params: 10\n{"valid_loss": "1", "valid_num_updates": "5"}\n'
    yield Case("plot training", f"{S} plot training r -o a.png", prints="a.png", files={"r/train.log": log})
    yield Case("plot no output", f"{S} plot training r", "the following arguments are required: -o/--output")
    yield Case(
        "plot one point",
        f"{S} plot training x:_=r y:$x^=r --learning-rate --log -o a.pdf",
        prints="a.pdf",
        files={"r/train.log": f'{log}{{"num_updates": "5", "lr": "1"}}\n'},
    )
    yield Case(
        "plot not a number",
        f"{S} plot training r --log -o a.png",
        "r/train.log: valid_loss is not a finite number in any validation",
        files={"r/train.log": log.replace('"1"', '"nan"')},
    )
    yield Case("plot binary log", f"{S} plot training f -o a.png", "f is not UTF-8", files={"f": b"\xff\n"})
    yield Case(
        "plot full", f"{S} plot training r -o /dev/full", "/dev/full: expected a name", files={"r/train.log": log}
    )
    yield Case(
        "plot folder",
        f"{S} plot training r -o d.png",
        "cannot write d.png: Is",
        files={"r/train.log": log, "d.png/x": ""},
    )
    yield Case("plot empty result", f"{S} plot table a=f", "f is not JSON", files={"f": ""}, quick=True)
    yield Case("plot deep result", f"{S} plot table a=f", "f is not JSON", files={"f": "[" * 100_000})
    yield Case("plot binary result", f"{S} plot lengths a=f -o a.png", "f is not UTF-8", files={"f": b"\xff\n"})
    yield Case("plot a folder", f"{S} plot table a=d", "d: Is a directory", files={"d/x": ""})
    yield Case(
        "plot list", f"{S} plot table a=f", "f is not a result of fairseq-stack evaluate-cfl", files={"f": "[1]"}
    )


def evaluation_cases() -> Iterator[Case]:
    """evaluate-cfl, on a trained language model of w w^R."""
    good = f"{S} evaluate-cfl {{lm_model}} --data {{corpora}}/lm --samples 5 --bootstrap 5"
    yield Case("evaluate", good, prints="|version:fairseq_stack-")
    yield Case("evaluate data-bin", f"{good} --data {{lm}} --json f", prints="samples: ")
    yield Case("evaluate to /dev/null", f"{good} --json /dev/null", prints="| all ")
    yield Case("evaluate all", f"{good} --max-tokens {10**30}", prints="| all ")
    yield Case("evaluate one by one", f"{good} --batch-size 1 --max-tokens 1", prints="| all ")
    yield Case("evaluate no data", f"{S} evaluate-cfl m.pt", "the following arguments are required: --data")
    yield Case("evaluate no model", f"{S} evaluate-cfl m.pt --data {{corpora}}/lm", "m.pt does not exist")
    yield Case("evaluate nowhere", f"{S} evaluate-cfl m.pt --data d", "d is not a folder")
    yield Case("evaluate pairs", f"{good} --data {{corpora}}/mt", "mt is not a corpus of fairseq-stack prepare cfl")
    yield Case("evaluate translation", f"{good.replace('lm_model', 'mt_model')}", "cannot be loaded with the data of ")
    yield Case("evaluate split", f"{good} --split ../x", "has no split '../x'; it has test, train, valid")
    yield Case("evaluate split of dots", f"{good} --split ''", "has no split ''; it has test, train, valid")
    for flag, least in (
        *(("--bootstrap", 1), ("--samples", 0), ("--sample-length", 1), ("--show-samples", 0)),
        *(("--seed", 0), ("--batch-size", 1), ("--max-tokens", 1)),
    ):
        yield Case(
            f"evaluate {flag}", f"{good} {flag}={least - 1}", f"{flag} must be at least {least}, got {least - 1}"
        )
    for value in ("0", "1", "nan", "-1e9"):
        yield Case(
            f"evaluate confidence {value}", f"{good} --confidence={value}", "--confidence must be greater than 0"
        )
    yield Case("evaluate long", f"{good} --sample-length {10**30}", "are too long: the model accepts 64 tokens")
    for flag in ("--seed", "--bootstrap", "--samples"):
        yield Case(f"evaluate huge {flag}", f"{good} {flag} {10**30}", f"{flag} must be at most ")
    yield Case("evaluate json nowhere", f"{good} --json no/f", "cannot write no/f: No such file or directory")
    yield Case("evaluate json folder", f"{good} --json d", "cannot write d: Is a directory", files={"d/x": ""})
    yield Case("evaluate json full", f"{good} --json /dev/full", "cannot write /dev/full: No space left")
    manifest = '{"corpus": "cfl", "options": {"task": "dyck"}}'
    yield Case(
        "evaluate text", f"{S} evaluate-cfl m.pt --data d", "d has no split 'test'", files={"d/manifest.json": manifest}
    )
    files = {"d/manifest.json": manifest, "d/text/test.txt": "( )\n", "d/text/test.nll": "x\n"}
    yield Case(
        "evaluate numbers", f"{S} evaluate-cfl m.pt --data d", "test.nll, line 1: expected a number", files=files
    )


@parametrize(evaluation_cases())
def test_evaluation(case: Case, server: Server, workspace: dict[str, str], folder: Path) -> None:
    check(case, server, workspace, folder)


@parametrize([*other_cases(), *plot_cases()])
def test_command(case: Case, server: Server, corpora: dict[str, str], folder: Path) -> None:
    check(case, server, corpora, folder)
