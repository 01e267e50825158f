"""Every kind of the register fulfils the contract, and so does one that somebody else adds."""

from __future__ import annotations

import json
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from fairseq_stack.compat.checkpoint_utils import is_uninitialised
from fairseq_stack.errors import UserError
from fairseq_stack.kinds import STRATIFICATION, SUPERPOSITION, Layer, kinds, register
from fairseq_stack.models.transformer.transformer_options import settle_layers
from fairseq_stack.networks import TransformerOptions
from tests.commands.running import REPOSITORY, Ending, Server
from tests.end_to_end.conftest import SPLITS, Corpora
from tests.end_to_end.fairseq_commands import (
    BARE_LANGUAGE_MODEL,
    BARE_RECURRENT,
    BARE_TRANSLATION,
    GENERATION,
    TRAINING,
    run,
)
from tests.kinds.contract import AttentionContract, KindContract

for _kind in kinds():
    for _sizes in _kind.examples if _kind.build is not None else ():
        _layer = Layer(_kind, _sizes)
        _name = f"Test{_layer}".replace("-", "_")
        _contract = KindContract if _kind.recurrent else AttentionContract
        globals()[_name] = type(_name, (_contract,), {"layer": _layer})
    if _kind.limited_memory:
        _layer = Layer(_kind, _kind.examples[0], window=4)
        _name = f"Test{_layer}".replace("-", "_").replace("@", "_window_")
        globals()[_name] = type(_name, (KindContract,), {"layer": _layer})

_LIMITED = SimpleNamespace(stack_value_activation="sigmoid", stack_depth_limit=2, push_hidden_state=False)


class TestLimitedDepth(KindContract):
    layer = Layer(SUPERPOSITION, (5,))
    cfg = controller_cfg = _LIMITED


BUILT = [kind for kind in kinds() if kind.build is not None]
FIRST = [
    *(Layer(kind, kind.examples[0]) for kind in BUILT),
    *(Layer(kind, kind.examples[0], window=4) for kind in BUILT if kind.limited_memory),
]
EVERY_LAYER = ",".join(["sdpa", *map(str, FIRST)])
EVERY_STACK = "+".join(str(layer) for layer in FIRST if layer.kind.recurrent)


@pytest.mark.parametrize("layer", FIRST, ids=str)
def test_states_of_other_rows(layer: Layer) -> None:
    sublayer = layer.build(8, TransformerOptions())
    state = sublayer.initial_state(2)
    for read, shape in ((sublayer.step, (3, 8)), (sublayer.extend, (3, 5, 8))):
        with pytest.raises(ValueError, match="expected"):
            read(torch.randn(shape), state)


@pytest.mark.parametrize(
    "model",
    [[*BARE_LANGUAGE_MODEL, "--stack-layers", EVERY_LAYER], [*BARE_RECURRENT, "--stack", EVERY_STACK]],
    ids=["transformer", "lstm"],
)
def test_training_with_every_kind_resumes_exactly(corpora: Corpora, tmp_path: Path, model: list[str]) -> None:
    def train(name: str, epochs: int) -> dict[str, Tensor]:
        command = [corpora.language_modeling, *model, *TRAINING, "--save-dir", tmp_path / name, "--max-epoch", epochs]
        run("train", *command)
        parameters: dict[str, Tensor] = torch.load(tmp_path / name / "checkpoint_last.pt", weights_only=False)["model"]
        return parameters

    train("interrupted", 1)
    resumed, uninterrupted = train("interrupted", 2), train("uninterrupted", 2)
    assert resumed.keys() == uninterrupted.keys()
    for name, parameter in uninterrupted.items():
        assert is_uninitialised(name) or torch.equal(resumed[name], parameter), name


def test_every_kind_translates(corpora: Corpora, tmp_path: Path) -> None:
    lists = ["--stack-encoder-layers", EVERY_LAYER, "--stack-decoder-layers", EVERY_LAYER]
    run("train", corpora.translation, *BARE_TRANSLATION, *lists, *TRAINING, "--save-dir", tmp_path)
    output = run("generate", corpora.translation, "--path", tmp_path / "checkpoint_last.pt", *GENERATION)
    assert len(output.hypotheses()) == SPLITS["test"]


PLUGIN = Path(__file__).with_name("latch")
TEST = """
from fairseq_stack.kinds import Layer, spellings
from tests.conftest import fixed_seed, single_thread
from tests.kinds.contract import KindContract

from latch import LATCH


class TestLatch(KindContract):
    layer = Layer(LATCH, (4,))


def test_layer_lists_name_it() -> None:
    assert "'deltastack-H-K-V-C' or 'latch-M'" in spellings()
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package of a user outside the project, in three files: an op, a sublayer and a record."""
    return shutil.copytree(PLUGIN, tmp_path / "latch")


def test_a_kind_of_a_package_fulfils_the_contract(server: Server, package: Path) -> None:
    """It decodes, is initialised and inspected as ours are."""
    folder = package.parent
    (folder / "test_latch.py").write_text(TEST, encoding="utf-8")
    program = (
        f"import sys, pytest; sys.path[:0] = {[str(folder), str(REPOSITORY)]}; sys.exit(pytest.main(sys.argv[1:]))"
    )
    options = ["-q", "-p", "no:cacheprovider", "--rootdir", str(folder), str(folder / "test_latch.py")]
    done = server.run_program(program, folder, *options)
    assert done.code == 0, done.printed
    passed = re.search(r"(\d+) passed", done.printed)
    assert passed is not None and int(passed[1]) > 20


def test_commands_know_a_kind_of_a_package(server: Server, corpora: Corpora, package: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    arguments = [*BARE_LANGUAGE_MODEL, "--stack-layers", "sdpa,latch-4", *TRAINING, "--save-dir", model]
    training = ["fairseq-train", corpora.language_modeling, "--user-dir", package, *arguments]
    assert server.run([str(word) for word in training], tmp_path).code == 0

    def inspect(*options: str) -> Ending:
        output = ["--text", "a b c", "--output", str(tmp_path / "stacks.json")]
        return server.run(["fairseq-stack", "inspect", str(model), *output, *options], tmp_path)

    def numbers(done: Ending) -> Any:
        assert done.code == 0, done.errors
        return json.loads((tmp_path / "stacks.json").read_text(encoding="utf-8"))

    by_record = inspect()
    (stack,) = numbers(by_record)
    assert (stack["layer"], stack["inputs"]) == ("decoder.layers.1", ["</s>", "a", "b", "c"])
    assert len(stack["weights"]) == len(stack["actions"]["write"]) == 4
    assert f"was trained with --user-dir {package}: importing it\n" in by_record.errors
    moved = tmp_path / "elsewhere" / "latch"
    moved.parent.mkdir()
    package.rename(moved)
    by_option = inspect("--user-dir", str(moved))
    assert numbers(by_option) == [stack] and "importing" not in by_option.errors
    lost = inspect()
    assert lost.code == 2 and f"with --user-dir {package}, which does not exist; if the model needs it," in lost.errors
    message = "fairseq-stack: error: --user-dir no: expected the folder of a package"
    assert inspect("--user-dir", "no").last_line == message
    checked = server.run(["fairseq-stack", "doctor", "--user-dir", str(moved)], tmp_path)
    assert checked.code == 0 and "latch: pytorch; agrees with the reference" in checked.printed
    (moved / "__init__.py").write_text("import nothing_of_that_name", encoding="utf-8")
    message = f"--user-dir {moved} cannot be imported: No module named 'nothing_of_that_name'"
    assert inspect("--user-dir", str(moved)).last_line == f"fairseq-stack: error: {message}"


@pytest.mark.parametrize(("name", "problem"), [
    ("strat", "another kind of layer already has the name 'strat'"),
    ("my-stack", "expected lower-case letters, got 'my-stack'"),
])  # fmt: skip
def test_names_that_cannot_be_registered(name: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        register(replace(STRATIFICATION, name=name))


def test_a_kind_that_a_model_cannot_have(monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = replace(SUPERPOSITION, models=("pushdown_transformer_lm",))
    monkeypatch.setitem(sys.modules["fairseq_stack.kinds.register"]._KINDS, "sup", elsewhere)
    options = type("Options", (), {"stack_layers": "sdpa,sup-4", "decoder_layers": None})()
    message = (
        "--stack-layers: sup-4 is superposition stack attention, which stack_transformer_lm cannot have: it needs "
        "--arch pushdown_transformer_lm"
    )
    with pytest.raises(UserError, match=re.escape(message)):
        settle_layers(options, "stack_layers", "decoder", "stack_transformer_lm")
    settle_layers(options, "stack_layers", "decoder", "pushdown_transformer_lm")
