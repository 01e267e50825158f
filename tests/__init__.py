"""Tests of fairseq_stack and fairseq_stack_preprocess; the folders mirror the packages."""
