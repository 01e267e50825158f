"""Kernels in Triton, for GPUs. Nothing imports ``triton`` except the modules here, which load when a GPU needs them.

    nondeterministic/  Eqs. 21-29: ``forward.py``, ``backward.py`` and ``log_weights.py``
    superposition/     Eq. 5: ``kernels.py``

They compute whole sequences; the steps of a decoder run in PyTorch. Each ``launch.py`` has the functions of tensors
that a stack calls: memory and grids. Kernels take named tuples: of tensors (``Inner``) and of sizes (``Cells``,
``Sizes``). The folder of a stack has the rest, in ``gpu.py``: operators of PyTorch with their gradients, the device,
and what becomes of numbers that the kernels cannot hold.

Begin with ``superposition/kernels.py``. Without a GPU the kernels run in Triton's interpreter:
``python -m pytest tests/ops -m triton``.
"""
