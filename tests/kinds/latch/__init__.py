"""A kind in a package of its own, as a user adds one: its op, its sublayer, and here its record."""

from fairseq_stack.kinds import SUPERPOSITION, Kind, register

from .attention import LatchAttention
from .op import OP

LATCH = Kind(
    name="latch",
    title="latch attention",
    sizes=SUPERPOSITION.sizes,
    build=LatchAttention,
    options={"value_activation": "stack_value_activation"},
    op=OP,
    examples=((4,),),
)
register(LATCH)
