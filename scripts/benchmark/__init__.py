"""What ``scripts/benchmark.py`` measures: the stacks with all their backends, decoding, and training steps.

:mod:`.stacks` says what a case is and :mod:`.variants` in how many ways it can be computed; :mod:`.agreement` refuses
what computes something else, and :mod:`.timing`, :mod:`.memory`, :mod:`.peak`, :mod:`.decoding`, :mod:`.training`,
:mod:`.recurrent`, :mod:`.networks` and :mod:`.long_sequences` measure. :mod:`.rows` has the figures, and
:mod:`.report` the tables.
"""
