"""Transformers and LSTMs with stacks that write a word at each position."""
