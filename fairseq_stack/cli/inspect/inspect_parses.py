"""``fairseq-stack inspect`` of a model that parses: its stack tape, its parses as trees, and its attention."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairseq_stack.cli.arguments import GREATEST_BEAM, add_number
from fairseq_stack.errors import UserError
from fairseq_stack.plots.style import FORMATS as PICTURES
from fairseq_stack.plots.style import figure

from .sentence_options import refuse_unused, say_unknown, text_of

if TYPE_CHECKING:
    from fairseq_stack.hub.interface import LanguageModelHub
    from fairseq_stack.inspection.parses import InspectedParse, InspectedSentence

SHOWN = ("tape", "tree", "attention")
FORMATS = (".json", *PICTURES, ".txt")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options that other models do not have."""
    group = parser.add_argument_group("models that parse (pushdown_transformer_lm)")
    group.add_argument(
        "--tree",
        metavar="BRACKETS",
        help="the parse of the sentence, such as (S (NP (DT the) (NN dog)) (VP (VBZ barks))) or ((the dog) barks) "
        "(default: the most probable one of a beam)",
    )
    add_number(group, "--beam", "number of parses kept (default: 50)", least=1, most=GREATEST_BEAM)
    group.add_argument(
        "--verb",
        metavar="WORD",
        help="a word of the sentence, or its number, counted from 1: show the attention when it is predicted, with "
        "the parse of the words before it",
    )
    group.add_argument("--subject", metavar="WORD", help="the word that it agrees with, or its number")
    group.add_argument(
        "--distractors",
        metavar="WORD,...",
        help="words that it does not agree with, or their numbers, separated by commas",
    )


def inspect_parsed(hub: LanguageModelHub, args: argparse.Namespace) -> str | dict[str, Any] | None:
    """The numbers or the brackets to write; None if a picture is drawn."""
    from fairseq_stack.hub.parse_beams import BEAM_SIZE
    from fairseq_stack.inspection.parses import inspect_parses

    shown = args.show or SHOWN[0]
    _check(args, shown)
    text = text_of(args)
    roles = _roles(hub, text, args)
    beam = BEAM_SIZE if args.beam is None else args.beam
    before = None if args.verb is None else roles["verb"][0]
    sentence = inspect_parses(hub, text, tree=args.tree, beam_size=beam, num_parses=args.runs or 1, before=before)
    say_unknown(hub, [text])
    if args.output.suffix == ".json":
        return {"beam": None if args.tree else beam, **as_json(sentence, roles)}
    if args.output.suffix == ".txt":
        return "".join(f"{parse.brackets}\n" for parse in sentence.parses)
    if shown == "tape":
        draw_tape_of(sentence, args.output, args.title)
    elif shown == "tree":
        draw_trees(sentence, args.output, args.title)
    else:
        draw_attention_of(sentence, roles, args.output, args.title)
    return None


def _check(args: argparse.Namespace, shown: str) -> None:
    used, what = (("beam", "runs"), "") if args.tree is None else (("tree",), " with --tree")
    refuse_unused(args, f"a model that parses{what}", "show", *used, "verb", "subject", "distractors")
    if shown not in SHOWN:
        raise UserError(f"--show {shown}: expected one of {', '.join(SHOWN)} for a model that parses")
    if args.output.suffix not in FORMATS:
        raise UserError(f"--output {args.output}: expected a name that ends with one of {', '.join(FORMATS)}")
    if args.output.suffix in PICTURES and shown != "tree" and args.runs is not None:
        raise UserError(f"--runs {args.runs}: --show {shown} draws the best parse only")
    if args.verb is None and (args.subject, args.distractors) != (None, None):
        raise UserError("--subject and --distractors need --verb, the word that is predicted")
    if args.verb is not None and shown != "attention":
        raise UserError("--verb is for --show attention")


def _roles(hub: LanguageModelHub, text: str, args: argparse.Namespace) -> dict[str, list[int]]:
    """The words that the options name, as numbers from 1 on."""
    from fairseq_stack.hub.language_model import Cutter

    words = Cutter(hub).cut(text).words[:-1]
    given = {name: getattr(args, name) for name in ("verb", "subject", "distractors")}
    roles = {name: value for name, value in given.items() if value is not None}
    named = {name: value.split(",") if name == "distractors" else [value] for name, value in roles.items()}
    numbers_of = {name: [_number(name, value, words) for value in values] for name, values in named.items()}
    for name, numbers in numbers_of.items():
        if name != "verb" and max(numbers) >= numbers_of["verb"][0]:
            verb = words[numbers_of["verb"][0] - 1]
            raise UserError(f"--{name} {roles[name]}: expected words before the verb, {verb!r}")
    return numbers_of


def _number(name: str, value: str, words: Sequence[str]) -> int:
    if value.isdecimal() and 1 <= int(value) <= len(words):
        return int(value)
    if words.count(value) != 1:
        raise UserError(
            f"--{name} {value}: expected a word that the sentence has once, or a number from 1 to {len(words)}"
        )
    return words.index(value) + 1


def as_json(sentence: InspectedSentence, roles: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    """The numbers of all parses, and the mean attention to each word that has a role."""
    best = sentence.parses[0]
    content: dict[str, Any] = {"tokens": list(best.tokens)}
    if roles:
        weights = best.mean_attention()[-1]
        content["predicted"] = sentence.sentence.words[roles["verb"][0] - 1]
        content["mean_attention"] = {
            name: [float(weights[list(sentence.tokens_of(word))].sum()) for word in words]
            for name, words in roles.items()
            if name != "verb"
        }
    return {**content, "parses": [parse.as_json() for parse in sentence.parses]}


def draw_tape_of(sentence: InspectedSentence, path: Path, title: str) -> None:
    """Draw the stack tape of the best parse."""
    from fairseq_stack.plots.parse_drawings import draw_tape, width_of

    (parse,) = sentence.parses
    words = parse.tokens[1:]
    rows = [row[1 : t + 1] for t, row in enumerate(parse.tape.tolist())][1:]
    deepest = int(parse.tape.max())
    limit = f" (the model sees at most {sentence.num_depths - 1})" if deepest >= sentence.num_depths else ""
    side = min(max(0.27 * len(words), 1.6), 18) + max(map(width_of, words))
    with figure(path, 1, 1, (max(side + 1.6, 4.5), side + 0.9), title=title) as panels:
        draw_tape(panels[0, 0], rows, words, f"depth{limit}")
        panels[0, 0].set_title(_title(parse), loc="left")


def draw_trees(sentence: InspectedSentence, path: Path, title: str) -> None:
    """Draw each parse as a tree, the best one on top."""
    from fairseq_stack.plots.parse_drawings import draw_tree, tree_size

    sizes = [tree_size(parse.tokens[1:], parse.attachments[1:]) for parse in sentence.parses]
    heights = [height + 0.4 for _, height in sizes]
    size = max(width for width, _ in sizes), sum(heights)
    with figure(path, len(sizes), 1, size, heights=heights, title=title) as panels:
        for number, (axes, parse) in enumerate(zip(panels[:, 0], sentence.parses, strict=True), start=1):
            draw_tree(axes, parse.tokens[1:], parse.attachments[1:])
            axes.set_title(_title(parse, number), loc="left")


def draw_attention_of(sentence: InspectedSentence, roles: Mapping[str, Sequence[int]], path: Path, title: str) -> None:
    """Draw the mean attention of all heads of all layers: when the verb is predicted, or at each token."""
    from fairseq_stack.plots.panels import literal
    from fairseq_stack.plots.parse_drawings import draw_attention, width_of
    from fairseq_stack.plots.stack_drawings import draw_shares, width_for

    (parse,) = sentence.parses
    weights, tokens = parse.mean_attention(), parse.tokens
    longest = max(map(width_of, tokens))
    if not roles:
        side = width_for(len(tokens))
        with figure(path, 1, 1, (side + longest + 0.6, side + longest - 0.6), title=title) as panels:
            draw_shares(panels[0, 0], weights.tolist(), tokens, tokens, "attention, the mean of layers and heads")
            panels[0, 0].set(xlabel="attention to", ylabel="after reading")
            panels[0, 0].set_title(_title(parse), loc="left")
        return
    groups = {name: [token for word in words for token in sentence.tokens_of(word)] for name, words in roles.items()}
    verb = sentence.sentence.words[roles["verb"][0] - 1]
    with figure(path, 1, 1, (width_for(len(tokens)) + 2, 2.8 + longest), title=title) as panels:
        draw_attention(panels[0, 0], weights[-1].tolist(), tokens, {x: y for x, y in groups.items() if x != "verb"})
        panels[0, 0].set_title(f"when “{literal(verb)}” is predicted", loc="left")


def _title(parse: InspectedParse, number: int = 1) -> str:
    if parse.share is None:
        return "the parse that was given"
    percent = 100 * parse.share
    share = f"{percent:.1f}" if percent >= 0.1 else f"{percent:.0e}"
    return f"{'best parse' if number == 1 else f'parse {number}'} ({share} % of the beam)"
