"""``fairseq-stack evaluate-cfl CHECKPOINT --data DIR``: a language model on the strings of a formal language."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairseq_stack.errors import UserError
from fairseq_stack.evaluation.cfl_result import (
    CFLResult,
    Samples,
    StringLoss,
    overall_scores,
    scores_by_length,
    string_losses,
)
from fairseq_stack.evaluation.results import method_of, rows_by_length
from fairseq_stack_preprocess.progress import progress

from .arguments import add_number
from .checkpoint import add_checkpoint, add_device, load_checkpoint, model_of, on_device, require_ends
from .evaluation import GREATEST, add_intervals, add_outputs, add_split, intervals_of, report, require_outputs

if TYPE_CHECKING:
    from fairseq_stack.evaluation.cfl_corpus import CFLCorpus, CFLStrings
    from fairseq_stack.hub.interface import LanguageModelHub
    from fairseq_stack.hub.strings import Sample

MARGIN = 1.2
"""How much longer than the longest string of the corpus a sample may be."""

SUMMARY = "score a language model on the strings of a formal language"

DESCRIPTION = """\
Evaluate a language model on the strings of a formal language that fairseq-stack
prepare cfl wrote to DIR. For each length and for all strings, the table shows the
nats per symbol of the model and of the strings' own distribution (the lower bound),
and the difference with a bootstrap interval. Below it is the percentage of strings
sampled from the model that are in the language."""

EXAMPLE = """\
example:
  fairseq-stack evaluate-cfl checkpoints/dyck --data data/dyck --json dyck.json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_checkpoint(parser, corpus="the corpus of fairseq-stack prepare cfl")
    add_split(parser)
    parser.add_argument(
        "--without-eos", action="store_true", help="do not count the ends of strings, as in the paper of 2020"
    )
    add_intervals(parser, seed_of="samples and bootstrap intervals")
    add_number(parser, "--samples", "strings to draw from the model", 100, least=0, most=GREATEST)
    longest = f"{MARGIN:g} times the longest string of the corpus"
    add_number(parser, "--sample-length", f"maximum length of a sample (default: {longest})", least=1)
    add_number(parser, "--show-samples", "samples to print", 0, least=0)
    add_number(parser, "--batch-size", "maximum number of strings at a time (default: no limit)", least=1)
    add_number(parser, "--max-tokens", "maximum number of symbols at a time", 8000, least=1)
    add_outputs(parser, row="length")
    add_device(parser)


def run(args: argparse.Namespace) -> int:
    require_outputs(args)
    from fairseq_stack.evaluation.cfl_corpus import read_cfl_corpus

    corpus = read_cfl_corpus(args.data)
    strings = corpus.read(args.split)
    if args.show_samples > args.samples:
        raise UserError(f"--show-samples {args.show_samples}: expected at most the number of --samples, {args.samples}")
    sample_length = args.sample_length or round(MARGIN * corpus.greatest_length)
    hub = load_checkpoint(args, corpus.dictionaries)
    from fairseq_stack.hub.strings import draw_strings

    hub = on_device(hub.as_language_model(), args)
    if args.samples or not args.without_eos:
        require_ends(hub, "add --without-eos --samples 0")
    batch_size = max(1, min(args.batch_size or args.samples, args.max_tokens // sample_length))
    samples = draw_strings(hub, args.samples, max_length=sample_length, seed=args.seed, batch_size=batch_size)
    losses = _losses(hub, corpus, strings, args)
    drawn = {"samples": args.samples, "sample_length": sample_length} if samples else {}
    intervals = intervals_of(args)
    result = CFLResult(
        signature=method_of(
            language=corpus.language,
            split=strings.split,
            strings=len(strings.strings),
            sha=strings.sha,
            eos="no" if args.without_eos else "yes",
            bootstrap=args.bootstrap,
            confidence=args.confidence,
            **drawn,
            seed=args.seed,
        ),
        language=corpus.language,
        split=strings.split,
        eos=not args.without_eos,
        train_lengths=corpus.train_lengths,
        model=model_of(hub, args.checkpoint),
        overall=overall_scores(losses, intervals),
        by_length=scores_by_length(losses, intervals),
        samples=_counted(samples, corpus, sample_length) if samples else None,
    )
    shown = [f"  {' '.join(sample.symbols)}{'' if sample.is_finished else ' ...'}" for sample in samples]
    return report(args, result, rows_by_length(result.by_length), shown[: args.show_samples])


def _losses(
    hub: LanguageModelHub, corpus: CFLCorpus, strings: CFLStrings, args: argparse.Namespace
) -> list[StringLoss]:
    from fairseq_stack.hub.strings import predictions

    predicted = predictions(hub, strings.strings, batch_size=args.batch_size, max_tokens=args.max_tokens)
    total = len(strings.strings)
    by_number = dict(progress(predicted, label=f"{strings.split} strings", total=total, unit="string"))
    in_order = [by_number[number] for number in range(total)]
    return string_losses(
        [prediction.log_probabilities.tolist() for prediction in in_order],
        strings.bounds,
        strings.bounds_given_length,
        eos=not args.without_eos,
    )


def _counted(samples: Sequence[Sample], corpus: CFLCorpus, sample_length: int) -> Samples:
    finished = [sample.symbols for sample in samples if sample.is_finished]
    in_language = sum(corpus.contain(finished))
    return Samples(len(samples), in_language, len(samples) - len(finished), sample_length)
