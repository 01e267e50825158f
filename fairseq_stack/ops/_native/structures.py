"""What Python passes to the kernels, as ``src/calls.h`` declares it: the fields of its structs for ctypes."""

from __future__ import annotations

import ctypes
import functools
import re
from array import array
from pathlib import Path

from torch import Tensor

Fields = tuple[tuple[str, type], ...]

_HEADER = Path(__file__).with_name("src") / "calls.h"
_KINDS: dict[str, type] = {
    "int64_t": ctypes.c_int64,
    "double": ctypes.c_double,
    "*": ctypes.c_void_p,
    "**": ctypes.c_void_p,
}


class Call(ctypes.Structure):
    """What a kernel takes: a struct of the header, as :func:`new_call` makes it."""

    def hold(self, **arrays: Tensor | array[int] | None) -> None:
        """Have fields point to arrays, or to contiguous copies, which live as long as the call; None is NULL."""
        held = vars(self).setdefault("held", [])
        for name, values in arrays.items():
            if isinstance(values, Tensor):
                if values.is_neg() or not values.is_contiguous():  # asking first takes a third of the time
                    values = values.resolve_neg().contiguous()
                setattr(self, name, values.data_ptr())
            elif values is not None:
                setattr(self, name, values.buffer_info()[0])
            held.append(values)


def new_call(struct: str, *sizes: int, **fields: float) -> Call:
    """A struct of the header, whose first fields are ``sizes``; of the others, those that are not given are 0.

    Raises:
        KeyError: the header has no such struct.
    """
    return structs()[struct](*sizes, **fields)


@functools.cache
def structs() -> dict[str, type[Call]]:
    """The structs of the header by name."""
    text = re.sub(r"(?s)/\*.*?\*/", "", _HEADER.read_text(encoding="utf-8"))
    found = re.findall(r"(?s)struct (\w+) \{(.*?)\};", text)
    return {name: type(name, (Call,), {"_fields_": _fields(body)}) for name, body in found}


def _fields(body: str) -> Fields:
    """The fields of declarations such as ``const void *push, *const *columns;``."""
    fields = []
    for declaration in re.sub(r"\bconst\b|\bstruct\s|\s+(?=\*)", "", body).split(";")[:-1]:
        kind, names = re.split(r"(?=\*)|\s", declaration.strip(), maxsplit=1)
        fields += [(name, _KINDS[stars or kind]) for stars, name in re.findall(r"(\**)(\w+)", names)]
    return tuple(fields)
