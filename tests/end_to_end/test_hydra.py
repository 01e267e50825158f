"""fairseq-hydra-train, and the configurations of the presets that it needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from omegaconf import OmegaConf

from tests.commands.running import Server
from tests.end_to_end.conftest import Corpora
from tests.end_to_end.fairseq_commands import USER_DIR, run

CONFIGS = Path(USER_DIR) / "configs"
TRAINING = [
    *("optimizer=adam", "optimization.lr=[0.01]", "optimization.max_epoch=2", "dataset.batch_size=10"),
    *("dataset.num_workers=0", "checkpoint.no_epoch_checkpoints=true", "common.cpu=true"),
    *("common.no_progress_bar=true", f"common.user_dir={USER_DIR}"),
]
SCORING = ["--sample-break-mode", "eos", "--gen-subset", "valid", "--num-workers", 0, "--cpu"]


def small(*sides: str) -> list[str]:
    """Overrides that make a preset small."""
    sizes = {"embed_dim": 16, "ffn_embed_dim": 16, "attention_heads": 2}
    return [f"model.{side}_{name}={size}" for side in sides for name, size in sizes.items()]


@pytest.fixture
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for what hydra writes into the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def last_checkpoint(folder: Path) -> dict[str, Any]:
    return torch.load(folder / "checkpoint_last.pt", weights_only=True)


def test_language_modeling_and_resuming(corpora: Corpora, working_folder: Path) -> None:
    data = ["task=language_modeling", f"task.data={corpora.language_modeling}", "task.sample_break_mode=eos"]
    model = ["model=stack_transformer_lm_nd_cfl", *small("decoder"), "task.tokens_per_sample=50"]
    command = ["--config-dir", CONFIGS, *data, *model, *TRAINING]
    trained = run("hydra-train", *command, f"checkpoint.save_dir={working_folder}/whole")
    run("hydra-train", *command, f"checkpoint.save_dir={working_folder}/parts", "optimization.max_update=4")
    run("hydra-train", *command, f"checkpoint.save_dir={working_folder}/parts")
    whole, parts = last_checkpoint(working_folder / "whole"), last_checkpoint(working_folder / "parts")
    assert all(torch.equal(parts["model"][name], whole["model"][name]) for name in whole["model"])
    checkpoint = working_folder / "whole" / "checkpoint_last.pt"
    scored = run("eval-lm", corpora.language_modeling, "--path", checkpoint, *SCORING)
    assert scored.validation_losses() == pytest.approx(trained.validation_losses()[-1:], abs=0.0006)


def test_options_that_the_plugin_adds(corpora: Corpora, working_folder: Path) -> None:
    """hydra, which does not know them before the plugin is imported, takes them with ``++``."""
    data = ["task=language_modeling", f"task.data={corpora.language_modeling}", "task.sample_break_mode=eos"]
    model = ["model=stack_transformer_lm_sup_cfl", *small("decoder"), "task.tokens_per_sample=50"]
    options = ["++dataset.validate_interval_sentences=20", "++checkpoint.exact_best_checkpoint_metric=true"]
    end = ["optimization.max_update=3", f"checkpoint.save_dir={working_folder}"]
    trained = run("hydra-train", "--config-dir", CONFIGS, *data, *model, *TRAINING, *options, *end)
    assert (working_folder / "checkpoint_1_2.pt").exists()
    assert not all(loss == round(loss, 3) for loss in trained.validation_losses())


def test_own_configuration(server: Server, corpora: Corpora, working_folder: Path) -> None:
    """A file of the user's with everything in it, and a task that is not known before the plugin is imported."""
    options: dict[str, Any] = {
        "hydra": {"run": {"dir": "."}},
        "common": {"user_dir": USER_DIR, "cpu": True, "no_progress_bar": True},
        "task": {"_name": "stack_translation", "data": str(corpora.translation)},
        "model": {
            "_name": "stack_transformer",
            "stack_encoder_layers": "sdpa,sup-4",
            "stack_decoder_layers": "nd-2-2-3",
            "compact_vocab": True,
            **{override.split("=")[0][6:]: int(override.split("=")[1]) for override in small("encoder", "decoder")},
        },
        "criterion": {"_name": "label_smoothed_cross_entropy", "label_smoothing": 0.1},
        "optimizer": {"_name": "adam"},
        "lr_scheduler": {"_name": "fixed"},
        "optimization": {"lr": [0.01], "max_epoch": 1},
        "dataset": {"batch_size": 10, "num_workers": 0},
        "checkpoint": {"save_dir": str(working_folder / "save")},
    }
    OmegaConf.save(OmegaConf.create(options), working_folder / "mine.yaml")
    command = ["fairseq-hydra-train", "--config-dir", str(working_folder), "--config-name", "mine"]
    ending = server.run(command, working_folder)
    assert ending.code == 0, ending.errors
    layers = {
        name.split(".")[2] for name in last_checkpoint(working_folder / "save")["model"] if "encoder.layers" in name
    }
    assert layers == {"0", "1"}


def test_wrong_layer_list(corpora: Corpora, working_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = ["task=translation", f"task.data={corpora.translation}", f"checkpoint.save_dir={working_folder}/save"]
    model = ["model=stack_transformer_nd_small", "model.stack_encoder_layers=spda"]
    with pytest.raises(SystemExit) as error:
        run("hydra-train", "--config-dir", CONFIGS, *data, *model, *TRAINING)
    assert error.value.code == 1
    said = capsys.readouterr().err
    assert "\n--stack-encoder-layers: layer list 'spda': expected" in said
    assert "Traceback" not in said
    assert not list((working_folder / "save").iterdir())
