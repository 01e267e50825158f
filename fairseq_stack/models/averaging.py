"""The average of checkpoints: one model whose parameters are the means of the parameters of several models."""

from __future__ import annotations

import re
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from fairseq.models import MODEL_REGISTRY
from torch import Tensor

from fairseq_stack.compat.checkpoint_utils import is_uninitialised
from fairseq_stack.errors import UserError
from fairseq_stack.files import require_writable, written_whole
from fairseq_stack.models.checkpoints import FINGERPRINT
from fairseq_stack.models.presets import PRESETS

EPOCHS = re.compile(r"checkpoint(\d+)\.pt")
UPDATES = re.compile(r"checkpoint_\d+_(\d+)\.pt")

# All options of our models can change what parameters of the same names and shapes mean, except these.
_WITHOUT_MEANING = {
    # used in training only
    *("dropout", "attention_dropout", "activation_dropout", "relu_dropout", "adaptive_softmax_dropout"),
    *("decoder_dropout_in", "decoder_dropout_out", "encoder_layerdrop", "decoder_layerdrop"),
    *("quant_noise_pq", "quant_noise_pq_block_size", "quant_noise_scalar"),
    *("stack_init", "stack_init_scale", "encoder_embed_path", "decoder_embed_path"),
    # the names and shapes of parameters tell
    *("encoder_layers", "encoder_embed_dim", "encoder_ffn_embed_dim", "decoder_layers", "decoder_embed_dim"),
    *("decoder_ffn_embed_dim", "decoder_input_dim", "decoder_output_dim", "decoder_hidden_size", "hidden_size"),
    *("vector_size", "attachment_size", "attachment_depth_size", "adaptive_input_factor", "adaptive_softmax_factor"),
    # how the same is computed, and of which inputs
    *("checkpoint_activations", "offload_activations", "min_params_to_wrap", "export"),
    *("max_source_positions", "max_target_positions"),
}

State = dict[str, Any]


def last_checkpoints(folder: Path, pattern: re.Pattern[str], count: int, upper_bound: int | None = None) -> list[Path]:
    """The last checkpoints of a training run, the newest first.

    Args:
        folder: the ``--save-dir`` of the training run.
        pattern: matches the names, with the epoch or the update as its group: :data:`EPOCHS` or :data:`UPDATES`.
        count: how many checkpoints.
        upper_bound: the highest epoch or update to take.

    Raises:
        UserError: there is no such folder, or it holds fewer checkpoints.
    """
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder: expected the --save-dir of a training run")
    matches = {path: pattern.fullmatch(path.name) for path in folder.iterdir()}
    numbers = {path: int(match[1]) for path, match in matches.items() if match}
    within = [path for path, number in numbers.items() if upper_bound is None or number <= upper_bound]
    if len(within) < count:
        example = "checkpoint12.pt" if pattern is EPOCHS else "checkpoint_12_3000.pt"
        bound = "" if upper_bound is None else f" up to number {upper_bound}"
        raise UserError(
            f"{folder}: expected at least {count} checkpoints with names such as {example}{bound}, found {len(within)}"
        )
    return sorted(within, key=lambda path: numbers[path], reverse=True)[:count]


def average_checkpoints(paths: Sequence[Path], output: Path, force: bool = False) -> None:
    r"""Write a checkpoint whose parameters are :math:`\frac{1}{n} \sum_{i=1}^{n} \theta_i`, added up in float64.

    It has the configuration of the first checkpoint and no optimizer state. ``output`` is written whole or not at all.

    Args:
        paths: the checkpoints, of models of the same architecture and vocabulary.
        output: the file to write.
        force: replace ``output`` if it exists.

    Raises:
        UserError: a file is missing, not a checkpoint, given twice, not finite or of a different model from the first;
            or ``output`` exists, is one of ``paths``, or cannot be written.
    """
    _check_files(paths, output, force)
    first = _read(paths[0])
    sums = _start(first["model"])
    for path in paths[1:]:
        state = _read(path)
        _check_same_model(first, state, paths[0], path)
        for name in sums:
            sums[name] += state["model"][name]
    first["model"] = _with_means(first["model"], sums, len(paths))
    first.pop("last_optimizer_state", None)
    for name in ("ema", "ema_fp32_params"):  # a moving average of one of the checkpoints
        first.get("extra_state", {}).pop(name, None)
    _write(first, output)


def _check_files(paths: Sequence[Path], output: Path, force: bool) -> None:
    if not paths:
        raise UserError("expected checkpoints to average, got none")
    for index, path in enumerate(paths):
        if path.is_dir():
            raise UserError(
                f"{path} is a folder: name checkpoints in it, or the folder alone with --num-epoch-checkpoints N or "
                "--num-update-checkpoints N"
            )
        if not path.is_file():
            raise UserError(f"{path}: no such checkpoint")
        if any(path.samefile(other) for other in paths[:index]):
            raise UserError(f"{path} is given twice: expected different checkpoints")
        if output.exists() and output.samefile(path):
            raise UserError(f"--output {output} is one of the checkpoints to average: expected another file")
    if output.is_dir():
        raise UserError(f"--output {output} is a folder: expected the name of a file")
    if output.exists() and not force:
        raise UserError(f"--output {output} already exists; give --force to replace it")
    if not output.absolute().parent.is_dir():
        raise UserError(f"--output {output}: there is no folder {output.parent}")
    require_writable(output)


def _read(path: Path) -> State:
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except OSError:
        raise
    except Exception as error:  # torch raises many kinds for damaged files and for files of other kinds
        raise UserError(f"{path} is not a fairseq checkpoint, or is damaged: torch cannot read it") from error
    if not (isinstance(state, dict) and isinstance(state.get("model"), dict) and state.get("cfg")):
        raise UserError(f"{path} is not a fairseq 0.12 checkpoint: expected the entries 'model' and 'cfg'")
    for name, value in state["model"].items():
        if not isinstance(value, Tensor):
            raise UserError(f"{path}: the parameter {name} is a {type(value).__name__}, expected a tensor")
        if not is_uninitialised(name) and not value.isfinite().all():
            raise UserError(f"{path}: the parameter {name} is not finite; leave this checkpoint out")
    return state


def _start(parameters: dict[str, Tensor]) -> dict[str, Tensor]:
    """The parameters in float64, without integers, which are not averaged."""
    return {
        name: value.to(torch.float64, copy=True)  # a copy each, where parameters share memory
        for name, value in parameters.items()
        if value.is_floating_point() and not is_uninitialised(name)
    }


def _check_same_model(first: State, other: State, first_path: Path, path: Path) -> None:
    def refuse(difference: str) -> None:
        raise UserError(f"{path} belongs to a different model than {first_path}: {difference}")

    expected, got = first["model"], other["model"]
    for name, value in expected.items():
        if name.endswith(FINGERPRINT) and name in got and not torch.equal(got[name], value):
            refuse("its dictionary has different symbols, or the same symbols in another order")
    for one, two, verdict in ((expected, got, "has no parameter"), (got, expected, "has an extra parameter,")):
        missing = [name for name in one if name not in two]
        if missing:
            refuse(f"it {verdict} {missing[0]}" + (f", and {len(missing) - 1} more" if missing[1:] else ""))
    for name, value in expected.items():
        if got[name].shape != value.shape:
            refuse(f"{name} has the shape {tuple(got[name].shape)}, expected {tuple(value.shape)}")
        if not value.is_floating_point() and not torch.equal(got[name], value):
            refuse(f"{name} cannot be averaged, and its values differ")
    options, others = _options(first), _options(other)
    for name in options_with_meaning():
        if (options.get(name) or None) != (others.get(name) or None):  # an option that is off may be absent
            flag = f"--{name.replace('_', '-')}"
            refuse(f"it was trained with {flag} {others.get(name)}, expected {options.get(name)}")
    for name, tied_to in _tied(expected).items():
        if not is_uninitialised(name) and not (got[name] == got[tied_to]).all():
            refuse(f"its {tied_to} and {name} differ; expected one shared parameter")


def options_with_meaning() -> list[str]:
    """The options that models of different meaning differ in; an option that is new here is one of them."""
    parser = ArgumentParser(add_help=False, conflict_handler="resolve")
    for model in PRESETS:
        MODEL_REGISTRY[model].add_args(parser)
    return [action.dest for action in parser._actions if action.dest not in _WITHOUT_MEANING]


def _options(state: State) -> dict[str, Any]:
    model = state["cfg"]["model"]
    return vars(model) if isinstance(model, Namespace) else dict(model)


def _tied(parameters: dict[str, Tensor]) -> dict[str, str]:
    """The parameters that share memory with an earlier parameter, each with the name of the first one."""
    names: dict[tuple[int, torch.Size, tuple[int, ...]], str] = {}
    first_names = {
        name: names.setdefault((value.data_ptr(), value.shape, value.stride()), name)
        for name, value in parameters.items()
    }
    return {name: first for name, first in first_names.items() if name != first}


def _with_means(parameters: dict[str, Tensor], sums: dict[str, Tensor], count: int) -> dict[str, Tensor]:
    """``parameters`` with their means, in their own types; parameters that share memory still do."""
    tied = _tied(parameters)
    averaged = type(parameters)(parameters)
    for name, total in sums.items():
        averaged[name] = averaged[tied[name]] if name in tied else (total / count).to(parameters[name].dtype)
    return averaged


def _write(state: State, output: Path) -> None:
    try:
        with written_whole(output) as file:
            torch.save(state, file)
    except RuntimeError as error:
        # torch may raise an error of its own while it handles the error of the file system.
        reason = getattr(error.__context__, "strerror", None) or str(error).splitlines()[0]
        raise UserError(f"cannot write {output}: {reason}") from error
