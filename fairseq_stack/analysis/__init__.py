"""What was learnt, read from logs, checkpoints and translations: nothing here trains.

:mod:`.training_log`, :mod:`.translations` and :mod:`.word_scores` read what fairseq's commands write,
:mod:`.stack_weights` shows what stack attention looks at, and :mod:`.experiment`, :mod:`.tables` and :mod:`.figure`
put the demo together.
"""
