"""Figures from plain data, in one style: nothing here knows torch, fairseq or the other packages of fairseq_stack."""
