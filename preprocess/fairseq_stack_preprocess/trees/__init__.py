"""Corpora of phrase-structure trees: ``ptb`` and ``treebank``.

This package imports ``text`` and the shared modules. Begin with :mod:`.spans`, which says how a tree becomes spans and
the attachments r_1..r_n of Murty et al. (2023), and :mod:`.treebank`, which uses every other module but :mod:`.ptb`.

======================= =================================================================
module                  what
======================= =================================================================
:mod:`.brackets`        trees in brackets: reading, cleaning and writing
:mod:`.spans`           binary trees as spans and as attachments
:mod:`.operations`      what a tree does to a stack, one operation per word
:mod:`.word_classes`    classes of rare words
:mod:`.side_files`      the files that corpora of trees have next to their text
:mod:`.ptb`             the Penn Treebank, as Dyer et al. (2016) prepared it
:mod:`.treebank`        a user's own trees
:mod:`.treebank_pieces` how their words are cut into pieces
:mod:`.tokens`          further text in the tokens of a corpus
======================= =================================================================
"""
