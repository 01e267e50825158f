"""SyntaxGym's test suites (Hu et al., 2020).

:mod:`.suites` reads the files, :mod:`.formulas` parses and computes their predictions, and :mod:`.syntaxgym_result` has
the scores of a model and the result of ``fairseq-stack evaluate-syntaxgym``. The surprisals come from outside.
"""
