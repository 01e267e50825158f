"""Kernels in Triton, for GPUs. Nothing imports ``triton`` except the modules here, which load when a GPU needs them.

    nondeterministic/  Eqs. 21-29: sequences, ``forward.py``, ``backward.py`` and ``log_weights.py``; steps, ``step.py``
    superposition/     Eq. 5: sequences, ``kernels.py``; steps, ``step.py``

Each ``launch.py`` has the functions of tensors that a stack calls: memory and grids. ``devices.py`` has them run where
their tensors are. Kernels take named tuples: of tensors (``Inner``, ``Blocks``, ``Rows``) and of sizes (``Cells``,
``Sizes``). The folder of a stack has the rest, in ``gpu.py`` and ``_gpu_step.py``: operators of PyTorch with their
gradients, and what becomes of numbers that the kernels cannot hold.

Begin with ``superposition/step.py``, which is a page. Without a GPU the kernels run in Triton's interpreter:
``python -m pytest tests/ops -m triton``.
"""
