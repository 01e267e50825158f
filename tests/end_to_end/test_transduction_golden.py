"""Neural stacks that an independent implementation trained, on the authors' test sets."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import torch

from fairseq_stack.hub.interface import load
from fairseq_stack.hub.transductions import load_split, require_transductions, transduce
from tests.end_to_end.fairseq_commands import run
from tests.end_to_end.test_transduction import TRAINING, prepare
from tests.helpers import each_golden_file


@each_golden_file("neural_stacks/trained_*.npz")
def test_golden_accuracy_on_the_authors_test_set(path: Path, tmp_path: Path) -> None:
    """Trained parameters in a checkpoint, and the authors' 1,000 strings as prepare writes them."""
    golden = np.load(path)
    name = re.fullmatch(r"trained_(.+?)(_buffered)?_(linear|lstm)", path.stem)
    assert name is not None
    task, buffered, controller = name.groups()
    corpus = prepare(tmp_path / "corpus", task, "--train-size", 1, "--valid-size", 1)
    arch = f"neural_stack{buffered or ''}_{controller}{'_xor' if 'xor' in task else ''}_2018"
    run("train", corpus / "data-bin", "--arch", arch, *TRAINING, "--max-update", 1, "--save-dir", tmp_path)
    checkpoint = tmp_path / "checkpoint_last.pt"
    state = torch.load(checkpoint, weights_only=False)
    state["model"] |= {
        f"encoder.network.{name.removeprefix('param_')}": torch.tensor(golden[name])
        for name in golden
        if name.startswith("param_")
    }
    torch.save(state, checkpoint)
    hub = require_transductions(load(checkpoint, corpus / "data-bin"))
    load_split(hub, "test")
    hub.models.double()
    strings = list(transduce(hub, "test", batch_size=100))
    _, scored, correct = map(sum, zip(*strings, strict=True))
    assert (scored, correct) == (golden["scored_of_1000"], golden["correct_of_1000"])
