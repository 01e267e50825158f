"""Transformers whose layers are given by layer lists."""
