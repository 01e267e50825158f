"""Readers of what fairseq's commands and ``fairseq-stack`` write, and the scores computed from it.

:mod:`.training_log` and :mod:`.training_curve`, :mod:`.translations` and :mod:`.word_scores` read the outputs of
``fairseq-train``, ``fairseq-generate`` and ``fairseq-eval-lm``; :mod:`.corpus` reads corpora; :mod:`.cfl_result` and
:mod:`.cfl_comparison` read results of ``fairseq-stack evaluate-cfl``. Nothing here trains.
"""
