"""Outputs of a model, found in ways that fairseq's own generators do not know.

- ``length_normalized.py``: the beam search of DuSell & Chiang (2024), Appendix G.4, which divides log-probabilities by
  length before it selects the next beam. Begin with the generator: its docstring is the algorithm;
- ``one_pass.py``: the outputs of transducers, whose positions are independent given the input.

Both are generators as fairseq's commands call them. The tasks choose between them and fairseq's. This package imports
``compat``, for what both kinds of beam search do with prompts, and ``errors``.
"""

from .length_normalized import LengthNormalizedBeamSearchGenerator
from .one_pass import AccuracyScorer, OnePassGenerator

__all__ = ["AccuracyScorer", "LengthNormalizedBeamSearchGenerator", "OnePassGenerator"]
