"""Hostile uses of the other commands of fairseq-stack: one line says what to do, or the command works."""

from __future__ import annotations

from pathlib import Path

from tests.commands.running import Server
from tests.hostile.cases import Case, check, parametrize

S = "fairseq-stack"
TEXT = {"d/text/train.txt": "a\n"}
ODD_MANIFEST = '{"corpus": 3, "options": [1], "splits": {"train": 4}, "inputs": 5, "dropped": "x"}'
LOG = 'num. shared model params: 10\n{"valid_loss": "1", "valid_num_updates": "5"}\n'
COMMANDS = [
    Case("nothing", S, "the following arguments are required: SUBCOMMAND", quick=True),
    Case("help", f"{S} --help", prints="subcommands", quick=True),
    Case("doctor", f"{S} doctor", prints="compiled kernels"),
    Case("show", f"{S} show {{corpora}}/mt", prints="corpus: nested-translation"),
    Case("show data-bin", f"{S} show {{mt}}", prints="corpus: nested-translation"),

    Case("show all", f"{S} show {{corpora}}/mt --examples {10**30}", prints="train 39"),
    *(
        Case(f"show {kind} manifest", f"{S} show d", "is not a manifest", files={"d/manifest.json": content, **TEXT})
        for kind, content in {"cut": "[1", "odd": ODD_MANIFEST, "deep": "[" * 100_000}.items()
    ),
    Case("show binary", f"{S} show d", "d/text/train.txt is not UTF-8", files={"d/text/train.txt": b"\xff\n"}),
    Case("show index", f"{S} show d", "d/train.a-b.a.idx ", files={"d/train.a-b.a.idx": "x", "d/dict.a.txt": "a 1\n"}),
    Case("show empty index", f"{S} show d", "d/train.idx ", files={"d/train.idx": "", "d/dict.txt": "a 1\n"}),

    Case("show dictionary", f"{S} show d", "d/dict.txt ", files={"d/train.idx": "x", "d/dict.txt": "one two three\n"}),
    Case("png on text", f"{S} show {{corpora}}/mt --png f", "f exists and is not a PNG", files={"f": "x"}, quick=True),
    Case("png full", f"{S} show {{corpora}}/mt --png /dev/full", "cannot write /dev/full: No space left"),
    Case("plot one point", f"{S} plot training x:_=r y:$x^=r --learning-rate --log -o a.pdf", prints="a.pdf",
         files={"r/train.log": f'{LOG}{{"num_updates": "5", "lr": "1"}}\n'}),
    Case("plot not a number", f"{S} plot training r --log -o a.png", "valid_loss is not a finite number in any",
         files={"r/train.log": LOG.replace('"1"', '"nan"')}),
    Case("plot full", f"{S} plot training r -o /dev/full", "/dev/full: expected a name", files={"r/train.log": LOG}),
]  # fmt: skip

# evaluate-cfl, on a trained language model of w w^R.
GOOD = f"{S} evaluate-cfl {{lm_model}} --data {{corpora}}/lm --samples 5 --bootstrap 5"
MANIFEST = {"d/manifest.json": '{"corpus": "cfl", "options": {"task": "dyck"}}'}
EVALUATIONS = [
    Case("good", GOOD, prints="|version:fairseq_stack-"),
    Case("to /dev/null", f"{GOOD} --json /dev/null", prints="| all "),
    Case("all at once", f"{GOOD} --max-tokens {10**30}", prints="| all "),
    Case("nothing", f"{S} evaluate-cfl", "required: CHECKPOINT, --data", quick=True),
    Case("pairs", f"{GOOD} --data {{corpora}}/mt", "mt is not a corpus of fairseq-stack prepare cfl"),
    Case("translation", GOOD.replace("lm_model", "mt_model"), "cannot be loaded with the data of "),
    Case("other pairs", f"{S} evaluate-transformations {{mt_model}} --data {{corpora}}/mt",
         "mt is not a corpus of fairseq-stack prepare transformations"),
    Case("long", f"{GOOD} --sample-length {10**30}", "are too long: the model accepts 64 tokens"),
]  # fmt: skip


@parametrize(EVALUATIONS)
def test_evaluation(case: Case, server: Server, workspace: dict[str, str], folder: Path) -> None:
    check(case, server, workspace, folder)


@parametrize(COMMANDS)
def test_command(case: Case, server: Server, corpora: dict[str, str], folder: Path) -> None:
    check(case, server, corpora, folder)
