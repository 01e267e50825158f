"""The superposition stack as Triton kernels, for GPUs: Section 8 of ``docs/algorithm.md``."""
