"""The data and models of fairseq's commands are needed here, too."""

from tests.end_to_end.conftest import corpora, language_model, translation_model

__all__ = ["corpora", "language_model", "translation_model"]
