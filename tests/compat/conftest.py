"""Fixtures for the tests of the shims."""

from __future__ import annotations

import pytest

from fairseq_stack import compat


@pytest.fixture
def shims() -> None:
    """The shims are installed."""
    compat.apply()
