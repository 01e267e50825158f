"""What ``scripts/benchmark.py`` measures: the stacks with all their backends, decoding, and training steps.

A case (:mod:`.cases`) is a kind of the register with its sizes, and a backend with a dtype is a variant of it. Whatever
is registered as a kind with an op can be measured.

Each part is a module that checks before it measures, with the rows of its table and their columns: the passes over
whole :mod:`.sequences`, :mod:`.decoding`, steps of :mod:`.training`, stack LSTMs (:mod:`.recurrent`), neural stacks
(:mod:`.networks`), :mod:`.long_sequences` and the code of :mod:`.authors`.
:mod:`.agreement` refuses what computes something else than the equations. :mod:`.timing`, :mod:`.memory` and
:mod:`.machine` are the instruments. Begin with :mod:`.command`, which calls the parts. ``scripts/compare.py`` runs the
cases of :mod:`.compared`.

It imports ``fairseq_stack``, and nothing imports it.
"""
