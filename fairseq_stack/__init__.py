"""fairseq_stack: sequence models that have stacks in them, as a fairseq plugin.

Importing this package is cheap and registers nothing. ``fairseq-train --user-dir ...`` imports
:mod:`fairseq_stack.models` and :mod:`fairseq_stack.tasks`, which register the architectures, tasks and
criterions with fairseq; a program that loads checkpoints itself imports :mod:`fairseq_stack.models` first.
The differentiable stacks in :mod:`fairseq_stack.ops` need torch only.
"""

__version__ = "0.1.0"
