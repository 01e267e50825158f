"""Corpora of phrase-structure trees: ``ptb``, in two forms, and ``treebank``.

======================== ==========================================================================
module                   what
======================== ==========================================================================
:mod:`.brackets`         trees in brackets: reading, cleaning and writing
:mod:`.spans`            binary trees as spans and as attachments
:mod:`.word_classes`     classes of rare words
:mod:`.side_files`       the files that corpora of trees have beside their text
:mod:`.ptb`              the Penn Treebank, as Dyer et al. (2016) prepared it
:mod:`.mikolov`          the Penn Treebank's text, as Mikolov prepared it: it has no trees
:mod:`.treebank`         a user's own trees
======================== ==========================================================================
"""
