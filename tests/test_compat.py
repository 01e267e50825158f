"""The shims: what they let through, what they still refuse, and that no sentence is dropped."""

from __future__ import annotations

import ast
import os
import pickle
import shlex
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import fairseq_stack
from fairseq_stack import compat
from fairseq_stack.compat import numerics, versions
from fairseq_stack.errors import UserError
from tests.helpers import assert_normwise_close

USER_DIR = str(Path(fairseq_stack.__file__).parent)


@pytest.fixture(autouse=True)
def shims() -> None:
    compat.apply()


# The version of fairseq


@pytest.mark.parametrize("version", ["0.12.3", "0.12.3.1", "0.12.3.4"])
def test_supported_versions_are_accepted(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairseq.__version__", version)
    versions.require_supported_fairseq()


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        ("0.12.2", "self-attention cannot be replaced"),
        ("0.10.2", "got version 0.10.2"),
        ("0.12.30", "0.12.30"),
    ],
)
def test_unsupported_versions_are_refused(version: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairseq.__version__", version)
    with pytest.raises(ImportError, match=reason) as refusal:
        compat.apply()
    assert "pip install --no-build-isolation fairseq-fixed" in str(refusal.value)


def test_missing_fairseq_is_an_error_that_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fairseq", None)
    with pytest.raises(ImportError, match=r"needs fairseq .*pip install"):
        compat.apply()


def test_fairseq_that_cannot_be_imported_is_an_error_that_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As 0.12.2 on Python 3.11."""
    (tmp_path / "fairseq.py").write_text("raise ValueError('mutable default CommonConfig')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "fairseq")
    with pytest.raises(ImportError, match=r"mutable default CommonConfig.*0\.12\.2.*pip uninstall fairseq"):
        compat.apply()


# numpy


def test_numpy_compat_long_is_int(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(np, "compat", raising=False)
    versions.restore_numpy_compat()
    assert vars(np)["compat"].long is int


def test_numpy_1_keeps_its_own_compat(monkeypatch: pytest.MonkeyPatch) -> None:
    own = SimpleNamespace()
    monkeypatch.setattr(np, "compat", own, raising=False)
    versions.restore_numpy_compat()
    assert vars(np)["compat"] is own


# Checkpoints


class Malicious:
    """Creates a file when it is unpickled."""

    def __init__(self, victim: Path) -> None:
        self.victim = victim

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str]]:
        return os.mkdir, (str(self.victim),)


def fairseq_like_checkpoint() -> dict[str, Any]:
    metrics = [("valid", "_bleu_counts", np.array([4, 3, 2, 1]))]
    return {
        "cfg": {"model": Namespace(arch="stack_transformer", stack_encoder_layers="2xsdpa")},
        "model": {"weight": torch.arange(3.0)},
        "extra_state": {"metrics": metrics},
    }


@pytest.fixture
def no_safe_globals() -> Iterator[None]:
    known = torch.serialization.get_safe_globals()
    torch.serialization.clear_safe_globals()
    yield
    torch.serialization.clear_safe_globals()
    torch.serialization.add_safe_globals(known)


def test_namespace_and_integer_metrics_load(tmp_path: Path, no_safe_globals: None) -> None:
    torch.save(fairseq_like_checkpoint(), tmp_path / "checkpoint.pt")
    with pytest.raises(pickle.UnpicklingError):
        torch.load(tmp_path / "checkpoint.pt")
    versions.allow_checkpoint_globals()
    loaded = torch.load(tmp_path / "checkpoint.pt")
    assert loaded["cfg"]["model"] == Namespace(arch="stack_transformer", stack_encoder_layers="2xsdpa")
    assert loaded["extra_state"]["metrics"][0][2].tolist() == [4, 3, 2, 1]


def test_allow_list_has_five_entries(no_safe_globals: None) -> None:
    versions.allow_checkpoint_globals()
    versions.allow_checkpoint_globals()
    assert len(torch.serialization.get_safe_globals()) == 5


@pytest.mark.parametrize("place", ["top level", "namespace", "object array"])
def test_malicious_checkpoint_is_refused(place: str, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    bomb: Any = Malicious(victim)
    checkpoint = fairseq_like_checkpoint()
    if place == "namespace":
        checkpoint["cfg"]["model"].arch = bomb
    else:
        checkpoint["extra_state"]["bomb"] = bomb if place == "top level" else np.array([bomb], dtype=object)
    torch.save(checkpoint, tmp_path / "checkpoint.pt")
    with pytest.raises(pickle.UnpicklingError):
        torch.load(tmp_path / "checkpoint.pt")
    assert not victim.exists()
    torch.load(tmp_path / "checkpoint.pt", weights_only=False)
    assert victim.exists(), "the checkpoint was harmless, so this test proves nothing"


# Precision


@pytest.mark.parametrize("function", ["softmax", "log_softmax"])
@pytest.mark.parametrize(
    ("dtype", "computed_in"),
    [
        (torch.float16, torch.float32),
        (torch.bfloat16, torch.float32),
        (torch.float32, torch.float32),
        (torch.float64, torch.float64),
    ],
    ids=str,
)
def test_softmax_rounds_nothing_down(function: str, dtype: torch.dtype, computed_in: torch.dtype) -> None:
    from fairseq import utils

    logits = torch.randn(3, 5, dtype=torch.float64).to(dtype)
    expected = getattr(torch, function)(logits.to(computed_in), dim=-1)
    assert torch.equal(getattr(utils, function)(logits, dim=-1), expected)


# Label smoothing

Loss = Callable[..., tuple[Tensor, Tensor]]
POSSIBLE = [0, 2, 3, 6]  # of 8 symbols
PAD = 1


@pytest.fixture(scope="module")
def fairseq_loss() -> Loss:
    """fairseq's own function, from its file, since the shim has taken its place."""
    from fairseq.criterions import label_smoothed_cross_entropy

    source = Path(label_smoothed_cross_entropy.__file__).read_text()
    functions = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    namespace: dict[str, Any] = {}
    exec(compile(ast.Module([functions[0]], []), "label_smoothed_cross_entropy.py", "exec"), namespace)
    return namespace["label_smoothed_nll_loss"]


def compact_log_probabilities(rows: int) -> Tensor:
    logits = torch.full((rows, 8), -torch.inf, dtype=torch.float64)
    logits[:, POSSIBLE] = torch.randn(rows, len(POSSIBLE), dtype=torch.float64)
    return logits.log_softmax(dim=-1).requires_grad_()


@pytest.mark.parametrize("reduce", [True, False], ids=["sum", "each"])
@pytest.mark.parametrize("ignore_index", [None, PAD], ids=["all", "no-pad"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_loss_is_bit_identical_to_fairseqs_without_impossible_symbols(
    fairseq_loss: Loss, dtype: torch.dtype, ignore_index: int | None, reduce: bool
) -> None:
    lprobs = torch.randn(30, 8, dtype=dtype).log_softmax(dim=-1).requires_grad_()
    target = torch.randint(8, (30,))
    results = []
    for function in (numerics.label_smoothed_nll_loss, fairseq_loss):
        losses = function(lprobs, target, 0.1, ignore_index=ignore_index, reduce=reduce)
        results.append([*losses, *torch.autograd.grad(losses[0].sum(), lprobs)])
    for ours, fairseqs in zip(*results, strict=True):
        assert ours.dtype == fairseqs.dtype
        assert torch.equal(ours, fairseqs)


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
@pytest.mark.parametrize("ignore_index", [None, PAD], ids=["all", "no-pad"])
def test_loss_is_fairseqs_of_the_reduced_vocabulary(
    fairseq_loss: Loss, ignore_index: int | None, epsilon: float
) -> None:
    lprobs = compact_log_probabilities(12)
    target = torch.tensor(POSSIBLE * 3)
    reduced = lprobs.detach()[:, POSSIBLE].requires_grad_()
    reduced_target = torch.arange(len(POSSIBLE)).repeat(3)
    if ignore_index is not None:
        target[5], reduced_target[5] = PAD, -1
    ours = numerics.label_smoothed_nll_loss(lprobs, target, epsilon, ignore_index)
    kept = reduced_target >= 0
    expected = fairseq_loss(reduced[kept], reduced_target[kept], epsilon)
    gradient, expected_gradient = (
        torch.autograd.grad(loss, inputs)[0] for loss, inputs in ((ours[0], lprobs), (expected[0], reduced))
    )
    assert_normwise_close(torch.stack(ours), torch.stack(expected), 1e-14, "loss and nll")
    assert_normwise_close(gradient[:, POSSIBLE], expected_gradient, 1e-14, "gradient")
    impossible = sorted(set(range(8)) - set(POSSIBLE))
    assert torch.equal(gradient[:, impossible], torch.zeros(12, len(impossible), dtype=torch.float64))


def test_impossible_target_costs_infinity() -> None:
    loss, nll_loss = numerics.label_smoothed_nll_loss(compact_log_probabilities(2), torch.tensor([0, 5]), 0.1)
    assert loss.item() == nll_loss.item() == float("inf")


def test_nan_is_not_hidden() -> None:
    lprobs = torch.zeros(2, 8)
    lprobs[0, 3] = torch.nan
    loss, _ = numerics.label_smoothed_nll_loss(lprobs, torch.tensor([0, 1]), 0.1)
    assert loss.isnan()


def test_no_rows_cost_nothing() -> None:
    loss, nll_loss = numerics.label_smoothed_nll_loss(torch.zeros(0, 8), torch.zeros(0, dtype=torch.long), 0.1)
    assert loss.item() == nll_loss.item() == 0.0


def test_all_criterions_of_fairseq_use_it() -> None:
    users = [
        module
        for name, module in sys.modules.items()
        if name.startswith("fairseq.criterions.") and hasattr(module, "label_smoothed_nll_loss")
    ]
    assert len(users) >= 2
    assert all(user.label_smoothed_nll_loss is numerics.label_smoothed_nll_loss for user in users)


def test_criterion_is_finite_on_a_compact_vocabulary() -> None:
    from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion

    class Model:
        def get_normalized_probs(self, net_output: Tensor, log_probs: bool) -> Tensor:
            return net_output.log_softmax(dim=-1)

        def get_targets(self, sample: dict[str, Tensor], net_output: Tensor) -> Tensor:
            return sample["target"]

    task = SimpleNamespace(target_dictionary=SimpleNamespace(pad=lambda: PAD))
    criterion = LabelSmoothedCrossEntropyCriterion(task, sentence_avg=False, label_smoothing=0.1)
    logits = compact_log_probabilities(6).detach().requires_grad_()
    sample = {"target": torch.tensor([0, 2, 3, 6, PAD, PAD])}
    loss, _ = criterion.compute_loss(Model(), logits, sample)
    (gradient,) = torch.autograd.grad(loss, logits)
    assert loss.isfinite()
    assert gradient.isfinite().all()
    assert gradient[4:].eq(0).all(), "pads have no gradient"


# Batches


@pytest.mark.parametrize("multiple", [1, 8])
@pytest.mark.parametrize("size", [0, 5, 8, 37, 40])
@pytest.mark.parametrize("limits", [{"max_sentences": 16}, {"max_tokens": 90}], ids=["sentences", "tokens"])
def test_every_sentence_is_in_one_batch(limits: dict[str, int], size: int, multiple: int) -> None:
    from fairseq.data import data_utils

    lengths = np.sort(np.random.RandomState(0).randint(1, 12, size=size)).astype(np.int64)
    for indices in (np.arange(size), range(size)):
        batches = data_utils.batch_by_size(
            indices,
            num_tokens_fn=lambda i: lengths[i],
            num_tokens_vec=lengths,
            required_batch_size_multiple=multiple,
            **limits,
        )
        assert [i for batch in batches for i in batch] == list(range(size))
        full = [len(batch) for batch in batches[:-1]]
        assert all(length % multiple == 0 or length < multiple for length in full)


def test_sentence_that_fits_into_no_batch() -> None:
    from fairseq.data import data_utils

    lengths = np.array([3, 9, 5])
    message = "--max-tokens .*: expected at least 9, the number of tokens of the longest sentence, got 8"
    for known in (None, lengths):
        with pytest.raises(UserError, match=message):
            data_utils.batch_by_size(np.arange(3), lambda i: lengths[i], num_tokens_vec=known, max_tokens=8)


def test_batch_size_is_what_was_asked_for() -> None:
    from fairseq.data import data_utils
    from fairseq.dataclass.configs import DatasetConfig

    batches = data_utils.batch_by_size(
        np.arange(30),
        num_tokens_fn=lambda i: 1,
        max_sentences=12,
        required_batch_size_multiple=DatasetConfig().required_batch_size_multiple,
    )
    assert [len(batch) for batch in batches] == [12, 12, 6]


def test_applying_twice_wraps_once() -> None:
    from fairseq.data import data_utils

    before = data_utils.batch_by_size
    compat.apply()
    assert data_utils.batch_by_size is before


def test_dataclass_takes_a_given_value() -> None:
    from fairseq.dataclass.configs import DatasetConfig

    assert DatasetConfig(required_batch_size_multiple=8).required_batch_size_multiple == 8
    assert DatasetConfig().num_workers == 1, "the other defaults are unchanged"


def run_python(program: str, *arguments: str, cwd: Path) -> str:
    """The output, both streams, of a Python program in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=cwd,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


PARSERS = """
import sys
from fairseq import options

def multiples(*arguments):
    found = []
    for name in ("training", "generation", "interactive_generation", "validation", "eval_lm"):
        sys.argv = [name, "data", *arguments]
        parser = getattr(options, f"get_{name}_parser")()
        found.append(parser.parse_known_args()[0].required_batch_size_multiple)
    return found

user_dir = sys.argv[1]
print("without", multiples())
print("with", multiples("--user-dir", user_dir))
print("given", multiples("--user-dir", user_dir, "--required-batch-size-multiple", "8"))
"""


def test_default_of_all_commands_is_1(tmp_path: Path) -> None:
    output = run_python(PARSERS, USER_DIR, cwd=tmp_path)
    assert "without [8, 8, 8, 8, 8]" in output, "fairseq's default is another: is the shim still needed?"
    assert "with [1, 1, 1, 1, 1]" in output
    assert "given [8, 8, 8, 8, 8]" in output


COMMANDS = """
import importlib, shlex, sys
for line in sys.argv[1].splitlines():
    command, *sys.argv[1:] = shlex.split(line)
    importlib.import_module(f"fairseq_cli.{command}").cli_main()
"""

HYDRA_CONFIG = """
hydra: {{run: {{dir: .}}}}
common: {{user_dir: '{user_dir}', cpu: true, log_format: json}}
task: {{_name: language_modeling, data: data, sample_break_mode: eos, tokens_per_sample: 64}}
model: {{_name: transformer_lm, decoder_embed_dim: 8, decoder_input_dim: 8, decoder_output_dim: 8,
         decoder_ffn_embed_dim: 8, decoder_layers: 1, decoder_attention_heads: 1}}
criterion: {{_name: cross_entropy}}
dataset: {{batch_size: 100, num_workers: 0}}
optimization: {{max_epoch: 1, lr: [0.001]}}
optimizer: {{_name: adam, adam_betas: "(0.9,0.999)"}}
lr_scheduler: {{_name: fixed}}
checkpoint: {{no_save: true}}
"""


@pytest.fixture
def sentences(tmp_path: Path) -> Path:
    """A folder with 37 pairs of sentences for each split."""
    words = np.random.RandomState(0).choice(list("abcdef"), size=(37, 6))
    for split in ("train", "valid", "test"):
        for language in ("de", "en"):
            lines = (" ".join(row[: 2 + i % 5]) + "\n" for i, row in enumerate(words))
            (tmp_path / f"{split}.{language}").write_text("".join(lines))
    return tmp_path


def test_commands_use_all_37_sentences(sentences: Path) -> None:
    data = f"data-mt --user-dir {shlex.quote(USER_DIR)} --cpu --batch-size 100 --num-workers 0"
    commands = f"""\
preprocess -s de -t en --trainpref train --validpref valid --testpref test --destdir data-mt
train {data} --arch transformer_tiny --optimizer adam --lr 0.001 --max-update 1 --log-format json
validate {data} --task translation --path checkpoints/checkpoint_last.pt --log-format json
generate {data} --path checkpoints/checkpoint_last.pt --beam 1 --max-len-b 5"""
    output = run_python(COMMANDS, commands, cwd=sentences)
    assert '"train_bsz": "37"' in output
    assert output.count('"valid_bsz": "37"') == 2, "one from fairseq-train, one from fairseq-validate"
    assert "Translated 37 sentences" in output


def test_hydra_train_uses_all_37_sentences(sentences: Path) -> None:
    """Its default is still 8, since it reads defaults before plugins; but the last batch is kept."""
    (sentences / "small.yaml").write_text(HYDRA_CONFIG.format(user_dir=USER_DIR))
    commands = """\
preprocess --only-source --trainpref train.de --validpref valid.de --destdir data
hydra_train --config-dir . --config-name small"""
    output = run_python(COMMANDS, commands, cwd=sentences)
    assert '"train_bsz": "18.5", "train_num_updates": "2"' in output, "batches of 32 and 5"
    assert '"valid_bsz": "18.5"' in output
