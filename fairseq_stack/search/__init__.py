"""Searches for the most probable output that fairseq's own generators do not have."""

from .length_normalized import LengthNormalizedBeamSearchGenerator
from .one_pass import AccuracyScorer, OnePassGenerator

__all__ = ["AccuracyScorer", "LengthNormalizedBeamSearchGenerator", "OnePassGenerator"]
