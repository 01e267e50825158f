"""The corpus classification: prompts and labels in the tokens of another corpus, and mistakes in tables."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fairseq_stack_preprocess.classification.classification_corpus import Options, prepare
from fairseq_stack_preprocess.classification.tasks import TASKS
from fairseq_stack_preprocess.errors import PrepareError
from fairseq_stack_preprocess.text.sentence_pieces import Encoder, train_model
from tests.preprocess.corpus_folders import manifest_of, names
from tests.preprocess.trees.treebanks import text_of, write_files

TABLE = "index\tsentence\tlabel\n0\tI can't go.\tneg\n1\t  a good one \tpos\n"
FILES = {"train.tsv": TABLE, "valid.tsv": TABLE, "like/data-bin/dict.txt": "Yes 1\nNo 1\ngood 1\n. 1\n"}
TEMPLATE = "Text: {sentence}. Good: {label}"


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    return write_files(tmp_path / "raw", FILES)


def options_of(raw: Path, **options: Any) -> Options:
    defaults = {"template": TEMPLATE, "labels": ("neg=No", "pos=Yes"), "binarise": False}
    return Options(raw / "train.tsv", raw / "valid.tsv", raw / "like", **{**defaults, **options})


def test_words(raw: Path, tmp_path: Path) -> None:
    """The labels of all splits are named; without --penn, text is split at white space only."""
    prepare(options_of(raw), tmp_path / "out")
    for split in ("train", "valid"):
        assert text_of(tmp_path / "out", f"{split}.txt") == [
            "Text: I can't go.. Good: No",
            "Text: a good one. Good: Yes",
        ]
        assert text_of(tmp_path / "out", f"{split}.label") == ["No", "Yes"]
    task = json.loads((tmp_path / "out" / "task.json").read_text(encoding="utf-8"))
    labels = {"No": ["No"], "Yes": ["Yes"]}
    assert task == {"task": "classification", "template": TEMPLATE, "penn": False, "labels": labels}
    assert list(task["labels"])[-1] == "Yes"
    assert names(tmp_path / "out") == ["manifest.json", "task.json", "text"]
    train = manifest_of(tmp_path / "out")["splits"]["train"]
    assert train["examples_by_label"] == {"neg": 1, "pos": 1}
    assert (train["tokens"], train["unknown_tokens"], train["longest"]) == (12, 9, 6)


def test_penn(raw: Path, tmp_path: Path) -> None:
    """Each text by itself: the period of a sentence within the prompt is a word."""
    prepare(options_of(raw, penn=True, template=f"(a) {TEMPLATE}"), tmp_path / "out")
    assert text_of(tmp_path / "out", "train.txt")[0] == "-LRB- a -RRB- Text : I ca n't go . . Good : No"
    assert "nltk" in manifest_of(tmp_path / "out")["versions"]


def test_classes_of_rare_words(raw: Path, tmp_path: Path) -> None:
    content = {"corpus": "treebank", "options": {"rare_words": None}}
    (raw / "like" / "manifest.json").write_text(json.dumps(content), encoding="utf-8")
    prepare(options_of(raw, penn=True), tmp_path / "out")
    expected = "UNK-INITC UNK UNK-LC good UNK-LC . UNK-INITC-KNOWNLC UNK Yes"
    assert text_of(tmp_path / "out", "train.txt")[1] == expected


def test_pieces(raw: Path, tmp_path: Path) -> None:
    """The model of the corpus cuts the words, and is copied; it may cut the label into several pieces."""
    text = ["Text: Good: good No Yes can't I a go. one."] * 9
    model = train_model(text, pieces=30)
    (raw / "like" / "spm.model").write_bytes(model)
    pieces = sorted(Encoder(model).pieces())
    (raw / "like" / "data-bin" / "dict.txt").write_text("".join(f"{piece} 1\n" for piece in pieces), encoding="utf-8")
    prepare(options_of(raw), tmp_path / "out")
    line = text_of(tmp_path / "out", "train.txt")[1].split(" ")
    assert "".join(line) == "▁Text:▁a▁good▁one.▁Good:▁Yes"
    labels = json.loads((tmp_path / "out" / "task.json").read_text(encoding="utf-8"))["labels"]
    assert ["".join(tokens) for tokens in labels.values()] == ["▁No", "▁Yes"]
    assert line[-len(labels["Yes"]) :] == labels["Yes"]
    assert (tmp_path / "out" / "spm.model").read_bytes() == model


def test_labels_of_what_is_cut_count(raw: Path, tmp_path: Path) -> None:
    """A label of valid need not be among the first lines of train."""
    header, first, second, *_ = TABLE.splitlines()
    for split, lines in (("train", [header, first, second]), ("valid", [header, second, first])):
        (raw / f"{split}.tsv").write_text("\n".join([*lines, ""]), encoding="utf-8")
    prepare(options_of(raw, limit=1), tmp_path / "out")
    train, valid = (text_of(tmp_path / "out", f"{split}.label") for split in ("train", "valid"))
    assert len(train) == len(valid) == 1 and train != valid


def test_regression(raw: Path, tmp_path: Path) -> None:
    for split in ("train", "valid"):
        (raw / f"{split}.tsv").write_text("a\tb\tscore\nx\ty z\t2.5\n", encoding="utf-8")
    options = options_of(raw, template="One: {a}. Two: {b}", labels=None, label_column="score")
    prepare(options, tmp_path / "out")
    assert text_of(tmp_path / "out", "train.txt") == ["One: x. Two: y z"]
    assert text_of(tmp_path / "out", "train.label") == ["2.5"]
    assert json.loads((tmp_path / "out" / "task.json").read_text(encoding="utf-8"))["labels"] is None


@pytest.mark.parametrize("task", TASKS)
def test_tasks_of_the_paper(task: str, raw: Path, tmp_path: Path) -> None:
    columns = ["index", "sentence", "sentence1", "sentence2", "#1 String", "#2 String", TASKS[task].label_column]
    row = ["0", "s", "p", "h", "p", "h", next(iter(TASKS[task].labels or {"3.2": ""}))]
    for split in ("train", "valid"):
        (raw / f"{split}.tsv").write_text("\t".join(columns) + "\n" + "\t".join(row) + "\n", encoding="utf-8")
    words = {"."} | {word for text in (TASKS[task].labels or {}).values() for word in text.split()}
    (raw / "like" / "data-bin" / "dict.txt").write_text("".join(f"{x} 1\n" for x in sorted(words)), encoding="utf-8")
    prepare(options_of(raw, task=task, template=None, labels=None), tmp_path / "out")
    expected = {
        "rte": "Premise: p. Hypothesis: h. Label: No",
        "mrpc": "Sentence1: p. Sentence2: h. Label: 0",
        "sst5": "Sentence: s. Sentiment: very negative",
        "sts-b": "Sentence1: p. Sentence2: h",
    }
    assert text_of(tmp_path / "out", "train.txt") == [expected[task]]


TRAIN, VALID = "{raw}/train.tsv", "{raw}/valid.tsv"
MISTAKES: dict[str, tuple[dict[str, str], dict[str, Any], str]] = {
    "column": (
        {},
        {"label_column": "gold"},
        f"{TRAIN}, line 1: expected one column 'gold', got 'index', 'sentence', 'label'",
    ),
    "column twice": (
        {"valid.tsv": TABLE.replace("index", "sentence")},
        {},
        f"{VALID}, line 1: expected one column 'sentence', got 'sentence', 'sentence', 'label'",
    ),
    "label": (
        {"valid.tsv": TABLE + "2\tc\tmid\n"},
        {},
        f"{VALID}, line 4: label 'mid'; expected one of those that are named",
    ),
    "not in train": (
        {"train.tsv": TABLE.partition("1\t")[0]},
        {},
        f"{VALID}, line 3: label 'pos'; expected one of those in train, neg",
    ),
    "empty": ({"train.tsv": TABLE + "2\t \tpos\n"}, {}, f"{TRAIN}, line 4: column 'sentence' is empty"),
    "columns": ({"train.tsv": TABLE + "2\tc\n"}, {}, f"{TRAIN}, line 4: expected 3 columns, as in line 1, got 2"),
    "header alone": ({"train.tsv": "index\tsentence\tlabel\n"}, {}, f"{TRAIN} has no line after its header"),
    "number": (
        {},
        {"labels": None, "template": "{sentence}"},
        f"{TRAIN}, line 2: expected a number, as there are no --labels; got 'neg'",
    ),
    "dictionary": ({}, {"like": Path("nowhere")}, "nowhere has no data-bin/dict.txt; expected the corpus"),
    "token": (
        {},
        {"labels": ("neg=Bad", "pos=Yes")},
        "--labels: 'Bad' has the token 'Bad', which {raw}/like/data-bin/",
    ),
    "prefix": (
        {},
        {"labels": ("neg=good", "pos=good Yes")},
        "--labels: the tokens of 'good Yes', good Yes, begin with those of 'good'; choose other texts",
    ),
    "reserved": ({"train.tsv": TABLE + "2\t</s> c\tpos\n"}, {}, f"{TRAIN}, line 4: fairseq reserves the symbol </s>"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_leave_nothing(name: str, raw: Path, tmp_path: Path) -> None:
    files, options, message = MISTAKES[name]
    write_files(raw, files)
    with pytest.raises(PrepareError) as caught:
        prepare(replace(options_of(raw), **options), tmp_path / "out")
    assert str(caught.value).startswith(message.format(raw=raw))
    assert names(tmp_path) == ["raw"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"template": None}, "--task or --template is required"),
        ({"template": "{sentence} {label}?"}, "--template '{sentence} {label}?': expected ' {label}' at the end"),
        ({"labels": None}, f"--template {TEMPLATE!r}: expected no {{label}}, since a regression has no --labels"),
        ({"template": "{sentence"}, "--template '{sentence': expected ' {label}' at the end"),
        ({"template": "{sentence {label}"}, "--template '{sentence {label}': expected '}' before end of string"),
        ({"template": "a {sentence!r} {label}"}, "--template 'a {sentence!r} {label}': expected the name of a column"),
        (
            {"template": "a {} {sentence} {label}"},
            "--template 'a {} {sentence} {label}': expected the name of a column",
        ),
        ({"template": "no column {label}"}, "--template 'no column {label}': expected columns of sentences in braces"),
        (
            {"labels": ("neg", "pos=Yes")},
            "--labels: expected LABEL=TEXT for two different labels or more, got neg pos=Yes",
        ),
        ({"labels": ("neg=Yes", "pos=Yes")}, "--labels: expected LABEL=TEXT for two different labels or more"),
        ({"labels": ("pos=Yes",)}, "--labels: expected LABEL=TEXT for two different labels or more, got pos=Yes"),
        ({"task": "cola"}, "--task must be one of rte, mrpc, sst5, sts-b, got 'cola'"),
    ],
)
def test_options_that_do_not_fit(options: dict[str, Any], message: str, raw: Path) -> None:
    with pytest.raises(PrepareError) as caught:
        options_of(raw, **options)
    assert str(caught.value).startswith(message)
