"""Models that map each string to a string of the same length, in one pass."""

from __future__ import annotations

from abc import ABC, abstractmethod
from argparse import Namespace
from typing import Any, ClassVar, Self

from fairseq.data import Dictionary
from fairseq.models import FairseqEncoder, FairseqEncoderModel
from fairseq.tasks import FairseqTask
from torch import Tensor, nn

from fairseq_stack.errors import UserError
from fairseq_stack.models.pretrained import Pretrained
from fairseq_stack.models.shared_options import plain_namespace
from fairseq_stack.models.vocabulary import register_fingerprint

Output = dict[str, Tensor]


class TransducerEncoder(FairseqEncoder):
    """The encoder of fairseq around a network that reads and writes the k words of a dictionary.

    Args:
        cfg: the options of the model, settled.
        dictionary: the dictionary of inputs and outputs.
        network: the network.
    """

    def __init__(self, cfg: Any, dictionary: Dictionary, network: nn.Module) -> None:
        super().__init__(dictionary)
        self.cfg, self.network = cfg, network
        register_fingerprint(self, dictionary)


class Transducer(Pretrained, FairseqEncoderModel, ABC):
    """A network that maps each string to a string of the same length.

    Attributes:
        reads_whole_input: whether what an input is padded with, and how long it then is, changes the output.
    """

    reads_whole_input: ClassVar[bool] = False

    @classmethod
    def build_model(cls, args: Any, task: FairseqTask) -> Self:
        """Build the model that the options describe.

        Raises:
            UserError: for options that are out of range or cannot be combined, or a task that does not transduce
                strings.
        """
        if not getattr(task, "transduces", False):
            raise UserError(f"{args._name}: expected --task stack_transduction, got {type(task).__name__}")
        return cls(cls.build_encoder(plain_namespace(args), task.target_dictionary))

    @classmethod
    @abstractmethod
    def build_encoder(cls, options: Namespace, dictionary: Dictionary) -> FairseqEncoder:
        """The network behind fairseq's interface; the options are checked here, see :meth:`build_model`."""

    def forward(self, src_tokens: Tensor, src_lengths: Tensor | None = None, **kwargs: Any) -> Output:
        """The logits of the words at each position, ``encoder_out`` (B, n, k), for tokens (B, n)."""
        output: Output = self.encoder(src_tokens, src_lengths, **kwargs)
        return output
