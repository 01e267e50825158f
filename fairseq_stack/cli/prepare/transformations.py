"""``fairseq-stack prepare transformations``."""

from __future__ import annotations

import argparse

from fairseq_stack.cli.arguments import add_number
from fairseq_stack_preprocess.transformations import transformation_corpus as corpus
from fairseq_stack_preprocess.transformations.tasks import TASKS
from fairseq_stack_preprocess.transformations.transformation_corpus import WEIGHTS, Options

from ._common import SIZES, add_common, add_sizes, options_from, run_corpus

SUMMARY = "generated pairs for question formation and tense reinflection (for language modelling or translation)"

DESCRIPTION = """\
The pairs of McCoy, Frank & Linzen (2020), which ask whether a model prefers
hierarchical rules to linear ones. In train, valid and test, a hierarchical and a
linear rule give the same target; in gen, they differ. A source ends with a marker,
which asks for the transformation or for the sentence itself. No pair occurs twice.
text/*.linear holds the linear rule's answer, and text/*.structure the types of the
subject and the verb phrase. data-bin serves --task translation and
--task language_modeling, whose lines are the source and the target.

tasks:
  question-formation   quest: fronts an auxiliary. Hierarchical: the one of the
                       main clause. Linear: the first one. decl: no change.
  tense-reinflection   PRESENT: from past to present. Hierarchical: a verb agrees
                       with its subject. Linear: with the noun before it.
                       PAST: no change.

types of noun phrases:
  simple, PP           the yak, the yak by my newt
  RO                   the yak that my newt does admire
  RSt, RSi             the yak that does admire my newt, the yak that does smile
types of verb phrases:
  I, or the object's   does giggle, does admire her quail"""

EXAMPLE = """\
examples:
  fairseq-stack prepare transformations data/questions --task question-formation
  fairseq-stack prepare transformations data/look --task tense-reinflection \\
      --limit 20"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--task", choices=list(TASKS), required=True, help="one of the tasks above")
    parser.add_argument(
        "--weights",
        choices=WEIGHTS,
        default=Options.weights,
        help="the types of phrases are as frequent as in the authors' data, or as in their grammars "
        f"(default: {Options.weights})",
    )
    add_sizes(parser, Options)
    add_number(parser, "--gen-size", "sentences in gen", Options.gen_size)
    add_common(parser, seed=Options.seed)


def run(args: argparse.Namespace) -> int:
    return run_corpus(args, options_from(args, Options, limited=(*SIZES, "gen_size")), corpus.prepare)
