"""The sentences that a model reads while its stacks are watched: text, or lines of a data set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairseq.data import Dictionary, data_utils
from torch import Tensor

from fairseq_stack.errors import UserError
from fairseq_stack.hub.interface import Hub, LanguageModelHub, TransductionHub, TranslationHub

MOST_NAMED = 5
"""An error names so many words that the dictionary lacks."""


@dataclass(frozen=True, eq=False)
class Sentence:
    """The tokens of a sentence, which end with ``</s>``.

    Attributes:
        name: what errors call it, such as ``valid, line 12``.
        source: the sentence that a translation model translates, or that another model reads.
        target: its translation, which the decoder reads; None for the translation that beam search finds, and for
            models that do not translate.
    """

    name: str
    source: Tensor
    target: Tensor | None = None


def sentence_of_text(hub: Hub, text: str, translation: str | None = None, *, name: str = "sentence 1") -> Sentence:
    """A sentence of raw text if the data of the model are in pieces, and of words separated by spaces otherwise.

    Raises:
        UserError: a word is not in the dictionary of the model, or a model that does not translate is given a
            translation. Pieces that the dictionary lacks are read as ``<unk>``: the user did not write them.
    """
    _require_words(hub.unknown_words(text), hub, hub.src_dict, name)
    source = hub.encode(text)
    if translation is None:
        return Sentence(name, source)
    if not isinstance(hub, TranslationHub):
        raise UserError("only a translation model reads a translation")
    _require_words(hub.unknown_words(translation, of_target=True), hub, hub.tgt_dict, f"the translation of {name}")
    return Sentence(name, source, hub.encode_target(translation))


def first_place(symbols: Sequence[str], name: str | None) -> int:
    """Where the first symbol of this name is, or the number of symbols without one; 0 if no name is asked for."""
    return 0 if name is None else [*symbols, name].index(name)


def _require_words(unknown: Sequence[str], hub: Hub, dictionary: Dictionary, name: str) -> None:
    if not unknown:
        return
    words = ", ".join(map(repr, unknown[:MOST_NAMED])) + (", ..." if len(unknown) > MOST_NAMED else "")
    if isinstance(hub, TransductionHub):
        advice = f"expected some of {' '.join(dictionary.symbols[dictionary.nspecial :])}"
    elif isinstance(hub, LanguageModelHub) and _reads_no_unknown(hub.cfg.model):
        advice = f"it was trained without {dictionary.unk_word} (--compact-vocab-unk)"
    else:
        advice = f"write {dictionary.unk_word} for a word that the model does not know"
    raise UserError(f"{name} has {words}, which the dictionary of the model lacks; {advice}")


def _reads_no_unknown(options: Any) -> bool:
    return getattr(options, "compact_vocab", False) and not getattr(options, "compact_vocab_unk", False)


def sentences_of_split(hub: Hub, folder: Path, split: str, first: int, count: int) -> list[Sentence]:
    """The sentences of ``count`` lines of binarised data, with their translations if the model translates.

    Args:
        hub: the model.
        folder: what fairseq-preprocess wrote, such as ``data-bin``.
        split: such as ``valid``.
        first: the first line, at least 1.
        count: the number of lines; there may be fewer.

    Raises:
        UserError: the split or the line does not exist, or the model's dictionaries do not fit it.
    """
    sides = _sides(hub, folder, split)
    length = len(sides[0][0])
    require_line(f"{folder}, {split}", length, first)
    sentences = []
    for number in range(first, min(first + count, length + 1)):
        tokens = [side[number - 1].long() for side, _ in sides]
        for of_side, (_, dictionary) in zip(tokens, sides, strict=True):
            largest = max(of_side.tolist(), default=0)
            if largest >= len(dictionary):
                raise UserError(
                    f"{folder}, {split}, line {number} has the token {largest}, but the dictionary of the model has "
                    f"{len(dictionary)} words; name the data that the model was trained on"
                )
        sentences.append(Sentence(f"{split}, line {number}", *tokens))
    return sentences


def require_line(name: str, number: int, line: int) -> None:
    """Raise UserError unless what ``name`` names has this line, being of ``number`` lines."""
    if line > number:
        raise UserError(f"{name} has {number:,} lines, and no line {line:,}")


def _sides(hub: Hub, folder: Path, split: str) -> list[tuple[Any, Dictionary]]:
    """The tokens of each line of a split, with their dictionary: of the sentences, and of their translations."""
    source, target = (getattr(hub.task.cfg, name, None) for name in ("source_lang", "target_lang"))
    if isinstance(hub, LanguageModelHub):
        candidates = [{split: hub.src_dict}]
    elif isinstance(hub, TransductionHub):
        candidates = [{f"{split}.{source}-{target}.{source}": hub.src_dict}]
    else:
        pairs = f"{source}-{target}", f"{target}-{source}"
        candidates = [
            {f"{split}.{pair}.{source}": hub.src_dict, f"{split}.{pair}.{target}": hub.tgt_dict} for pair in pairs
        ]
    for names in candidates:
        if all((folder / f"{name}.idx").is_file() for name in names):
            return [
                (data_utils.load_indexed_dataset(str(folder / name), dictionary), dictionary)
                for name, dictionary in names.items()
            ]
    splits = sorted({path.name.partition(".")[0] for path in folder.glob("*.idx")})
    expected = f"expected one of {', '.join(splits)}" if splits else "expected the folder of fairseq-preprocess"
    raise UserError(f"{folder} has no {' and '.join(f'{name}.idx' for name in candidates[0])}; {expected}")
