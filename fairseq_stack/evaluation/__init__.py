"""Readers of what fairseq's commands and ``fairseq-stack`` write, and the scores computed from it.

:mod:`.training_log`, :mod:`.training_curve` and :mod:`.word_scores` read the outputs of
``fairseq-train`` and ``fairseq-eval-lm``; :mod:`.corpus` reads corpora. For
``fairseq-stack evaluate-cfl``, :mod:`.cfl_corpus` reads the strings, :mod:`.cfl_scores` computes the figures, and
:mod:`.cfl_result` is the result with its JSON; :mod:`.cfl_comparison` compares results. :mod:`.transduction` is the
result of ``fairseq-stack evaluate-transduction``. What results share is in :mod:`.results`, and their intervals are in
:mod:`.intervals`. Nothing here trains.
"""
