"""From a folder with a GPT-2 to a model with more layers: at first, all of its surprisals are GPT-2's."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch

from fairseq_stack import cli
from tests.end_to_end.fairseq_commands import TRAINING, hub_of, run, tab_separated
from tests.gpt2_folders import save_gpt2, save_tokenizer
from tests.preprocess.trees.treebanks import CAT, DOG

FOR_PARSES = ["--task", "pushdown_language_modeling", "--arch", "pushdown_transformer_lm", "--zero-depths",
              "--criterion", "pushdown_cross_entropy"]  # fmt: skip
MODELS = {
    "pushdown": ["--stack-layers", "sdpa,pushdown+sup-3", *FOR_PARSES],
    "stack-transformer": [
        *("--task", "stack_language_modeling", "--arch", "stack_transformer_lm"),
        *("--stack-layers", "sdpa,sdpa+nd-2-2-3@4"),
    ],
}


@pytest.mark.parametrize("flags", MODELS.values(), ids=MODELS)
def test_surprisals_and_greedy_output(flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of models that were trained with the learning rate 0, also with the correction for the ends of words."""
    save_tokenizer(tmp_path / "gpt2", "The dog barks. A cat, the naïve one, does not bark at the dog.")
    gpt2 = save_gpt2(tmp_path / "gpt2", n_layer=2, n_positions=40)
    (tmp_path / "trees").write_text(CAT + DOG)
    splits = [word for split in ("train", "valid", "test") for word in (f"--{split}", str(tmp_path / "trees"))]
    corpus, folder, text = tmp_path / "corpus", tmp_path / "checkpoints", tmp_path / "text"
    assert cli.main(["prepare", "treebank", str(corpus), "--gpt2", str(tmp_path / "gpt2"), *splits]) == 0
    windows = ["--sample-break-mode", "complete", "--tokens-per-sample", 40]
    training = [*TRAINING, "--lr", 0, "--max-update", 1, "--save-dir", folder]
    run("train", corpus / "data-bin", "--init-from-gpt2", tmp_path / "gpt2", *flags, *windows, *training)
    text.write_text("The naïve cat does n't bark .\nA dog\n", encoding="utf-8")
    found = []
    for model in (tmp_path / "gpt2", folder):
        for more in ([], ["--correct-word-ends"]):
            capsys.readouterr()
            assert cli.main(["surprisal", str(model), str(text), "--end", *more]) == 0
            found.append(tab_separated(capsys.readouterr().out))
        shutil.rmtree(tmp_path / "gpt2", ignore_errors=True)  # a checkpoint needs it no more
    hub = hub_of(folder)
    assert hub.decode(hub.encode("The naïve cat")) == "The naïve cat"
    tokenizers = pytest.importorskip("tokenizers", reason="GPT-2's pieces are cut by tokenizers")
    whole = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    prompt = torch.tensor([[gpt2.config.eos_token_id, *whole.encode("A dog").ids]])
    written = gpt2.generate(prompt, do_sample=False, max_length=20, pad_token_id=gpt2.config.eos_token_id)[0]
    (hypothesis,) = hub.generate(hub.encode("A dog")[:-1], beam=1, max_len_a=0, max_len_b=19)
    symbols = [hub.tgt_dict[token] for token in hypothesis["tokens"]]
    assert symbols[:-1] == [whole.id_to_token(token) for token in written[1:].tolist()]
    for expected, actual in zip(found[:2], found[2:], strict=True):
        (_, *rows), (_, *others) = expected, actual  # without the header
        assert [row[3] for row in others] == [row[3] for row in rows]  # the number of pieces of words
        assert [float(row[4]) for row in others] == pytest.approx([float(row[4]) for row in rows], abs=1e-4)
