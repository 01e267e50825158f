"""Searches for the most probable output that fairseq's own generators do not have."""

from .length_normalized import LengthNormalizedBeamSearchGenerator
from .one_pass import AccuracyScorer, OnePassGenerator
from .options import (
    BEAM_SEARCH_CHOICES,
    BEAM_SEARCH_HELP,
    LENGTH_NORMALIZED,
    build_length_normalized_generator,
)

__all__ = [
    "BEAM_SEARCH_CHOICES",
    "BEAM_SEARCH_HELP",
    "LENGTH_NORMALIZED",
    "AccuracyScorer",
    "LengthNormalizedBeamSearchGenerator",
    "OnePassGenerator",
    "build_length_normalized_generator",
]
