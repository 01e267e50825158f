"""``fairseq-stack evaluate-pushdown CHECKPOINT --data DIR``: a model that parses, on sentences with their parses."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairseq_stack.errors import UserError
from fairseq_stack.evaluation.pushdown import (
    PushdownResult,
    Sentence,
    closing_accuracies,
    parse_scores,
    row_of_sentence,
    scores_of,
    with_parses,
)
from fairseq_stack.evaluation.results import method_of, sha_of
from fairseq_stack_preprocess.progress import progress

from .arguments import GREATEST_BEAM, add_number
from .checkpoint import add_checkpoint, add_device, load_checkpoint, model_of, on_device
from .evaluation import add_intervals, add_outputs, add_split, intervals_of, report, require_outputs

if TYPE_CHECKING:
    from fairseq_stack.evaluation.parsed_corpus import ParsedCorpus
    from fairseq_stack.evaluation.pushdown import ScoredParse
    from fairseq_stack.hub.interface import LanguageModelHub

BEAM = 10

SUMMARY = "score a syntactic language model, and its parses"

DESCRIPTION = """\
Score a model that parses (pushdown_transformer_lm) on a split of the corpus that
fairseq-stack prepare treebank, or prepare cfl --task bounded-dyck, wrote to DIR:
with the gold parse of the words before each word, and with the model's own parses.
The tables show the perplexity, the percentage of words that attach as in the gold
parse, and the unlabelled F1 of the best parse: of all spans, without the spans of
sentences, and without punctuation, which is deleted by tags as in EVALB. F1 is over
words: if tokens are pieces, siblings that belong to one word are merged first. For
strings of brackets there is also the accuracy of closing brackets, by distance and
depth. With --best-runs, a language model with one nondeterministic stack parses by
the best run of its automaton, and no word depends on a parse."""

EXAMPLE = """\
examples:
  fairseq-stack evaluate-pushdown checkpoints/trees --data data/trees --json t.json
  fairseq-stack evaluate-pushdown checkpoints/dyck --data data/dyck --split depth \\
      --beam 1"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    corpus = "the corpus of fairseq-stack prepare treebank, or of prepare cfl --task bounded-dyck"
    add_checkpoint(parser, corpus=corpus)
    add_split(parser, what="the sentences to score: text/NAME.txt")
    kept = f"number of parses kept per sentence: 1 for greedy decisions, 0 for gold parses only (default: {BEAM})"
    add_number(parser, "--beam", kept, least=0, most=GREATEST_BEAM)
    parser.add_argument(
        "--best-runs",
        action="store_true",
        help="parse by the best run of the nondeterministic stack (models of --criterion operation_cross_entropy)",
    )
    add_number(parser, "--max-tokens", "maximum number of words at a time, in all parses", 8000, least=1)
    add_intervals(parser)
    add_outputs(parser, row="sentence")
    add_device(parser)


def run(args: argparse.Namespace) -> int:
    require_outputs(args)
    from fairseq_stack.evaluation.parsed_corpus import read_parsed_corpus

    if args.best_runs and args.beam is not None:
        raise UserError("--beam has no effect with --best-runs, which finds one parse")
    beam = None if args.best_runs else BEAM if args.beam is None else args.beam
    corpus = read_parsed_corpus(args.data, args.split)
    hub = load_checkpoint(args, corpus.dictionaries)
    sentences = _score(on_device(hub, args), corpus, args, beam)
    intervals = intervals_of(args)
    gold, own = with_parses(sentences)
    result = PushdownResult(
        signature=method_of(
            split=args.split,
            sentences=len(sentences),
            sha=sha_of([(sentence.words, sentence.attachments) for sentence in sentences]),
            beam="best-runs" if beam is None else beam,
            spans="words",
            **intervals.options,
        ),
        split=args.split,
        beam=beam,
        model=model_of(hub, args.checkpoint),
        sentences=len(sentences),
        words=sum(len(set(sentence.word_of)) for sentence in sentences),
        gold=scores_of(gold, intervals),
        own=scores_of(own, intervals),
        parses=parse_scores(own, intervals),
        closings=tuple(closing_accuracies(sentences, intervals)) if corpus.has_brackets else (),
    )
    return report(args, result, [row_of_sentence(sentence) for sentence in sentences])


def _score(hub: LanguageModelHub, corpus: ParsedCorpus, args: argparse.Namespace, beam: int | None) -> list[Sentence]:
    """The sentences of a corpus with their scores, in their order; with best runs if ``beam`` is None."""
    from fairseq_stack.hub.parsed_strings import score_best_runs, score_parses
    from fairseq_stack.tasks._attachments import read_attachments

    strings = corpus.sentences
    attachments = read_attachments(corpus.attachments, [len(string) + 1 for string in strings])
    choices = [symbol for symbol in hub.tgt_dict.symbols if symbol.endswith(")")] if corpus.has_brackets else None
    options = {"max_tokens": args.max_tokens, "choices": choices}
    scored: Iterator[tuple[int, ScoredParse | None, ScoredParse | None]]
    if beam is None:
        scored = score_best_runs(hub, strings, **options)
    else:
        scored = score_parses(hub, strings, attachments, beam_size=beam, **options)
    sentences = {}
    for number, gold, own in progress(scored, label=args.split, total=len(strings), unit="sentence"):
        marks = None if corpus.punctuation is None else corpus.punctuation[number]
        sentences[number] = Sentence(
            strings[number], corpus.word_of[number], attachments[number].tolist(), marks, gold, own
        )
    return [sentences[number] for number in range(len(sentences))]
