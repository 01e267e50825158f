"""What the tests of the Triton kernels share. They run on a GPU, or else in Triton's interpreter on the CPU."""

from __future__ import annotations

import importlib.util

import pytest
import torch

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
needs_triton = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")
