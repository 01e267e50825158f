"""``fairseq-stack evaluate-pushdown CHECKPOINT --data DIR``: a model that parses, on sentences with their parses."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from fairseq_stack.evaluation.markdown import table
from fairseq_stack.evaluation.scores import own_method
from fairseq_stack_preprocess.errors import require_at_least, require_at_most
from fairseq_stack_preprocess.progress import progress

from .arguments import Subparsers
from .checkpoint import add_checkpoint, add_device, load_checkpoint, model_of, on_device
from .intervals import add_intervals, check_intervals
from .results import add_outputs, check_outputs, report, sha_of, title

if TYPE_CHECKING:
    from fairseq_stack.evaluation.parsed_corpus import ParsedCorpus
    from fairseq_stack.evaluation.pushdown import PushdownResult, Scores, Sentence
    from fairseq_stack.evaluation.results import Estimate
    from fairseq_stack.hub.interface import LanguageModelHub

DESCRIPTION = """\
Score a model that parses (pushdown_transformer_lm) on a split of the corpus that
fairseq-stack prepare treebank, or prepare cfl --task bounded-dyck, wrote to DIR:
with the gold parse of what is before a word, and with the model's own parses. The
tables have the perplexity, the share of words that attach as in the gold parse, and
unlabelled F1 of the best parse: of all spans, without the spans of sentences, and
without punctuation, which is deleted by tags as EVALB does. F1 is over words: where
tokens are pieces, siblings that belong to one word are merged first. For strings of
brackets there is also the accuracy of closing brackets, by distance and depth."""

EXAMPLE = """\
examples:
  fairseq-stack evaluate-pushdown checkpoints/trees --data data/trees --json t.json
  fairseq-stack evaluate-pushdown checkpoints/dyck --data data/dyck --split depth \\
      --beam 1"""

GREATEST_BEAM = 10_000


def add_parser(subparsers: Subparsers) -> None:
    """Declare the subcommand."""
    parser = subparsers.add_parser(
        "evaluate-pushdown",
        help="score a syntactic language model, and its parses",
        description=DESCRIPTION,
        epilog=EXAMPLE,
    )
    add_checkpoint(parser, corpus="the corpus of fairseq-stack prepare treebank, or of prepare cfl --task bounded-dyck")
    parser.add_argument(
        "--split", metavar="NAME", default="test", help="the sentences to score: text/NAME.txt (default: test)"
    )
    parser.add_argument(
        "--beam",
        type=int,
        metavar="N",
        default=10,
        help="how many parses of a sentence the model keeps: 1 for greedy decisions, 0 for gold parses only "
        "(default: 10)",
    )
    parser.add_argument(
        "--max-tokens", type=int, metavar="N", default=8000, help="most words at a time, in all parses (default: 8000)"
    )
    add_intervals(parser)
    add_outputs(parser, row="sentence")
    add_device(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the tables, and write the result."""
    require_at_least("--beam", args.beam, 0)
    require_at_most("--beam", args.beam, GREATEST_BEAM)
    require_at_least("--max-tokens", args.max_tokens, 1)
    check_intervals(args)
    check_outputs(args)
    from fairseq_stack.evaluation.pushdown import row_of_sentence

    result, sentences = evaluate(args)
    report(result, list(_lines(result)), [row_of_sentence(sentence) for sentence in sentences], args)
    return 0


def evaluate(args: argparse.Namespace) -> tuple[PushdownResult, Sequence[Sentence]]:
    """The result that the arguments ask for, and its sentences.

    Raises:
        UserError: the checkpoint holds a model that does not parse, or the corpus cannot be read or does not fit it.
    """
    from fairseq_stack.evaluation.intervals import Intervals
    from fairseq_stack.evaluation.parsed_corpus import read_parsed_corpus
    from fairseq_stack.evaluation.pushdown import PushdownResult, closing_accuracies, parse_scores, scores_of

    corpus = read_parsed_corpus(args.data, args.split)
    hub = load_checkpoint(args, corpus.dictionaries)
    from fairseq_stack.hub.parsed_strings import require_parses

    sentences = _score(on_device(require_parses(hub), args), corpus, args)
    intervals = Intervals(args.bootstrap, args.confidence, args.seed)
    own = [sentence.own for sentence in sentences if sentence.own is not None]
    result = PushdownResult(
        signature=own_method(
            split=args.split,
            sentences=len(sentences),
            sha=sha_of([(sentence.words, sentence.attachments) for sentence in sentences]),
            beam=args.beam,
            spans="words",
            bootstrap=args.bootstrap,
            confidence=args.confidence,
            seed=args.seed,
        ),
        split=args.split,
        beam=args.beam,
        bootstrap=args.bootstrap,
        confidence=args.confidence,
        model=model_of(hub, args.checkpoint),
        sentences=len(sentences),
        words=sum(len(set(sentence.word_of)) for sentence in sentences),
        gold=scores_of(sentences, [sentence.gold for sentence in sentences], intervals),
        own=scores_of(sentences, own, intervals) if own else None,
        parses=parse_scores(sentences, own, intervals) if own else None,
        closings=tuple(closing_accuracies(sentences, intervals)) if corpus.has_brackets else (),
    )
    return result, sentences


def _score(hub: LanguageModelHub, corpus: ParsedCorpus, args: argparse.Namespace) -> list[Sentence]:
    """The sentences of a corpus with their scores, in their order."""
    from fairseq_stack.evaluation.pushdown import Sentence
    from fairseq_stack.hub.parsed_strings import score_parses
    from fairseq_stack.tasks._attachments import read_attachments

    strings = corpus.sentences
    attachments = read_attachments(corpus.attachments, [len(string) + 1 for string in strings])
    closing = [symbol for symbol in hub.tgt_dict.symbols if symbol.endswith(")")] if corpus.has_brackets else None
    found = score_parses(hub, strings, attachments, beam_size=args.beam, max_tokens=args.max_tokens, choices=closing)
    sentences = {}
    for number, gold, own in progress(found, label=args.split, total=len(strings), unit="sentence"):
        marks = None if corpus.punctuation is None else corpus.punctuation[number]
        sentences[number] = Sentence(
            strings[number], corpus.word_of[number], attachments[number].tolist(), marks, gold, own
        )
    return [sentences[number] for number in range(len(sentences))]


def _lines(result: PushdownResult) -> Iterator[str]:
    """The result as a user reads it."""
    own = "greedy parses" if result.beam == 1 else f"beam of {result.beam}"
    yield from (title(result.split, result.model), "")
    rows = [[name, *_scores(scores)] for name, scores in (("gold parses", result.gold), (own, result.own)) if scores]
    yield table(("parses", "perplexity", "interval", "attachments", "interval"), rows)
    if result.parses is not None:
        shares = {
            "F1": result.parses.f1,
            "F1 without the spans of sentences": result.parses.f1_without_sentence,
            "F1 without punctuation": result.parses.f1_without_punctuation,
            "parses that are one tree": result.parses.trees,
        }
        yield from ("", table((own, "share", "interval"), [[name, *_share(of)] for name, of in shares.items() if of]))
    if result.closings:
        columns = ("closing brackets", "number", "gold parses", "interval", *((own, "interval") if result.own else ()))
        accuracies = [
            [each.group, f"{each.brackets:,}", *_share(each.gold), *(_share(each.own) if each.own else ())]
            for each in result.closings
        ]
        yield from ("", table(columns, accuracies))


def _scores(scores: Scores) -> list[str]:
    perplexity = scores.perplexity
    return [
        f"{perplexity.value:.2f}",
        f"{perplexity.low:.2f} to {perplexity.high:.2f}",
        *_share(scores.attachments),
    ]


def _share(share: Estimate) -> tuple[str, str]:
    return f"{100 * share.value:.2f} %", f"{100 * share.low:.2f} to {100 * share.high:.2f}"
