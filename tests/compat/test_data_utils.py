"""Batches, that no sentence is left out of them, and the processes that read them."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairseq.data.iterators import BufferedIterator
from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter

import fairseq_stack
from fairseq_stack import compat
from fairseq_stack.errors import UserError
from tests.commands.running import Server

USER_DIR = str(Path(fairseq_stack.__file__).parent)
pytestmark = pytest.mark.usefixtures("shims")


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


def test_workers_end_with_their_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    """When as many batches are read as fairseq has counted, and not when garbage is collected."""
    compat.apply()
    iterators: list[Any] = []
    init = _MultiProcessingDataLoaderIter.__init__

    def noted_init(self: Any, loader: Any) -> None:
        iterators.append(self)
        init(self, loader)

    monkeypatch.setattr(_MultiProcessingDataLoaderIter, "__init__", noted_init)
    buffered = BufferedIterator(2, DataLoader(range(6), batch_size=2, num_workers=1))  # type: ignore[arg-type]
    assert [batch.tolist() for batch in buffered] == [[0, 1], [2, 3], [4, 5]]
    buffered._consumer.join()
    (iterator,) = iterators
    assert iterator._shutdown
    assert not any(worker.is_alive() for worker in iterator._workers)


READING_AHEAD = """
import sys
import torch
from fairseq.data.iterators import BufferedIterator
from fairseq_stack import compat

class Batches:
    def __len__(self):
        return 1000

    def __iter__(self):
        for _ in range(1000):
            for _ in range(200):
                torch.ones(1000)
            yield torch.ones(10)

compat.apply()
batches = BufferedIterator(int(sys.argv[1]), Batches())
next(batches)
"""


@pytest.mark.parametrize("size", [1, 2000])
def test_process_ends_while_batches_are_read_ahead(size: int) -> None:
    """Without the shim, a reader that frees tensors aborts the process (2,000); a waiting reader does not (1)."""
    command = [sys.executable, "-c", READING_AHEAD, str(size)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (result.returncode, result.stderr) == (0, "")


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


def test_default_of_all_commands_is_1(server: Server, tmp_path: Path) -> None:
    ending = server.run_program(PARSERS, tmp_path, USER_DIR)
    assert ending.code == 0, ending.errors
    output = ending.printed
    assert "without [8, 8, 8, 8, 8]" in output, "fairseq's default is another: is the shim still needed?"
    assert "with [1, 1, 1, 1, 1]" in output
    assert "given [8, 8, 8, 8, 8]" in output


def run_all(server: Server, folder: Path, commands: str) -> str:
    """The output, both streams, of a command in each line."""
    said = ""
    for line in commands.splitlines():
        ending = server.run(shlex.split(line), folder)
        assert ending.code == 0, ending.errors
        said += ending.printed + ending.errors
    return said


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


def test_commands_use_all_37_sentences(server: Server, sentences: Path) -> None:
    data = f"data-mt --user-dir {shlex.quote(USER_DIR)} --cpu --batch-size 100 --num-workers 0"
    commands = f"""\
fairseq-preprocess -s de -t en --trainpref train --validpref valid --testpref test --destdir data-mt
fairseq-train {data} --arch transformer_tiny --optimizer adam --lr 0.001 --max-update 1 --log-format json
fairseq-validate {data} --task translation --path checkpoints/checkpoint_last.pt --log-format json
fairseq-generate {data} --path checkpoints/checkpoint_last.pt --beam 1 --max-len-b 5"""
    output = run_all(server, sentences, commands)
    assert '"train_bsz": "37"' in output
    assert output.count('"valid_bsz": "37"') == 2, "one from fairseq-train, one from fairseq-validate"
    assert "Translated 37 sentences" in output


def test_hydra_train_uses_all_37_sentences(server: Server, sentences: Path) -> None:
    """Its default is still 8, since it reads defaults before plugins; but the last batch is kept."""
    (sentences / "small.yaml").write_text(HYDRA_CONFIG.format(user_dir=USER_DIR))
    commands = """\
fairseq-preprocess --only-source --trainpref train.de --validpref valid.de --destdir data
fairseq-hydra-train --config-dir . --config-name small"""
    output = run_all(server, sentences, commands)
    assert '"train_bsz": "18.5", "train_num_updates": "2"' in output, "batches of 32 and 5"
    assert '"valid_bsz": "18.5"' in output
