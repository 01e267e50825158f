"""fairseq's tasks with what stack models need. Importing this package registers them.

- ``stack_translation`` and ``stack_language_modeling``: fairseq's tasks with the paper's beam search, and the papers'
  batches and losses (DuSell & Chiang, 2020 and 2024);
- ``stack_truncated_bptt``: a text as one stream, whose state is carried from segment to segment (2022);
- ``stack_transduction``: pairs of strings of the same length (Hao et al., 2018);
- ``pushdown_language_modeling``: sentences with their parses, as tapes (Murty et al., 2023);
- ``prompt_classification``: prompts with labels, and with parses if the model reads tapes (2023).

Begin with ``stack_language_modeling.py``. A file whose name begins with an underscore holds what a task puts into its
batches, or keeps between them. Options are read by fairseq at run time: their annotations must not be postponed.

This package imports ``models``, ``criterions``, ``evaluation``, ``search``, ``ops`` and ``compat``.
"""

from fairseq_stack import compat

compat.apply()

from . import (  # noqa: E402, F401  (each registers its task)
    prompt_classification,
    pushdown_language_modeling,
    stack_language_modeling,
    stack_transduction,
    stack_translation,
    truncated_bptt,
)
