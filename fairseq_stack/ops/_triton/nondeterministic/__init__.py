"""The nondeterministic stack as Triton kernels, for GPUs. Their order of computation is in ``docs/algorithm.md``.

Everything is computed in float64. Rows and columns of the inner weights are grouped into tiles, and the *cell* (I, J)
holds g[i -> t] for the rows i of tile I and the times t of tile J, with one exponent. Row i has the coordinate i + 1,
and column t the coordinate t + 1, so that a pop from k has the same coordinate as a column and as a row.
"""
