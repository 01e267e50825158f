"""``fairseq-stack prepare cfl``."""

from __future__ import annotations

import argparse
from pathlib import Path

from fairseq_stack_preprocess.cfl.languages import LANGUAGES, PARAMETERS, flag_of
from fairseq_stack_preprocess.cfl.options import CORPUS, Options

from ..arguments import Subparsers
from ._common import add_common, add_number, add_strip_cr, limited, run_corpus

DESCRIPTION = """\
Strings of a formal language with their exact probabilities. The language is one
from the papers of DuSell and Chiang, or a probabilistic context-free grammar of your
own. The length of a string is uniform over the lengths that the language has in the
range; given its length, the string follows the grammar. In train and valid, all
strings of a batch have the same length, so that training needs no padding. Test has
the same number of strings of each length. text/*.logp holds log p(string | length),
and lower_bound.json the lowest possible cross-entropy, with and without the ends of
strings.

tasks:
""" + "\n".join(f"  {language.name:33}  {language.form}" for language in LANGUAGES.values())

EXAMPLE = """\
examples:
  fairseq-stack prepare cfl data/hardest --task hardest-cfl --seed 1
  fairseq-stack prepare cfl data/mine --grammar mine.txt --min-length 10

A grammar is a text such as
  S -> '(' S ')' S [0.4] | '' [0.6]    # quoted: terminals; '' is the empty string"""


def add_parser(corpora: Subparsers) -> None:
    """Declare the corpus and its options."""
    parser = corpora.add_parser(
        CORPUS,
        help="generated strings of a context-free or other formal language (for language modelling)",
        description=DESCRIPTION,
        epilog=EXAMPLE,
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--task", metavar="NAME", choices=list(LANGUAGES), help="one of the tasks above")
    what.add_argument("--grammar", metavar="FILE", type=Path, help="a grammar of your own")
    add_strip_cr(parser)
    _add_parameters(parser)
    add_number(parser, "--min-length", Options.min_length, "minimum length in train and valid")
    add_number(parser, "--max-length", Options.max_length, "maximum length in train and valid")
    add_number(parser, "--test-min-length", Options.test_min_length, "minimum length in test")
    add_number(parser, "--test-max-length", Options.test_max_length, "maximum length in test")
    add_number(parser, "--train-size", Options.train_size, "strings in train")
    add_number(parser, "--valid-size", Options.valid_size, "strings in valid")
    add_number(parser, "--test-per-length", Options.test_per_length, "strings of each length in test")
    add_number(parser, "--batch-size", Options.batch_size, "number of consecutive strings of the same length")
    add_number(parser, "--test-seed", Options.test_seed, "random seed of test")
    add_common(
        parser,
        seed=Options.seed,
        limit="at most N strings in train, in valid and of each length in test, for a quick look",
    )
    parser.set_defaults(run=run)


def _add_parameters(parser: argparse.ArgumentParser) -> None:
    """Declare the parameters of the languages, each with the defaults that it has."""
    group = parser.add_argument_group("task parameters")
    for name, parameter in PARAMETERS.items():
        group.add_argument(
            flag_of(name),
            type=int if parameter.whole else float,
            metavar="N" if parameter.whole else "X",
            help=f"{parameter.meaning} (default: {_describe_defaults(name)})",
        )
    group.add_argument(
        "--unary-start",
        action="store_true",
        help="dyck, padded-reversal: allow a unary first rule, as the papers' grammars do and their data do not",
    )


def _describe_defaults(name: str) -> str:
    """A parameter's default, or the default of each task where they differ."""
    defaults = {task: language.defaults[name] for task, language in LANGUAGES.items() if name in language.defaults}
    if len(set(defaults.values())) == 1:
        return f"{next(iter(defaults.values())):g}"
    return ", ".join(f"{value:g} for {task}" for task, value in defaults.items())


def run(args: argparse.Namespace) -> int:
    """Write the corpus and return the exit code."""
    # It needs numpy, which takes time to load.
    from fairseq_stack_preprocess.cfl import corpus

    given = {name: getattr(args, name) for name in PARAMETERS if getattr(args, name) is not None}
    options = Options(
        task=args.task,
        grammar=args.grammar,
        parameters=given,
        unary_start=args.unary_start,
        strip_cr=args.strip_cr,
        min_length=args.min_length,
        max_length=args.max_length,
        test_min_length=args.test_min_length,
        test_max_length=args.test_max_length,
        train_size=limited(args.train_size, args.limit),
        valid_size=limited(args.valid_size, args.limit),
        test_per_length=limited(args.test_per_length, args.limit),
        batch_size=args.batch_size,
        seed=args.seed,
        test_seed=args.test_seed,
        binarise=not args.no_binarise,
    )
    return run_corpus(args, options, corpus.prepare, plan=corpus.plan(options))
