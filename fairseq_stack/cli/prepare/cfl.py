"""``fairseq-stack prepare cfl``."""

from __future__ import annotations

import argparse
from dataclasses import fields
from pathlib import Path

from fairseq_stack.cli.arguments import add_number
from fairseq_stack_preprocess.cfl import bounded_dyck
from fairseq_stack_preprocess.cfl.language_options import Options
from fairseq_stack_preprocess.cfl.languages import LANGUAGES, PARAMETERS
from fairseq_stack_preprocess.errors import flag_of

from ._common import SIZES, add_common, options_from, refuse, run_corpus

BOUNDED = bounded_dyck.TASK
BoundedOptions = bounded_dyck.Options

SUMMARY = "generated strings of a context-free or other formal language (for language modelling)"

DESCRIPTION = """\
Strings of a formal language with their exact probabilities. The language is one
from the papers of DuSell and Chiang, or that of your own probabilistic context-free
grammar. The length of a string is uniform over the lengths that the language has in
the range; given its length, the string follows the grammar. In train and valid, all
strings of a batch have the same length, so training needs no padding. Test has the
same number of strings of each length. text/*.logp holds log p(string | length),
and lower_bound.json the lowest possible cross-entropy, with and without the ends of
strings.

bounded-dyck is another distribution (Murty et al., 2023), without probabilities but
with a parse of each string, for --task pushdown_language_modeling. text/depth.txt
and text/distance.txt are two further test sets.

tasks:
""" + "\n".join(
    f"  {name:33}  {form}"
    for name, form in (
        *((language.name, language.form) for language in LANGUAGES.values()),
        (BOUNDED, "balanced brackets, of bounded depth"),
    )
)

EXAMPLE = """\
examples:
  fairseq-stack prepare cfl data/hardest --task hardest-cfl --seed 1
  fairseq-stack prepare cfl data/mine --grammar mine.txt --min-length 10
  fairseq-stack prepare cfl data/bounded --task bounded-dyck --max-length 150

A grammar is a text such as
  S -> '(' S ')' S [0.4] | '' [0.6]    # quoted: terminals; '' is the empty string"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--task", metavar="NAME", choices=[*LANGUAGES, BOUNDED], help="one of the tasks above")
    what.add_argument("--grammar", metavar="FILE", type=Path, help="your own grammar")
    _add_parameters(parser)
    add_number(parser, "--min-length", "minimum length in train and valid", Options.min_length)
    add_number(parser, "--max-length", "maximum length in train and valid", Options.max_length)
    add_number(parser, "--test-min-length", "minimum length in test", Options.test_min_length)
    add_number(parser, "--test-max-length", "maximum length in test", Options.test_max_length)
    add_number(parser, "--train-size", "strings in train", Options.train_size)
    add_number(parser, "--valid-size", "strings in valid", Options.valid_size)
    add_number(parser, "--test-per-length", "strings of each length in test", Options.test_per_length)
    add_number(parser, "--batch-size", "number of consecutive strings of the same length", Options.batch_size)
    add_number(parser, "--test-seed", "random seed of test", Options.test_seed)
    parser.add_argument(
        "--attachments",
        action="store_true",
        help="reversal, dyck: also write the parses, text/*.attach (bounded-dyck always has them)",
    )
    _add_bounded(parser)
    add_common(
        parser,
        seed=Options.seed,
        limit="at most N strings in train, in valid and of each length in test, for a quick look",
    )
    # What is not given has the default of the task's corpus.
    parser.set_defaults(**dict.fromkeys(_names(Options) | _names(BoundedOptions)))


def _names(kind: type[Options] | type[BoundedOptions]) -> set[str]:
    """The options of a corpus that have an argument with their name and a value."""
    flags = {"parameters", "grammar", "task", "binarise", "attachments"}
    return {field.name for field in fields(kind)} - flags - set(PARAMETERS)


def _add_bounded(parser: argparse.ArgumentParser) -> None:
    """Declare the options that only ``bounded-dyck`` has."""
    default = BoundedOptions
    shared = ("bracket_types", "min_length", "max_length", "train_size", "valid_size")
    defaults = "\n".join(f"{flag_of(name):16} {getattr(default, name)}" for name in shared)
    group = parser.add_argument_group(BOUNDED, f"Options above have other defaults:\n{defaults}")
    add_number(group, "--max-depth", "maximum number of open brackets", default.max_depth)
    add_number(group, "--test-size", "strings in test", default.test_size)
    add_number(group, "--distance-size", "strings in text/distance.txt", default.distance_size)
    add_number(
        group,
        "--distance-max-depth",
        "maximum number of open brackets in text/distance.txt",
        default.distance_max_depth,
    )
    add_number(group, "--distance-max-length", "maximum length in text/distance.txt", default.distance_max_length)
    add_number(group, "--depth-from", "minimum depth in text/depth.txt", default.depth_from)
    add_number(group, "--depth-to", "maximum depth in text/depth.txt", default.depth_to)
    add_number(group, "--depth-strings", "strings of each depth in text/depth.txt", default.depth_strings)


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


def _describe_defaults(name: str) -> str:
    """A parameter's default, or the default of each task where they differ."""
    defaults = {task: language.defaults[name] for task, language in LANGUAGES.items() if name in language.defaults}
    if len(set(defaults.values())) == 1:
        return f"{next(iter(defaults.values())):g}"
    return ", ".join(f"{value:g} for {task}" for task, value in defaults.items())


def run(args: argparse.Namespace) -> int:
    if args.task == BOUNDED:
        return _run_bounded(args)
    # It needs numpy, which takes time to load.
    from fairseq_stack_preprocess.cfl import language_corpus as corpus

    refuse(args, sorted(_names(BoundedOptions) - _names(Options)), f"needs --task {BOUNDED}")
    parameters = {name: getattr(args, name) for name in PARAMETERS if getattr(args, name) is not None}
    sizes = ("train_size", "valid_size", "test_per_length")
    options = options_from(args, Options, limited=sizes, parameters=parameters)
    return run_corpus(args, options, corpus.prepare)


def _run_bounded(args: argparse.Namespace) -> int:
    others = {*PARAMETERS, "attachments", *_names(Options)}
    others -= {"bracket_types", *_names(BoundedOptions)}
    refuse(args, sorted(others), f"is not an option of --task {BOUNDED}")
    options = options_from(args, BoundedOptions, limited=(*SIZES, "distance_size", "depth_strings"))
    return run_corpus(args, options, bounded_dyck.prepare)
