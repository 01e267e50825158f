"""``fairseq-stack evaluate-cfl CHECKPOINT --data DIR``: a language model on the strings of a formal language."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairseq_stack.evaluation.markdown import table
from fairseq_stack.evaluation.scores import own_method
from fairseq_stack_preprocess.errors import flag_of, require_at_least, require_at_most
from fairseq_stack_preprocess.progress import progress

from .arguments import Subparsers
from .checkpoint import add_checkpoint, add_device, load_checkpoint, model_of, on_device
from .intervals import GREATEST, add_intervals, check_intervals
from .results import add_outputs, check_outputs, report, title

if TYPE_CHECKING:
    from fairseq_stack.evaluation.cfl_corpus import CFLCorpus, CFLStrings
    from fairseq_stack.evaluation.cfl_result import CFLResult, Samples, StringScores
    from fairseq_stack.evaluation.cfl_scores import StringLosses
    from fairseq_stack.hub.interface import LanguageModelHub
    from fairseq_stack.hub.strings import Sample

DESCRIPTION = """\
Evaluate a language model on the strings of a formal language, which fairseq-stack
prepare cfl (or prepare reversal) wrote to DIR. For each length and for all strings,
the table has nats a token of the model and of the strings' own distribution (the
lower bound), the difference with a bootstrap interval, and the accuracy of the next
symbol where the language allows only one. Below it is the share of strings drawn
from the model that are in the language."""

EXAMPLE = """\
example:
  fairseq-stack evaluate-cfl checkpoints/dyck --data data/dyck --json dyck.json"""

MARGIN = 1.2
"""How much longer than the longest string of the corpus a sample may be."""


def add_parser(subparsers: Subparsers) -> None:
    """Declare the subcommand."""
    parser = subparsers.add_parser(
        "evaluate-cfl",
        help="score a language model on the strings of a formal language",
        description=DESCRIPTION,
        epilog=EXAMPLE,
    )
    add_checkpoint(parser, corpus="the corpus of fairseq-stack prepare cfl (or prepare reversal)")
    parser.add_argument("--split", metavar="NAME", default="test", help="the strings to score (default: test)")
    parser.add_argument(
        "--without-eos", action="store_true", help="do not count the ends of strings, as in the paper of 2020"
    )
    add_intervals(parser, seed_of="samples and bootstrap intervals")
    parser.add_argument(
        "--samples", type=int, metavar="N", default=100, help="strings to draw from the model (default: 100)"
    )
    parser.add_argument(
        "--sample-length",
        type=int,
        metavar="N",
        help=f"most symbols of a sample (default: {MARGIN:g} times the longest string of the corpus)",
    )
    parser.add_argument("--show-samples", type=int, metavar="N", default=0, help="samples to print (default: 0)")
    parser.add_argument("--batch-size", type=int, metavar="N", help="most strings at a time (default: no limit)")
    parser.add_argument(
        "--max-tokens", type=int, metavar="N", default=8000, help="most symbols at a time (default: 8000)"
    )
    add_outputs(parser, row="length")
    add_device(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the table, and write the result."""
    _check(args)
    from fairseq_stack.evaluation.cfl_corpus import read_cfl_corpus
    from fairseq_stack.evaluation.results import rows_by_length

    corpus = read_cfl_corpus(args.data)
    strings = corpus.read(args.split)
    sample_length = args.sample_length or round(MARGIN * corpus.greatest_length)
    hub = _load(args, corpus)
    losses = _losses(hub, corpus, strings, args)
    samples = _draw(hub, sample_length, args)
    result = _result(hub, corpus, strings, losses, samples, sample_length, args)
    lines = [*_lines(result), *map(_shown, samples[: args.show_samples])]
    report(result, lines, rows_by_length(result.by_length), args)
    return 0


def _check(args: argparse.Namespace) -> None:
    """Raise an error for options that are out of range, before anything is read."""
    least = {"samples": 0, "sample_length": 1, "show_samples": 0}
    for name, value in {**least, "batch_size": 1, "max_tokens": 1}.items():
        require_at_least(flag_of(name), getattr(args, name), value)
    require_at_most("--samples", args.samples, GREATEST)
    check_intervals(args)
    check_outputs(args)


def _load(args: argparse.Namespace, corpus: CFLCorpus) -> LanguageModelHub:
    hub = load_checkpoint(args, corpus.dictionaries)
    from fairseq_stack.hub.strings import require_strings

    return on_device(require_strings(hub), args)


def _losses(hub: LanguageModelHub, corpus: CFLCorpus, strings: CFLStrings, args: argparse.Namespace) -> StringLosses:
    from fairseq_stack.evaluation.cfl_scores import string_losses
    from fairseq_stack.hub.strings import predictions

    found = predictions(hub, strings.strings, batch_size=args.batch_size, max_tokens=args.max_tokens)
    total = len(strings.strings)
    by_number = dict(progress(found, label=f"{strings.split} strings", total=total, unit="string"))
    in_order = [by_number[number] for number in range(total)]
    determined = corpus.language.determined
    return string_losses(
        [prediction.log_probabilities for prediction in in_order],
        [prediction.is_best for prediction in in_order],
        strings.bounds,
        strings.bounds_given_length,
        None if determined is None else [determined(string) for string in strings.strings],
        eos=not args.without_eos,
    )


def _draw(hub: LanguageModelHub, sample_length: int, args: argparse.Namespace) -> list[Sample]:
    from fairseq_stack.hub.strings import draw_strings

    batch_size = max(1, min(args.batch_size or args.samples, args.max_tokens // sample_length))
    return draw_strings(hub, args.samples, max_length=sample_length, seed=args.seed, batch_size=batch_size)


def _result(
    hub: LanguageModelHub,
    corpus: CFLCorpus,
    strings: CFLStrings,
    losses: StringLosses,
    samples: Sequence[Sample],
    sample_length: int,
    args: argparse.Namespace,
) -> CFLResult:
    from fairseq_stack.evaluation.cfl_result import CFLResult
    from fairseq_stack.evaluation.cfl_scores import overall_scores, scores_by_length
    from fairseq_stack.evaluation.intervals import Intervals

    intervals = Intervals(args.bootstrap, args.confidence, args.seed)
    drawn = {"samples": args.samples, "sample_length": sample_length} if samples else {}
    return CFLResult(
        signature=own_method(
            language=corpus.language.name,
            split=strings.split,
            strings=len(strings.strings),
            sha=strings.sha,
            eos="no" if args.without_eos else "yes",
            bootstrap=args.bootstrap,
            confidence=args.confidence,
            **drawn,
            seed=args.seed,
        ),
        language=corpus.language.name,
        split=strings.split,
        eos=not args.without_eos,
        train_lengths=corpus.train_lengths,
        bootstrap=args.bootstrap,
        confidence=args.confidence,
        model=model_of(hub, args.checkpoint),
        overall=overall_scores(losses, intervals),
        by_length=scores_by_length(losses, intervals),
        samples=_counted(samples, corpus, sample_length) if samples else None,
    )


def _counted(samples: Sequence[Sample], corpus: CFLCorpus, sample_length: int) -> Samples:
    from fairseq_stack.evaluation.cfl_result import Samples

    finished = [sample.symbols for sample in samples if sample.is_finished]
    in_language = sum(corpus.language.contain(finished))
    return Samples(len(samples), in_language, len(samples) - len(finished), sample_length)


def _lines(result: CFLResult) -> list[str]:
    """The result as a user reads it."""
    from fairseq_stack.evaluation.cfl_result import NOTE_ON_BOUNDS

    rows = [_row(f"{scores.length}", scores) for scores in result.by_length]
    columns = ("length", "strings", "nats a token", "bound", "difference", "interval", "next symbol")
    lines = [
        title(f"{result.language}, {result.split}", result.model),
        "",
        table(columns, [*rows, _row("all", result.overall)]),
        "",
        NOTE_ON_BOUNDS,
    ]
    if result.overall.next_symbol is None:
        lines.append("next symbol: it is not known where the grammar allows only one")
    if result.samples is not None:
        lines.append(_about(result.samples))
    return lines


def _row(name: str, scores: StringScores) -> list[str]:
    difference, accuracy = scores.difference, None if scores.next_symbol is None else scores.next_symbol.accuracy
    return [
        name,
        f"{scores.strings:,}",
        f"{scores.cross_entropy:.4f}",
        f"{scores.bound:.4f}",
        f"{difference.value:.4f}",
        f"{difference.low:.4f} to {difference.high:.4f}",
        "" if accuracy is None else f"{100 * accuracy:.2f} %",
    ]


def _about(samples: Samples) -> str:
    line = f"samples: {samples.in_language:,} of {samples.strings:,} in the language ({100 * samples.share:.1f} %)"
    if samples.unfinished:
        line += f"; {samples.unfinished:,} did not end within {samples.max_length} symbols"
    return line


def _shown(sample: Sample) -> str:
    return f"  {' '.join(sample.symbols)}{'' if sample.is_finished else ' ...'}"
