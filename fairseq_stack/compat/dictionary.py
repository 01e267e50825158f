"""``fairseq.data.dictionary``: a word of a text cannot become a symbol of fairseq's own."""

from __future__ import annotations

from typing import Any

from fairseq_stack.compat.replacing import replaces
from fairseq_stack.errors import UserError

_RESERVED = ("<s>", "<pad>")


@replaces("fairseq.data.dictionary:Dictionary.encode_line")
def encode_line(original: Any, self: Any, line: str, *args: Any, **kwargs: Any) -> Any:
    """Reject input text that contains the words ``<s>`` or ``<pad>``.

    fairseq makes them its own symbols: a ``<pad>`` is hidden from the model, or left out of a score.

    Unnecessary with a fairseq whose special symbols cannot occur in text.
    """
    if not kwargs.get("add_if_not_exist", True):  # a text for a given dictionary
        for word in line.split():
            if word in _RESERVED:
                raise UserError(f"{line!r}: fairseq reserves the symbol {word}; it cannot be a word of a text")
    return original(self, line, *args, **kwargs)
