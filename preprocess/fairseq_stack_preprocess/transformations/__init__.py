"""The corpus ``transformations``: question formation and tense reinflection, after McCoy, Frank & Linzen (2020).

This package imports ``text`` and the shared modules. Begin with :mod:`.sentences`, then :mod:`.tasks`.

=============================== ====================================================================
module                          what
=============================== ====================================================================
:mod:`.class_weights`           how often the types of subjects and verb phrases occur
:mod:`.sentences`               the words, and sentences of given types
:mod:`.tasks`                   the two tasks: pairs by the hierarchical rule, and by the linear one
:mod:`.transformation_corpus`   the pairs as files
=============================== ====================================================================
"""
