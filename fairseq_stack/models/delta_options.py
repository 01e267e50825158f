"""The options of layers of the delta rule, for transformers.

fairseq reads the types of options at run time: annotations must not be postponed.
"""

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass, field, fields

from fairseq.dataclass import ChoiceEnum, FairseqDataclass

from fairseq_stack.errors import UserError
from fairseq_stack.kinds import Layer
from fairseq_stack.models.shared_options import flag, require_effect

READINGS = ChoiceEnum(["previous", "current"])


@dataclass
class DeltaOptions(FairseqDataclass):
    """The options of the kinds delta, gdelta, product and deltastack."""

    delta_beta_scale: float = field(
        default=2.0,
        metadata={
            "help": "delta, gdelta, product, deltastack: strengths of updates are in (0, scale); with 2, updates can "
            "change signs in the memory; DeltaNet and gated DeltaNet had 1"
        },
    )
    delta_convolution: int = field(
        default=4,
        metadata={
            "help": "the same kinds: how many inputs the convolutions of queries, keys and values see; 0 for none"
        },
    )
    delta_output_gate: bool = field(default=False, metadata={"help": "the same kinds: multiply readings by a gate"})
    product_decay: bool = field(default=False, metadata={"help": "product: the memory decays, as with gdelta"})
    deltastack_reading: READINGS = field(  # type: ignore[valid-type]
        default="previous",
        metadata={
            "help": "deltastack: which stack reading is subtracted from the values: the previous step's, as released, "
            "or the current step's"
        },
    )
    deltastack_kappa: float = field(
        default=2.0, metadata={"help": "deltastack: initial sharpness of addresses (kappa); 8 is nearly exact"}
    )
    deltastack_frozen_kappa: bool = field(default=False, metadata={"help": "deltastack: do not train kappa"})
    deltastack_clamped: bool = field(
        default=False,
        metadata={"help": "deltastack: keep pointers within the cells, so that no later push pays back a pop"},
    )
    deltastack_kept_scale: bool = field(
        default=False,
        metadata={"help": "deltastack: readings keep the scale of the number of cells that the model was trained with"},
    )
    deltastack_action_gain: float = field(
        default=1.0, metadata={"help": "deltastack: multiplies the initial weights of the actions"}
    )


def check_delta_options(options: Namespace, layers: Sequence[Layer]) -> None:
    """Check the options of layers of the delta rule in a transformer with these layers.

    Raises:
        UserError: a value is out of range, or an option is set of which no layer makes use.
    """
    expected = {
        "delta_beta_scale": ("a number in (0, 2]", lambda x: 0 < x <= 2),
        "delta_convolution": ("at least 0", lambda x: x >= 0),
        "deltastack_action_gain": ("a positive number", lambda x: x > 0),
    }
    for option in fields(DeltaOptions):
        name, value = option.name, getattr(options, option.name)
        if name == "_name" or value == option.default:
            continue
        what, holds = expected.get(name, ("", lambda _: True))
        if not holds(value):
            raise UserError(f"{flag(name)}: expected {what}, got {value}")
        require_effect(name, layers)
