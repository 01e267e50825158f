"""Neural stacks and buffered networks of Hao et al. (2018)."""

from fairseq_stack.models.neural_stack.transducers import BufferedNeuralStackModel, NeuralStackModel

__all__ = ["BufferedNeuralStackModel", "NeuralStackModel"]
