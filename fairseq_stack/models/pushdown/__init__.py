"""The syntactic language model with Pushdown Layers."""
