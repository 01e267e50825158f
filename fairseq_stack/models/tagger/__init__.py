"""Transformers and LSTMs with stacks that write a word at each position."""

from fairseq_stack.models.tagger.taggers import LSTMTaggerModel, TransformerTaggerModel

__all__ = ["LSTMTaggerModel", "TransformerTaggerModel"]
