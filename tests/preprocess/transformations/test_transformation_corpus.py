"""The corpus transformations: what each split has and has not, judged by an independent reader (oracle.py), its files,
and the same bytes again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fairseq_stack_preprocess.errors import PrepareError
from fairseq_stack_preprocess.transformations.class_weights import class_weights
from fairseq_stack_preprocess.transformations.tasks import TASKS, Pair
from fairseq_stack_preprocess.transformations.transformation_corpus import (
    ALL_SPLITS,
    Options,
    TransformationCorpus,
    generate,
    prepare,
)
from tests.preprocess.corpus_folders import lines_of, manifest_of, sha256_without_manifest
from tests.preprocess.transformations.oracle import (
    QUESTIONS,
    TENSES,
    agree_recent,
    auxiliaries,
    in_the_past,
    question,
    read,
)

SMALL: dict[str, Any] = {"train_size": 40, "valid_size": 10, "test_size": 20, "gen_size": 30}

of_both = pytest.mark.parametrize("task", TASKS)


@pytest.fixture(scope="module")
def corpora() -> dict[str, TransformationCorpus]:
    """A corpus of each task."""
    sizes: dict[str, Any] = {"train_size": 3000, "valid_size": 300, "test_size": 1000, "gen_size": 1500}
    return {task: generate(Options(task, **sizes)) for task in TASKS}


@pytest.fixture(scope="module", params=TASKS)
def binarised(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small binarised corpus."""
    folder = tmp_path_factory.mktemp(request.param) / "out"
    prepare(Options(request.param, **SMALL), folder)
    return folder


def pairs_of(corpus: TransformationCorpus) -> list[Pair]:
    """The pairs of all splits."""
    return [pair for pairs in corpus.splits.values() for pair in pairs]


def test_questions(corpora: dict[str, TransformationCorpus]) -> None:
    """Move-main and move-first, by the places of auxiliaries."""
    for pair in pairs_of(corpora[QUESTIONS]):
        words, marker = pair.source[:-1], pair.source[-1]
        reading = read(QUESTIONS, words)
        assert pair.structure == reading[:2]
        if marker == "decl":
            assert pair.target == pair.linear == words
        else:
            assert marker == "quest"
            assert pair.target == question(words, reading.words_in_subject)
            assert pair.linear == question(words, auxiliaries(words)[0])


def test_tenses(corpora: dict[str, TransformationCorpus]) -> None:
    """Agree-subject, as the grammar has it, and agree-recent."""
    for pair in pairs_of(corpora[TENSES]):
        words, marker = pair.source[:-1], pair.source[-1]
        if marker == "PAST":
            assert pair.target == pair.linear == words == in_the_past(words)
        else:
            assert marker == "PRESENT"
            assert pair.structure == read(TENSES, pair.target)[:2]
            assert words == in_the_past(pair.target)
            assert pair.linear == agree_recent(pair.target)


@of_both
def test_training_is_ambiguous(task: str, corpora: dict[str, TransformationCorpus]) -> None:
    """The rules agree, though identity pairs have what would tell them apart."""
    for split in ("train", "valid", "test"):
        pairs = corpora[task].splits[split]
        assert all(pair.target == pair.linear for pair in pairs)
        relative = {pair.source[-1] for pair in pairs if pair.structure[0].startswith("R")}
        assert relative == ({"decl"} if task == QUESTIONS else {"PAST", "PRESENT"})


def test_generalisation_set_of_questions(corpora: dict[str, TransformationCorpus]) -> None:
    """The main auxiliary is the second of two; the first word decides, and agreement does not."""
    pairs = corpora[QUESTIONS].splits["gen"]
    for pair in pairs:
        words, (first, second) = pair.source[:-1], auxiliaries(pair.source[:-1])
        assert pair.source[-1] == "quest"
        assert second == read(QUESTIONS, words).words_in_subject
        assert pair.target[0] == words[second] != pair.linear[0] == words[first]
        assert {words[first], words[second]} in ({"does", "doesn't"}, {"do", "don't"})
    subjects = [pair.structure[0] for pair in pairs]
    assert [subject == "RO" for subject in subjects] == [False, False, True] * 500
    assert {pair.structure[1] for pair in pairs} == {"I", "simple", "PP"}


def test_generalisation_set_of_tenses(corpora: dict[str, TransformationCorpus]) -> None:
    """Only the main verb tells the rules apart."""
    pairs = corpora[TENSES].splits["gen"]
    for pair in pairs:
        assert pair.source[-1] == "PRESENT"
        differing = [place for place, word in enumerate(pair.target) if word != pair.linear[place]]
        assert differing == [read(TENSES, pair.target).words_in_subject]
    assert {pair.structure[0] for pair in pairs} == {"PP", "RO", "RSt"}


@of_both
def test_no_pair_occurs_twice(task: str, corpora: dict[str, TransformationCorpus]) -> None:
    """But a sentence may occur with either marker."""
    sources = [pair.source for pair in pairs_of(corpora[task])]
    assert len(sources) == len(set(sources)) == 5800
    assert len({source[:-1] for source in sources}) < 5800


@of_both
def test_every_word_is_in_the_vocabulary_and_in_train(task: str, corpora: dict[str, TransformationCorpus]) -> None:
    words = {word for pair in corpora[task].splits["train"] for word in (*pair.source, *pair.target)}
    vocabulary = TASKS[task].vocabulary
    assert set(vocabulary) == words
    assert len(vocabulary) == len(words) == {QUESTIONS: 68, TENSES: 98}[task]


def test_splits_come_one_after_the_other() -> None:
    """Test avoids what train has, gen depends on its own size only, and a longer split begins like a shorter one."""
    small = generate(Options(QUESTIONS, **SMALL)).splits
    large = generate(Options(QUESTIONS, **{**SMALL, "train_size": 20_000, "gen_size": 40})).splits
    assert large["train"][:40] == small["train"] and large["gen"][:30] == small["gen"]
    assert large["test"] != small["test"]
    other = generate(Options(QUESTIONS, **SMALL, seed=1)).splits
    assert all(other[split] != small[split] for split in ALL_SPLITS)


def test_too_many_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of simple intransitive sentences there are 2,808, each with two markers."""
    simple = replace(TASKS[QUESTIONS], released=class_weights((1, 0, 0, 0, 0), (1, 0, 0, 0, 0, 0)))
    monkeypatch.setitem(TASKS, QUESTIONS, simple)
    with pytest.raises(PrepareError, match=r"^--valid-size 616 is too large: \d+ sentences were found"):
        generate(Options(QUESTIONS, train_size=5001, valid_size=616))


@of_both
def test_files_hold_the_corpus(task: str, tmp_path: Path) -> None:
    options = Options(task, **SMALL, binarise=False)
    prepare(options, tmp_path / "out")
    manifest = manifest_of(tmp_path / "out")
    assert list(manifest["splits"]) == list(manifest["class_weights"]) == list(ALL_SPLITS)
    for split, pairs in generate(options).splits.items():
        for name in ("source", "target", "linear", "structure"):
            lines = lines_of(tmp_path / "out" / "text" / f"{split}.{name}")
            assert lines == [" ".join(getattr(pair, name)) for pair in pairs]
        lines = lines_of(tmp_path / "out" / "text" / f"{split}.txt")
        assert lines == [" ".join(pair.source + pair.target) for pair in pairs]
        counts = manifest["splits"][split]
        assert counts["pairs"] == len(lines) == SMALL[f"{split}_size"]
        assert counts["words"] == sum(len(line.split()) for line in lines)
        assert counts["longest"] == max(len(line.split()) for line in lines)
        for kind in ("marker", "structure"):
            assert sum(counts[f"pairs_by_{kind}"].values()) == len(lines)


def test_fairseq_loads_pairs_and_lines(binarised: Path) -> None:
    """Both forms are in one folder, with one dictionary, and gen is one of their splits."""
    from fairseq.data import Dictionary, data_utils

    data_bin = binarised / "data-bin"
    vocabulary = [line.split(" ")[0] for line in lines_of(binarised / "text" / "vocabulary.txt")]
    assert data_utils.infer_language_pair(str(data_bin)) == ["source", "target"]
    for split in ALL_SPLITS:
        for name, form in {"source": ".source-target.source", "target": ".source-target.target", "txt": ""}.items():
            dictionary = Dictionary.load(str(data_bin / f"dict{'' if name == 'txt' else f'.{name}'}.txt"))
            assert dictionary.symbols[4:] == vocabulary
            dataset = data_utils.load_indexed_dataset(str(data_bin / f"{split}{form}"), dictionary)
            lines = [dictionary.string(dataset[i]) for i in range(len(dataset))]
            assert lines == lines_of(binarised / "text" / f"{split}.{name}")
    assert not [path.name for path in data_bin.iterdir() if path.name.startswith("test1")]


# The hashes are the promise: these bytes, on every machine and with every version of Python.
@pytest.mark.parametrize(
    ("task", "weights", "sha256"),
    [
        (QUESTIONS, "released", "4eb884d4894a17dd4a792d51005159f39d7a160c4b3082f4556e3bcbe3146d04"),
        (QUESTIONS, "grammar", "f7ff68e61030f1b6d30ce3bcb890339bf886dc766117a37cbcd6abe7e703a060"),
        (TENSES, "released", "ae1e2aae5d58cf7fe1f3325fbac39ef59aceb3f119dce399976809e41dedcc06"),
        (TENSES, "grammar", "31becb8b962c0f4b3e8699cc980b6ca5ed24433f1de4953809dc1d3d61168666"),
    ],
)
def test_bytes_of_a_seed(task: str, weights: str, sha256: str, tmp_path: Path) -> None:
    prepare(Options(task, weights=weights, **SMALL, seed=3, binarise=False), tmp_path / "out")
    assert sha256_without_manifest(tmp_path / "out") == sha256
