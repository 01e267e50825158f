"""``fairseq-stack show FOLDER``: what is in a corpus."""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairseq_stack.files import require_writable
from fairseq_stack_preprocess.errors import PrepareError

from .arguments import Subparsers, add_number

if TYPE_CHECKING:
    from fairseq_stack.evaluation.corpus_reader import Corpus, Split

DESCRIPTION = """\
Show what a corpus contains. FOLDER is a folder that fairseq-stack prepare or
fairseq-preprocess wrote. The output is a summary of the manifest, the lengths of
sentences in tokens (without the end of sentence), and the first sentences, decoded
from the binary format, with the matching lines of the accompanying files."""

EXAMPLE = """\
example:
  fairseq-stack show data/europarl --split valid --examples 3 --png lengths.png"""

LONGEST_VALUE = 60
MOST_INPUTS = 8


def add_parser(subparsers: Subparsers) -> None:
    """Declare the subcommand."""
    parser = subparsers.add_parser(
        "show", help="show examples, lengths and the manifest of a corpus", description=DESCRIPTION, epilog=EXAMPLE
    )
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="the corpus")
    parser.add_argument("--split", metavar="NAME", default="train", help="the split to show (default: train)")
    add_number(parser, "--examples", "number of sentences to show", 5, least=0)
    add_number(parser, "--first", "index of the first sentence", 0, least=0, metavar="I")
    parser.add_argument("--png", metavar="FILE", type=Path, help="draw the lengths of all splits into FILE")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print what is in the corpus."""
    from fairseq_stack.evaluation.corpus_reader import read_corpus
    from fairseq_stack.plots.length_drawings import draw_lengths

    if args.png is not None:
        require_writable(args.png)
    corpus = read_corpus(args.folder)
    split = corpus.split(args.split)
    if args.first >= len(split):
        raise PrepareError(f"--first {args.first}: the sentences of {split.name} are 0 to {len(split) - 1}")
    lines = [*describe_manifest(corpus), *describe_lengths(corpus, split)]
    lines += describe_examples(split, args.first, args.examples)
    if args.png is not None:
        draw_lengths(corpus.lengths(), args.png)
        lines += ["", f"picture: {args.png}"]
    print("\n".join(lines))
    return 0


def describe_manifest(corpus: Corpus) -> Iterator[str]:
    """What the corpus is, how it was made, and what was dropped."""
    manifest = corpus.manifest
    if manifest is None:
        yield f"corpus: {corpus.folder} (without a manifest)"
        return
    yield f"corpus: {manifest.get('corpus', '?')}"
    for part in ("options", "versions", "vocabulary"):
        if manifest.get(part):
            yield f"{part}: {_in_one_line(manifest[part])}"
    if manifest.get("inputs"):
        names = list(manifest["inputs"])
        more = len(names) - MOST_INPUTS
        yield f"inputs: {', '.join(names[:MOST_INPUTS])}{f' and {more} more' if more > 0 else ''}"
    for name, counts in manifest.get("splits", {}).items():
        yield f"{name}: {_in_one_line(counts)}"
        dropped = {reason: count for reason, count in manifest.get("dropped", {}).get(name, {}).items() if count}
        if dropped:
            yield f"  dropped: {_in_one_line(dropped)}"


def _in_one_line(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {_short(value)}" for name, value in values.items())


def _short(value: Any) -> str:
    """A value of the manifest, shortened where it is a long list or table."""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 3]}..."


def describe_lengths(corpus: Corpus, shown: Split) -> Iterator[str]:
    """A table of all splits, and the histograms of one."""
    from fairseq_stack.plots.length_drawings import histogram

    rows: list[tuple[str, ...]] = [("", "sentences", "tokens", "least", "median", "mean", "most")]
    for split in corpus.splits:
        for column in split.columns:
            if column.lengths:
                lengths = column.lengths
                numbers = (len(lengths), sum(lengths), min(lengths), statistics.median_low(lengths))
                cells = [*(f"{number:,}" for number in numbers), f"{statistics.fmean(lengths):.1f}"]
                rows.append((f"{split.name} {column.name}", *cells, f"{max(lengths):,}"))
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    yield ""
    for row in rows:
        cells = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        yield "  ".join([row[0].ljust(widths[0]), *cells])
    for language, size in corpus.dictionaries.items():
        yield f"dictionary of {language}: {size:,} symbols"
    for column in shown.columns:
        if column.lengths:
            yield ""
            yield f"tokens in a sentence, {shown.name} {column.name}:"
            yield from (f"  {line}" for line in histogram(column.lengths))


def describe_examples(split: Split, first: int, number: int) -> Iterator[str]:
    """Sentences, each side of a pair on its own line, with the lines of side files."""
    from fairseq_stack.files import read_lines

    side = {name: read_lines(path) for name, path in split.side_files.items()}
    width = max(map(len, [*(column.name for column in split.columns), *side]))
    for index in range(first, min(first + number, len(split))):
        yield ""
        yield f"{split.name} {index}"
        for column in split.columns:
            yield f"  {column.name.ljust(width)}  {column.sentence(index)}".rstrip()
        for name, lines in side.items():
            yield f"  {name.ljust(width)}  {lines[index]}".rstrip()
