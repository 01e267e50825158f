"""The command ``fairseq-stack export``, and what becomes of a folder where there is no fairseq."""

from __future__ import annotations

import ast
import json
import os
import re
import stat
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers")

from fairseq_stack import cli
from fairseq_stack.hub.interface import LanguageModelHub, load
from fairseq_stack_preprocess.errors import PrepareError
from tests.commands.running import Server
from tests.commands.without import FAIRSEQ, run_without
from tests.documents import Document, run_block
from tests.huggingface.conftest import EXAMPLES

NAMES = ("tf-nd-padded-reversal", "lstm-sup-marked-reversal", "tf-nd-nested-translation")
FILES = {
    "README.md", "config.json", "dict.txt", "generation_config.json", "model.safetensors", "modeling_fairseq_stack.py",
    "tokenizer.json", "tokenizer_config.json",
}  # fmt: skip


@pytest.fixture(scope="module")
def folders(exported: Any) -> dict[str, Any]:
    return {name: exported(EXAMPLES / name) for name in NAMES}


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "new" / "exported"
    assert cli.main(["export", str(EXAMPLES / NAMES[0]), str(folder)]) == 0
    printed = capsys.readouterr()
    assert printed.out == f"{folder}\n"
    assert "%" not in printed.err
    assert {path.name for path in folder.iterdir()} == FILES
    umask = os.umask(0)
    os.umask(umask)
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o666 & ~umask}
    config = json.loads((folder / "config.json").read_text())
    assert config["stack_layers"] == "sdpa,sdpa,nd-3-3-5,sdpa,sdpa"
    assert config["architectures"] == ["StackTransformerForCausalLM"]
    assert str(EXAMPLES) not in "".join(path.read_text() for path in folder.glob("*.json"))
    assert cli.main(["export", str(EXAMPLES / NAMES[0]), str(folder)]) == 2
    assert f"{folder} already exists; name a new folder" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["pushdown-dyck", "neural-stack-reversal"])
def test_other_models(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["export", str(EXAMPLES / name), str(tmp_path / "new")]) == 2
    assert "expected a stack_transformer, stack_transformer_lm or stack_lstm_lm, got" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exported: Any) -> None:
    from fairseq_stack.huggingface import export as module

    def fail(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    hub = exported(EXAMPLES / NAMES[0]).hub
    monkeypatch.setattr(module, "readme", fail)
    with pytest.raises(PrepareError, match="No space left on device"):
        module.export(hub, tmp_path / "new" / "exported")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("option", ["--tokenizer", "--bpe"])
def test_text_that_fairseq_prepares(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exported: Any
) -> None:
    from fairseq_stack.errors import UserError
    from fairseq_stack.huggingface.export import export

    hub = exported(EXAMPLES / NAMES[0]).hub
    monkeypatch.setattr(hub, option.removeprefix("--"), object())
    with pytest.raises(UserError, match=f"{option}: a model whose text"):
        export(hub, tmp_path / "exported")


def test_the_page(tmp_path: Path, server: Server) -> None:
    """The command of the documentation, and its program, without fairseq."""
    (tmp_path / "examples").symlink_to(EXAMPLES.parent)
    page = Document("docs/huggingface.md")
    (command,), (program, *_) = page.blocks("bash"), page.blocks("python")
    assert run_block(command, tmp_path, server) == "exported\n"
    outputs, log_probability = run_without(FAIRSEQ, program, folder=tmp_path).splitlines()
    for string in ast.literal_eval(outputs):
        first, second = string.split(" # ")
        assert second == first[::-1]
    hub = load(EXAMPLES / "tf-sup-marked-reversal")
    assert isinstance(hub, LanguageModelHub)
    expected = float(hub.score("0 1 # 1 0")["positional_scores"].sum())
    assert float(log_probability.removeprefix("tensor(").removesuffix(")")) == pytest.approx(expected, abs=1e-3)


def test_the_readme(folders: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """Its code prints the same without fairseq, by the code of the folder, which does not know of this package."""
    monkeypatch.chdir(tmp_path)
    programs = []
    for name, model in folders.items():
        (tmp_path / name).symlink_to(model.folder)
        text = (model.folder / "README.md").read_text()
        _, code, _ = text.replace(f'"{model.folder.name}', f'"{name}').split("```")
        programs.append(code.removeprefix("python\n"))
    program = "\n".join(programs)
    exec(program, {})
    expected = capsys.readouterr().out
    assert [line[:2] for line in expected.splitlines()] == ["['"] * len(NAMES)
    trusting = re.sub(r'(from_pretrained\(".*?")', r"\1, trust_remote_code=True", program)
    assert run_without(FAIRSEQ, trusting.replace("import fairseq_stack.huggingface\n", ""), folder=tmp_path) == expected
