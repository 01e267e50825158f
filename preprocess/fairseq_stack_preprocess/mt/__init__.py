"""The corpus ``mt``: parallel text for translation, after DuSell and Chiang (2024), Appendix G.1.

This package imports ``text`` and the shared modules. Begin with :mod:`.translation_corpus`, whose docstring has the
steps in their order.

=========================== =======================================================
module                      what
=========================== =======================================================
:mod:`.translation_options` the options of the corpus
:mod:`.parallel_text`       pairs from plain text and from WMT's ``.sgm``
:mod:`.wmt_markup`          WMT's ``.sgm``
:mod:`.pair_filters`        which pairs are dropped, and how the others are sampled
:mod:`.split_text`          the text of a split: normalised, filtered, sampled
:mod:`.pieces`              BPE models, and the text in pieces
:mod:`.translation_corpus`  all of it, in a folder
=========================== =======================================================
"""
