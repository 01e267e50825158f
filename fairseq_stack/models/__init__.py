"""fairseq's models: how options become networks, and what checkpoints contain. Importing this package registers them.

Each family has a folder:

- ``transformer/``: layers that a layer list names, for translation and for language modelling (DuSell & Chiang, 2024);
- ``lstm/``: LSTMs that control stacks (2020, 2022, 2023), decoded from sequence to sequence or along one stream;
- ``pushdown/``: the syntactic language model of Murty et al. (2023);
- ``neural_stack/``: the transducers of Hao et al. (2018);
- ``tagger/``: the same layers and LSTMs with an output at each position, for transductions.

Begin with ``build_model`` in ``transformer/stack_transformer_lm.py``: a file has the name of the ``--arch`` that it
builds. The options of a family are declared, completed and checked in one file of its folder. What all families share
of this stands next to the folders, with the vocabularies, what a decoder keeps from step to step, and the averages of
checkpoints. Presets are the files in ``configs/model``.

The equations are in ``modules``, which these models call. Here are the papers' sizes; their initialisations
(Appendix D.2 of 2024) are in ``networks``, the same models without fairseq, which :mod:`.plain` makes of trained ones.
This package imports ``networks``, ``modules``, ``kinds``, ``ops``, ``hub`` and ``compat``, and no task.
"""

from fairseq_stack import compat

compat.apply()

# ruff: noqa: E402  (they need the shims above)
from fairseq_stack.models.lstm.stack_lstm_lm import StackLSTMLanguageModel
from fairseq_stack.models.neural_stack.transducers import BufferedNeuralStackModel, NeuralStackModel
from fairseq_stack.models.pushdown.pushdown_transformer_lm import PushdownLanguageModel
from fairseq_stack.models.tagger.taggers import LSTMTaggerModel, TransformerTaggerModel
from fairseq_stack.models.transformer.stack_transformer import StackTransformer
from fairseq_stack.models.transformer.stack_transformer_lm import StackTransformerLanguageModel

__all__ = [
    "BufferedNeuralStackModel",
    "LSTMTaggerModel",
    "NeuralStackModel",
    "PushdownLanguageModel",
    "StackLSTMLanguageModel",
    "StackTransformer",
    "StackTransformerLanguageModel",
    "TransformerTaggerModel",
]
