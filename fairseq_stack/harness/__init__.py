"""Language models as lm-evaluation-harness (lm-eval) scores them.

Begin with the class in ``language_model.py``, which fulfils the harness's contract with what ``hub`` says about
strings. The harness finds it by the name ``fairseq-stack``, as an entry point. Versions of the harness that know no
entry points are started with ``python -m fairseq_stack.harness``.

This package needs lm-eval and fairseq, and imports ``hub`` and ``errors``.
"""
