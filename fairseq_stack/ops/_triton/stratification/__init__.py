"""The stratification stack as Triton kernels, for GPUs."""
