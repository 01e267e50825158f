"""Readers of what fairseq's commands and ``fairseq-stack`` write, and the scores computed from it.

Begin with :mod:`.results`: each command ``fairseq-stack evaluate-...`` has a result, which knows its signature, its
JSON and its table. The results, with the functions that compute their values:

- evaluate-cfl: :mod:`.cfl_result` (cross-entropy difference, Section 6 of DuSell and Chiang, 2024);
  :mod:`.cfl_corpus` reads the strings with their probabilities, and :mod:`.cfl_comparison` puts results side by side;
- evaluate-pushdown: :mod:`.pushdown` (closing brackets as in Table 1 of Murty et al., 2023), with
  :mod:`.parsed_corpus` and :mod:`.unlabelled_f1` (their Appendix C);
- evaluate-transformations: :mod:`.transformations`;
- evaluate-blimp: :mod:`.blimp`; evaluate-transduction: :mod:`.transduction`;
- evaluate-syntaxgym: :mod:`.syntaxgym`; :mod:`.formulas` parses and computes the predictions of its suites;
- evaluate-classification: :mod:`.classification`; :mod:`.prompts` reads the prompts.

:mod:`.intervals` is the bootstrap of all of them, :mod:`.markdown` makes tables.
:mod:`.training_log` reads the output of ``fairseq-train``, and :mod:`.manifest` the manifest of a corpus.

Nothing here trains, or imports torch, fairseq, models or plots.
"""
