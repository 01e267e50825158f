"""The corpus ``classification``: sentences with labels become prompts that a language model continues with the label.

Input: for train, valid and, if there is one, test, a table in GLUE's form (:mod:`.examples`). The tokens are those of
the corpus on which the model was trained, which has its dictionary.

Files: ``text/SPLIT.txt``, the tokens of each prompt and of its label; ``text/SPLIT.label``, the text of the label, or
the value of a regression; and ``task.json``, the template, and the tokens of each label: the last one is the positive
class. The label is no part of the text of a regression.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from ..errors import PrepareError, require_ranges
from ..layout import SUFFIX, TEXT
from ..progress import progress
from ..text.binarise import binarise_language
from ..text.manifest import Manifest, options_without, sha256_of
from ..text.output import corpus_folder, write_columns
from ..text.sentence_pieces import count_unknown
from ..trees.tokens import Tokens, tokens_of
from .examples import Example, check_labels, check_numbers, read_examples
from .prompts import Prompt, label_tokens, parse_labels, parse_template
from .tasks import TASKS, Task

CORPUS = "classification"
LABEL_SUFFIX = "label"
TASK_NAME = "task.json"


@dataclass(frozen=True)
class Options:
    """The options of the corpus.

    Attributes:
        train: the table of train (likewise ``valid``, ``test``; None: no test set).
        like: the folder of the corpus on which the model was trained.
        task: the name of one of :data:`.TASKS`, whose template, column and labels are the defaults.
        template: the prompt, such as ``"Sentence: {sentence}. Sentiment: {label}"``.
        label_column: the column of the labels; None: ``label``, or that of the task.
        labels: ``LABEL=TEXT`` for each label; None: those of the task, or a regression.
        penn: whether text is split into words as in the Penn Treebank.
        limit: the maximum number of examples in each split, the first ones; None: all.
        binarise: whether fairseq's binary format is written as well.

    Raises:
        PrepareError: a value is out of range, or options do not fit together.
    """

    train: Path
    valid: Path
    like: Path
    test: Path | None = None
    task: str | None = None
    template: str | None = None
    label_column: str | None = None
    labels: tuple[str, ...] | None = None
    penn: bool = False
    limit: int | None = None
    binarise: bool = True

    def __post_init__(self) -> None:
        require_ranges(self, limit=(1, None))
        if self.task is not None and self.task not in TASKS:
            raise PrepareError(f"--task must be one of {', '.join(TASKS)}, got {self.task!r}")
        if self.task is None and self.template is None:
            raise PrepareError("--task or --template is required")
        self.prompt()

    def definition(self) -> Task:
        """The task, with the options in place of its defaults."""
        default = Task("", "label") if self.task is None else TASKS[self.task]
        return Task(
            self.template or default.template,
            self.label_column or default.label_column,
            default.labels if self.labels is None else parse_labels(self.labels),
        )

    def prompt(self) -> Prompt:
        """The prompt of the task."""
        task = self.definition()
        return parse_template(task.template, has_label=task.labels is not None, penn=self.penn)

    def paths(self) -> dict[str, Path]:
        """The table of each split."""
        paths = {"train": self.train, "valid": self.valid}
        return paths if self.test is None else {**paths, "test": self.test}


def read_splits(options: Options) -> dict[str, list[Example]]:
    """The examples of each split.

    Raises:
        PrepareError: see :func:`.read_examples`; or a label is not named, is not in train, or is not a number.
    """
    task, columns = options.definition(), options.prompt().columns
    splits = {split: read_examples(path, columns, task.label_column) for split, path in options.paths().items()}
    for examples in splits.values():
        if task.labels is None:
            check_numbers(examples)
        else:
            check_labels(examples, task.labels, "one of those that are named")
            check_labels(examples, {example.label for example in splits["train"]}, "one of those in train")
    return {split: examples[: options.limit] for split, examples in splits.items()}


def prepare(options: Options, folder: Path, *, force: bool = False) -> None:
    """Write the corpus into ``folder``, complete or not at all.

    Raises:
        PrepareError: see :func:`read_splits`, :func:`.tokens_of`, :func:`.label_tokens` and
            :func:`.output.corpus_folder`; or binarising failed.
    """
    tokens, task = tokens_of(options.like), options.definition()
    labels = {} if task.labels is None else label_tokens(task.labels.values(), tokens, options.prompt())
    splits = read_splits(options)
    with corpus_folder(folder, binarise=options.binarise, force=force) as new:
        counts = {
            split: _write(new / TEXT, split, examples, options, tokens, labels) for split, examples in splits.items()
        }
        _write_task(new / TASK_NAME, options, labels)
        for path in tokens.files:
            shutil.copyfile(path, new / path.name)
        if options.binarise:
            binarise_language(new, dictionary=tokens.dictionary, splits=tuple(splits))
        _manifest(options, tokens, counts).write(new)


def _write(
    text: Path,
    split: str,
    examples: Sequence[Example],
    options: Options,
    tokens: Tokens,
    labels: Mapping[str, list[str]],
) -> dict[str, Any]:
    """Write a split, and return its counts for the manifest."""
    prompt, texts = options.prompt(), options.definition().labels
    found, longest = Counter[str](), 0

    def rows() -> Iterator[tuple[str, str]]:
        nonlocal longest
        for example in progress(examples, label=f"{CORPUS}: {split}", total=len(examples), unit="example"):
            label = example.label if texts is None else texts[example.label]
            cut = tokens.cut(prompt.words(example.sentences), example.place)
            line = [*chain.from_iterable(cut), *labels.get(label, ())]
            found.update(line)
            longest = max(longest, len(line))
            yield " ".join(line), label

    write_columns([text / f"{split}.{suffix}" for suffix in (SUFFIX, LABEL_SUFFIX)], rows())
    of_labels = dict(sorted(Counter(example.label for example in examples).items()))
    return {
        "examples": len(examples),
        "tokens": found.total(),
        **count_unknown(found, tokens.symbols, f"{CORPUS}: {split}"),
        "longest": longest,
        **({} if texts is None else {"examples_by_label": of_labels}),
    }


def _write_task(path: Path, options: Options, labels: Mapping[str, list[str]]) -> None:
    content = {
        "task": options.task or CORPUS,
        "template": options.definition().template,
        "penn": options.penn,
        "labels": dict(labels) or None,
    }
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8", newline="\n")


def _manifest(options: Options, tokens: Tokens, counts: Mapping[str, Mapping[str, Any]]) -> Manifest:
    task = options.definition()
    inputs = {f"{split}/{path.name}": sha256_of(path) for split, path in options.paths().items()}
    used = {"template": task.template, "label_column": task.label_column, "labels": task.labels}
    return Manifest(
        corpus=CORPUS,
        options={**options_without(options, "train", "valid", "test", "like"), **used},
        splits=counts,
        inputs={**inputs, "like/dict.txt": sha256_of(tokens.dictionary)},
        packages=(*tokens.packages, *(("nltk",) if options.penn else ())),
    )
