"""Models with stacks for Hugging Face transformers, without fairseq.

Importing this package registers its classes: ``AutoModelForCausalLM.from_pretrained(FOLDER)`` then loads a folder that
``fairseq-stack export`` wrote. Without the import, ``trust_remote_code=True`` has the same effect, because the folder
names the classes of this package.

Begin with :mod:`.modeling`: each model is a network of :mod:`fairseq_stack.networks` with what transformers expects of
a model. :mod:`.configuration` holds the options of the network, :mod:`.cache` its state, and :mod:`.tokenizers` turns
text into the ids of the dictionary. Only :mod:`.export`, which reads checkpoints, needs fairseq.
"""

from __future__ import annotations

from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

from fairseq_stack.huggingface.configuration import (
    StackConfig,
    StackLSTMLMConfig,
    StackTransformerConfig,
    StackTransformerLMConfig,
)
from fairseq_stack.huggingface.modeling import StackLSTMForCausalLM, StackTransformerForCausalLM
from fairseq_stack.huggingface.seq2seq import StackTransformerForConditionalGeneration
from fairseq_stack.huggingface.tokenizers import PieceTokenizer

__all__ = [
    "PieceTokenizer",
    "StackConfig",
    "StackLSTMForCausalLM",
    "StackLSTMLMConfig",
    "StackTransformerConfig",
    "StackTransformerForCausalLM",
    "StackTransformerForConditionalGeneration",
    "StackTransformerLMConfig",
]

_CLASSES = (
    (AutoModelForCausalLM, StackTransformerForCausalLM),
    (AutoModelForCausalLM, StackLSTMForCausalLM),
    (AutoModelForSeq2SeqLM, StackTransformerForConditionalGeneration),
)
for _auto, _model in _CLASSES:
    AutoConfig.register(_model.config_class.model_type, _model.config_class, exist_ok=True)
    _auto.register(_model.config_class, _model, exist_ok=True)
    AutoTokenizer.register(_model.config_class, PieceTokenizer, exist_ok=True)
