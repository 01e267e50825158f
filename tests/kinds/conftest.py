"""The data of the end-to-end tests."""

from tests.end_to_end.conftest import corpora

__all__ = ["corpora"]
