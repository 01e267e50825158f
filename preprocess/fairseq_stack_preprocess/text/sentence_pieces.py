"""Subwords by SentencePiece: a BPE model, its vocabulary for one language, and text split into pieces."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from ..errors import PrepareError
from ..progress import say
from .fairseq_words import SPECIAL_WORDS
from .output import write_lines
from .streams import require_file

LINES_AT_A_TIME = 10_000

LONGEST_LINE = 4192
"""The bytes of the longest line from which SentencePiece learns."""

MOST_UNKNOWN = 0.005
"""The share of unknown pieces in a text above which there is a warning."""

OTHER_WHITE_SPACE = re.compile(r"[^\S \n]")
"""White space other than spaces, such as U+0085 or a tab: fairseq also splits lines into pieces there."""


def made_blank(lines: Iterable[str], counts: Counter[str] | None = None) -> Iterator[str]:
    """Yield ``lines`` with spaces for :data:`OTHER_WHITE_SPACE`, which ``counts`` counts by code point."""
    for line in lines:
        if not OTHER_WHITE_SPACE.search(line):
            yield line
            continue
        if counts is not None:
            counts.update(f"U+{ord(character):04X}" for character in OTHER_WHITE_SPACE.findall(line))
        yield OTHER_WHITE_SPACE.sub(" ", line)


def train_model(
    lines: Iterable[str], *, pieces: int, hard_limit: bool = False, normalization: str = "identity"
) -> bytes:
    """Train a BPE model with the settings of DuSell & Chiang (2024) and return it as SentencePiece writes it.

    Args:
        lines: the text; every character of it becomes a piece. SentencePiece ignores lines of more than
            :data:`LONGEST_LINE` bytes, of which there is a warning.
        pieces: the maximum number of pieces, including ``<unk>``.
        hard_limit: whether too little text for so many pieces is an error.
        normalization: SentencePiece's name of a normalization rule, such as ``identity``.

    Raises:
        PrepareError: SentencePiece fails, for example with fewer pieces than characters.
    """
    import sentencepiece

    model, too_long, failure = io.BytesIO(), 0, None

    def watched() -> Iterator[str]:
        nonlocal too_long, failure
        try:
            for line in lines:
                too_long += len(line) > LONGEST_LINE // 4 and len(line.encode()) > LONGEST_LINE
                yield line
        except PrepareError as error:
            failure = error  # which SentencePiece would hide in its own

    try:
        # From an iterator and not from files, whose paths SentencePiece would write into the model.
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=watched(),
            model_writer=model,
            model_type="bpe",
            vocab_size=pieces,
            hard_vocab_limit=hard_limit,
            character_coverage=1.0,
            unk_id=0,
            bos_id=-1,
            eos_id=-1,
            pad_id=-1,
            unk_piece="<unk>",
            normalization_rule_name=normalization,
            minloglevel=2,
        )
    except (RuntimeError, OSError, ValueError) as error:
        if failure is not None:
            raise failure from error
        reason = str(error).strip().splitlines()[-1].rpartition("] ")[-1]  # without the part for developers
        flags = f"--pieces {pieces}" + (
            "" if normalization == "identity" else f" --piece-normalization {normalization}"
        )
        if too_long:
            reason = f"it ignores the {too_long:,} lines of more than {LONGEST_LINE:,} bytes; split them ({reason})"
        raise PrepareError(f"{flags}: SentencePiece could not train: {reason}") from error
    if failure is not None:
        raise failure
    if too_long:
        say(
            f"warning: SentencePiece ignores {too_long:,} lines of more than {LONGEST_LINE:,} bytes; characters that "
            "only they have are unknown; split them"
        )
    return model.getvalue()


def read_model(path: Path) -> bytes:
    """Read a SentencePiece model.

    Raises:
        PrepareError: it cannot be read.
    """
    require_file(path)
    try:
        encoder = Encoder(model := path.read_bytes())
    except (RuntimeError, OSError) as error:
        raise PrepareError(f"{path} is not a SentencePiece model") from error
    if not model:
        raise PrepareError(f"{path} is empty: expected a SentencePiece model")
    if special := encoder.pieces() & SPECIAL_WORDS:
        raise PrepareError(f"{path}: it cuts text into {min(special)}, which fairseq reserves")
    return model


class Encoder:
    """Cuts text into the pieces of a model."""

    def __init__(self, model: bytes) -> None:
        import sentencepiece

        self._processor: Any = sentencepiece.SentencePieceProcessor(model_proto=model)

    def encode(self, lines: Iterable[str]) -> Iterator[list[str]]:
        """Yield the pieces of each line."""
        for batch in _batches(lines):
            yield from self._processor.encode(batch, out_type=str)

    def pieces(self) -> frozenset[str]:
        """All pieces that text can be cut into, except ``<unk>``. Characters outside of them are unknown."""
        model = self._processor
        without_text = (model.is_unused, model.is_unknown, model.is_control)
        in_use = (i for i in range(model.get_piece_size()) if not any(is_such(i) for is_such in without_text))
        return frozenset(map(model.id_to_piece, in_use))

    def vocabulary(self, lines: Iterable[str]) -> Counter[str]:
        """How often each piece of the model occurs, as ``spm_encode --generate_vocabulary`` counts."""
        counts: Counter[int] = Counter()
        for batch in _batches(lines):
            for ids in self._processor.encode(batch, out_type=int):
                counts.update(ids)
        del counts[self._processor.unk_id()]
        return Counter({self._processor.id_to_piece(index): count for index, count in counts.items()})


def write_vocabulary(vocabulary: Counter[str], path: Path) -> None:
    """Write pieces and counts in the format of ``spm_encode --generate_vocabulary``, the most frequent first."""
    frequent_first = sorted(vocabulary.items(), key=lambda item: (-item[1], item[0]))
    write_lines(path, (f"{piece}\t{count}" for piece, count in frequent_first))


def write_dictionary(pieces: Iterable[str], counts: Counter[str], path: Path) -> None:
    """Write pieces in fairseq's format and order. Those that do not occur in train are needed for other text."""
    words = sorted(set(pieces) - SPECIAL_WORDS, key=lambda piece: (-counts[piece], piece))
    write_lines(path, (f"{piece} {counts[piece]}" for piece in words))


def count_unknown(tokens: Counter[str], known: Collection[str], label: str) -> dict[str, float]:
    """The number and the share of tokens that are not ``known``, for the manifest; also said on standard error."""
    unknown = sum(count for token, count in tokens.items() if token not in known)
    rate = unknown / max(tokens.total(), 1)
    warning = "warning: " if rate > MOST_UNKNOWN else ""
    say(f"{warning}{label}: {unknown:,} of {tokens.total():,} tokens are unknown ({rate:.2%})")
    return {"unknown_tokens": unknown, "unknown_rate": round(rate, 6)}


def restricted(model: bytes, keep: Callable[[str], bool]) -> bytes:
    """The model with only those pieces in use that ``keep`` accepts, and single characters.

    ``spm_encode --vocabulary`` does the same before it encodes; SentencePiece 0.2.3 no longer has it in Python.
    Pieces that are not kept get the type UNUSED, and text is cut into smaller ones instead.

    Raises:
        PrepareError: see :func:`require_model_format`.
    """
    model_format = require_model_format()
    normal, unused = model_format.ModelProto.SentencePiece.NORMAL, model_format.ModelProto.SentencePiece.UNUSED
    content = model_format.ModelProto.FromString(model)
    for piece in content.pieces:
        if piece.type == normal and len(piece.piece) > 1 and not keep(piece.piece):
            piece.type = unused
    written: bytes = content.SerializeToString()
    return written


def require_model_format() -> Any:
    """The module that reads and writes the files of models: to be called before work that ends with :func:`restricted`.

    Raises:
        PrepareError: it cannot be imported, since protobuf is not installed or too old for this SentencePiece.
    """
    try:
        import sentencepiece.sentencepiece_model_pb2 as model_format
    except Exception as error:  # protobuf has its own exception for versions that do not fit
        reason = " ".join(str(error).split())
        raise PrepareError(
            f"--piece-threshold needs SentencePiece's sentencepiece_model_pb2, which cannot be imported: {reason} "
            "(pip install --upgrade protobuf sentencepiece)"
        ) from error
    return model_format


def _batches(lines: Iterable[str]) -> Iterator[list[str]]:
    lines = iter(lines)
    while batch := list(islice(lines, LINES_AT_A_TIME)):
        yield batch
