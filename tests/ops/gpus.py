"""Where the tests of the Triton kernels run: on a GPU, or else in Triton's interpreter on the CPU."""

from __future__ import annotations

import torch

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
