"""Language models as lm-evaluation-harness (lm-eval) scores them.

Begin with the class in ``language_model.py``, which fulfils the harness's contract with what ``hub`` says about
strings. Its name is ``fairseq-stack``. The harness finds it as an entry point, or, up to version 0.4.13, if started by
``python -m fairseq_stack.harness``.

This package needs lm-eval and fairseq, and imports ``hub`` and ``errors``.
"""
