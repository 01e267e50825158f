"""Classification and regression of sentences by prompts: the corpus ``classification``.

It uses ``text``, the shared modules and :mod:`..trees.tokens`, since prompts are cut into the tokens of the corpus that
the model was trained on.
Begin with :mod:`.classification_corpus`.

============================== ==================================================
module                         what
============================== ==================================================
:mod:`.tasks`                  the prompts of Murty et al. (2023)
:mod:`.prompts`                prompts, and the labels that end them
:mod:`.examples`               tables of examples
:mod:`.classification_corpus`  the corpus
============================== ==================================================
"""
