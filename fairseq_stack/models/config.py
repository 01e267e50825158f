"""The options that all families of models share.

fairseq reads these types at run time: annotations must not be postponed.
"""

from dataclasses import dataclass, field

from fairseq.dataclass import FairseqDataclass


@dataclass
class VocabularyOptions(FairseqDataclass):
    """The options of embeddings and output layers that the presets set as in the papers."""

    compact_vocab: bool = field(
        default=False,
        metadata={"help": "restrict embeddings and softmax to the symbols that can occur"},
    )
    compact_vocab_unk: bool = field(
        default=False,
        metadata={"help": "with --compact-vocab: <unk> can occur in language modelling (it always can in translation)"},
    )
    output_bias: bool = field(default=False, metadata={"help": "give the output layer a bias"})
