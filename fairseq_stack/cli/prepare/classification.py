"""``fairseq-stack prepare classification``."""

from __future__ import annotations

import argparse
from pathlib import Path

from fairseq_stack_preprocess.classification import classification_corpus as corpus
from fairseq_stack_preprocess.classification.tasks import TASKS

from ._common import add_common, options_from, run_corpus

SUMMARY = "prompts for the classification of sentences (for language modelling)"

DESCRIPTION = """\
Sentences with labels, for a language model that is fine-tuned to classify them, as
in Murty et al. (2023): each example becomes a prompt that ends with the text of its
label. Without labels, the task is a regression. Tables are in GLUE's form: the first
line has the names of the columns, and tabs separate the columns. text/*.label has
the labels, and task.json the template and the tokens of each label.

The language model was trained on CORPUS: the prompts are cut into its tokens, and
have its dictionary. A treebank has the words of the Penn Treebank; give
--penn if the tables have plain text.

tasks:
  rte, mrpc, sst5    classification, with the prompts of the paper
  sts-b              regression, likewise"""

EXAMPLE = """\
examples:
  fairseq-stack prepare classification data/rte --task rte --like data/trees --penn \\
      --train RTE/train.tsv --valid RTE/dev.tsv
  fairseq-stack prepare classification data/sst2 --like data/trees --penn \\
      --template "Sentence: {sentence}. Positive: {label}" --labels 0=No 1=Yes \\
      --train SST-2/train.tsv --valid SST-2/dev.tsv"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--train", type=Path, metavar="FILE", required=True, help="the table of train")
    parser.add_argument("--valid", type=Path, metavar="FILE", required=True, help="the table of valid")
    parser.add_argument("--test", type=Path, metavar="FILE", help="the table of test, with labels, if there is one")
    parser.add_argument(
        "--like", type=Path, metavar="CORPUS", required=True, help="the folder of the language model's corpus"
    )
    parser.add_argument("--task", choices=list(TASKS), help="one of the tasks above")
    parser.add_argument(
        "--template",
        metavar="TEXT",
        help="a prompt with the names of columns in braces, and {label} at the end if there are labels",
    )
    parser.add_argument(
        "--label-column", metavar="NAME", help="the column of the labels (default: the task's, or label)"
    )
    parser.add_argument(
        "--labels",
        nargs="+",
        metavar="LABEL=TEXT",
        help="what the prompt has for each label; the last label is the positive class",
    )
    parser.add_argument("--penn", action="store_true", help="split as in the Penn Treebank: can't is ca n't")
    add_common(parser, limit="at most N examples in each split, for a quick look")


def run(args: argparse.Namespace) -> int:
    return run_corpus(args, options_from(args, corpus.Options), corpus.prepare)
