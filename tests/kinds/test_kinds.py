"""Every kind of the register fulfils the contract, and so does one that somebody else adds."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from fairseq_stack.errors import UserError
from fairseq_stack.kinds import STRATIFICATION, SUPERPOSITION, Layer, Size, kinds, register
from fairseq_stack.models.transformer.options import settle_layers
from tests.commands.running import REPOSITORY, Ending, Server
from tests.end_to_end.conftest import Corpora
from tests.end_to_end.fairseq_commands import BARE_LANGUAGE_MODEL, TRAINING
from tests.kinds.contract import KindContract, LimitedMemoryContract

for _kind in kinds():
    for _sizes in _kind.examples if _kind.build is not None else ():
        _layer = Layer(_kind, _sizes)
        _name = f"Test{_layer}".replace("-", "_")
        globals()[_name] = type(_name, (KindContract,), {"layer": _layer})
    if _kind.limited_memory:
        _layer = Layer(_kind, _kind.examples[0], window=4)
        _name = f"Test{_layer}".replace("-", "_").replace("@", "_window_")
        globals()[_name] = type(_name, (LimitedMemoryContract,), {"layer": _layer})

_LIMITED = SimpleNamespace(stack_value_activation="sigmoid", stack_depth_limit=2, push_hidden_state=False)


class TestLimitedDepth(KindContract):
    layer = Layer(SUPERPOSITION, (5,))
    cfg = controller_cfg = _LIMITED


PLUGIN = '''
from torch import Tensor

from fairseq_stack.kinds import SUPERPOSITION, Kind, register
from fairseq_stack.modules import SuperpositionStackAttention


class Backwards(SuperpositionStackAttention):
    """Superposition stack attention with pushing and popping exchanged."""

    def readings(self, actions: Tensor, values: Tensor) -> Tensor:
        return super().readings(actions.flip(-1), values)

    def step_reading(self, actions, values, state):
        return super().step_reading(actions.flip(-1), values, state)


KIND = Kind(
    name="back",
    title="superposition stack attention, backwards",
    sizes=SUPERPOSITION.sizes,
    num_weights=SUPERPOSITION.num_weights,
    cost="n^2 M",
    build=Backwards,
    options=SUPERPOSITION.options,
    op=SUPERPOSITION.op,
    examples=((4,),),
)
register(KIND)
'''

TEST = """
from fairseq_stack.kinds import Layer, grammar
from tests.kinds.contract import KindContract
from tests.end_to_end.conftest import corpora

from backwards import KIND


class TestBackwards(KindContract):
    layer = Layer(KIND, (4,))


def test_layer_lists_name_it() -> None:
    assert "'strat-M' or 'back-M'" in grammar()
"""


def test_a_plugin_adds_a_kind(server: Server, tmp_path: Path) -> None:
    """With a module and a record, and one line for each layer that it wants tested."""
    (tmp_path / "backwards.py").write_text(PLUGIN, encoding="utf-8")
    (tmp_path / "test_backwards.py").write_text(TEST, encoding="utf-8")
    program = (
        f"import sys, pytest; sys.path[:0] = {[str(tmp_path), str(REPOSITORY)]}; sys.exit(pytest.main(sys.argv[1:]))"
    )
    options = ["-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)]
    done = server.run_program(program, tmp_path, *options)
    assert done.code == 0, done.printed
    found = re.search(r"(\d+) passed", done.printed)
    assert found is not None and int(found[1]) > 20


def test_commands_read_models_with_a_kind_of_a_plugin(server: Server, corpora: Corpora, tmp_path: Path) -> None:
    package, moved, model = (tmp_path / name for name in ("backwards", "elsewhere/backwards", "model"))
    package.mkdir()
    (package / "__init__.py").write_text(PLUGIN, encoding="utf-8")
    arguments = [*BARE_LANGUAGE_MODEL, "--stack-layers", "sdpa,back-4", *TRAINING, "--save-dir", model]
    training = ["fairseq-train", corpora.language_modeling, "--user-dir", package, *arguments]
    assert server.run([str(word) for word in training], tmp_path).code == 0

    def score(*options: str) -> Ending:
        command = ["fairseq-stack", "surprisal", str(model), "--data", str(corpora.language_modeling), *options]
        return server.run(command, tmp_path, stdin="a b c\n")

    recorded, given = score(), score("--user-dir", str(package))
    assert recorded.code == 0 and recorded.printed == given.printed
    assert f"was trained with --user-dir {package}: importing it\n" in recorded.errors
    assert "importing" not in given.errors
    moved.parent.mkdir()
    package.rename(moved)
    assert score("--user-dir", str(moved)).printed == recorded.printed
    lost = score()
    assert lost.code == 2 and f"with --user-dir {package}, which does not exist; if the model needs it," in lost.errors
    assert (
        score("--user-dir", "no").last_line == "fairseq-stack: error: --user-dir no: expected the folder of a package"
    )
    (moved / "__init__.py").write_text("import nothing_of_that_name", encoding="utf-8")
    message = f"--user-dir {moved} cannot be imported: No module named 'nothing_of_that_name'"
    assert score("--user-dir", str(moved)).last_line == f"fairseq-stack: error: {message}"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({}, "there already is a kind of layer called 'strat'"),
        ({"name": "strat2"}, "expected lower-case letters, got 'strat2'"),
        ({"name": "new", "examples": ((1, 2),)}, "new: expected examples of 1 sizes"),
        ({"name": "new", "examples": ()}, "new: expected examples of 1 sizes"),
        ({"name": "new", "sizes": (Size("M", "heads"),)}, "new: the letter M already means size of the stack vectors"),
        ({"name": "new", "sizes": (Size("D", "depth"),)}, "new: the letter D already means steps that the stack remem"),
    ],
)
def test_wrong_records(change: dict[str, object], message: str) -> None:
    before = kinds()
    with pytest.raises(ValueError, match=re.escape(message)):
        register(replace(STRATIFICATION, **change))  # type: ignore[arg-type]
    assert kinds() == before


def test_a_kind_that_a_model_cannot_have(monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = replace(SUPERPOSITION, models=("pushdown_transformer_lm",))
    monkeypatch.setitem(sys.modules["fairseq_stack.kinds.register"]._KINDS, "sup", elsewhere)
    options = type("Options", (), {"stack_layers": "sdpa,sup-4", "decoder_layers": None})()
    message = (
        "--stack-layers: sup-4 is superposition stack attention, which stack_transformer_lm cannot have: it needs "
        "--arch pushdown_transformer_lm"
    )
    with pytest.raises(UserError, match=re.escape(message)):
        settle_layers(options, "stack_layers", "decoder_layers", "stack_transformer_lm")
    settle_layers(options, "stack_layers", "decoder_layers", "pushdown_transformer_lm")
