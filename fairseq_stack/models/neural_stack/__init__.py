"""Neural stacks and buffered networks of Hao et al. (2018)."""
