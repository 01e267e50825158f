"""The workflow of classifiers, classification_2023.smk, and the tables of its tasks, choices.py."""

from __future__ import annotations

import gzip
import importlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.commands.running import REPOSITORY, Server
from tests.gpt2_folders import save_gpt2, save_tokenizer
from tests.scripts.test_experiments import experiment, planned_trainings

TREES = ["(S (NP (DT the) (NN dog)) (VP (VBZ sleeps)) (. .))", "(S (NP (JJ singular)) (VP (VBP bark) (JJ plural)))"]


@pytest.fixture
def choices(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(REPOSITORY / "scripts" / "experiments")
    return importlib.import_module("choices")


def write_agreement(folder: Path, sentences: int = 20) -> Path:
    """The sentences of Linzen et al. and, in their other format, one of Gulordava et al."""
    folder.mkdir()
    verbs = [("sleeps", "sleep"), ("bark", "barks"), ("is", "are"), ("have", "has")]
    pairs = [verbs[number % 4] for number in range(sentences)]
    text = "".join(f"the dog {verb} now . <eos>\n" for verb, _ in pairs)
    gold = "".join(f"2\t{verb}\t{other}\t0\n" for verb, other in pairs)
    (folder / "linzen.subj_agr_filtered.text.gz").write_bytes(gzip.compress(text.encode()))
    (folder / "linzen.subj_agr_filtered.gold").write_text(gold)
    (folder / "gulordava.generated.en.text").write_text("a dog executed in fifty surrounds there <eos>\n")
    (folder / "gulordava.generated.en.gold").write_text(
        "L!NOUN\t1\t7\t5\tVERB\tNumber=Sing\trepresents\trepresent\trepresent\t2\tNOUN\ta dog executed in fifty\n"
    )
    return folder


def write_trees(folder: Path) -> Path:
    folder.mkdir()
    for split in ("train", "valid", "test"):
        (folder / f"{split}.txt").write_text("".join(f"{tree}\n" for tree in TREES * 4))
    return folder


def rows_of(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]


def test_the_number_of_verbs(choices: Any, tmp_path: Path) -> None:
    """Irregular verbs have no rule; of the others, the singular is longer."""
    data = write_agreement(tmp_path / "data")
    names = ("linzen.subj_agr_filtered.text.gz", "linzen.subj_agr_filtered.gold")
    nonce = ("gulordava.generated.en.text", "gulordava.generated.en.gold")
    choices.main("agreement", str(tmp_path / "out"), *(str(data / name) for name in (*names, *nonce)))
    numbers = {
        split: [number for _, number in rows_of(tmp_path / "out" / f"{split}.tsv")[1:]]
        for split in ("train", "valid", "test")
    }
    singular_and_plural = ["singular", "plural"] * 10
    assert numbers["train"] == [x for number, x in enumerate(singular_and_plural) if number % 10 < 8]
    assert numbers["valid"] == ["singular"] * 2 and numbers["test"] == ["plural"] * 2
    assert rows_of(tmp_path / "out" / "nonce.tsv") == [["sentence", "number"], ["a dog executed in fifty", "singular"]]


def test_pairs_of_sentences(choices: Any, tmp_path: Path) -> None:
    """The label says where the right sentence is, and no pair is in two sets."""
    for paradigm in ("b", "a"):
        pairs = [{"sentence_good": f"{paradigm}{n} good", "sentence_bad": f"{paradigm}{n} bad"} for n in range(80)]
        (tmp_path / f"{paradigm}.jsonl").write_text("".join(f"{json.dumps(pair)}\n" for pair in pairs))
    choices.main("blimp", str(tmp_path / "out"), *(str(tmp_path / f"{paradigm}.jsonl") for paradigm in "ba"))
    sets = {split: rows_of(tmp_path / "out" / f"{split}.tsv")[1:] for split in ("train", "valid", "test")}
    assert {split: len(rows) for split, rows in sets.items()} == {"train": 120, "valid": 20, "test": 20}
    rows = [row for of_split in sets.values() for row in of_split]
    assert len({first.split()[0] for first, _, _ in rows}) == len(rows) == 160
    assert all([first, second][int(right)].endswith("good") for first, second, right in rows)
    assert 40 < sum(int(right) for _, _, right in rows) < 120


def test_the_papers_tasks_are_planned(tmp_path: Path, server: Server) -> None:
    """With GPT-2's weights; the batch is the paper's, and each task has its metric."""
    (tmp_path / "gpt2").mkdir()
    (tmp_path / "gpt2" / "config.json").write_text('{"n_layer": 12, "n_positions": 1024}')
    folders = {"trees": write_trees(tmp_path / "trees"), "gpt2": tmp_path / "gpt2", "glue": tmp_path / "glue"}
    trainings = planned_trainings(server, "classification_2023", tmp_path / "out", epochs=None, **folders)
    tuned = [words for words in trainings if "--finetune-from-model" in words]
    assert len(tuned) == 4 * 3 * 3

    def values(name: str) -> list[str]:
        return [words[words.index(name) + 1] for words in tuned]

    assert set(values("--batch-size")) == {"8"} and set(values("--update-freq")) == {"32"}
    assert set(values("--best-checkpoint-metric")) == {"accuracy", "f1", "pearson"}
    assert set(values("--stack-layers")) == {"12xsdpa", "6xsdpa,6xpushdown", "6xsdpa,sdpa+nd-3-3-32@64,5xsdpa"}


@pytest.mark.hostile
@pytest.mark.parametrize("begins_as_gpt2", [False, True])
def test_it_runs(tmp_path: Path, server: Server, begins_as_gpt2: bool) -> None:
    """All kinds learn from trees and are tuned; only Pushdown Layers need parses of the prompts."""
    settings: dict[str, Any] = {"trees": write_trees(tmp_path / "trees"), "seeds": 1, "updates": 2}
    settings |= {"agreement": write_agreement(tmp_path / "agreement"), "batch": 8}
    if begins_as_gpt2:
        save_tokenizer(tmp_path / "gpt2", " ".join(TREES) + " Sentence: Number: singular plural executed in fifty")
        save_gpt2(tmp_path / "gpt2", n_layer=2, n_positions=128)
        settings["gpt2"] = tmp_path / "gpt2"
    experiment(server, "classification_2023", tmp_path / "out", **settings)
    (path,) = (tmp_path / "out" / "classification").glob("*/agreement*.md")
    table = path.read_text(encoding="utf-8")
    for kind in ("base", "pushdown", "nd"):
        for split, prompts in {"valid": 2, "test": 2, "nonce": 1}.items():
            row = rf"^\| agreement \| +{kind} \| +{split} \| +{prompts} \| +\d+\.\d \| +\d+\.\d \| +-?\d+\.\d \|"
            assert re.search(row, table, re.MULTILINE), table
    suffix = "-gpt2" if begins_as_gpt2 else ""
    parses = (tmp_path / "out" / f"trees{suffix}" / "updates-2").glob("*/parses-agreement*")
    assert {path.name for path in parses if path.is_dir()} == {f"parses-agreement{suffix}{x}" for x in ("", "-nonce")}
