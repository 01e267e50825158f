"""All changes to fairseq while this plugin is loaded. No file of fairseq is changed.

Each function of fairseq is replaced once, in a file named after fairseq's module: what is different in
``fairseq.trainer`` is in ``trainer.py``. Where several things are different in one function, they stand in one
replacement, in the order in which they happen. :mod:`~fairseq_stack.compat.replacing` is the register, and the place to
begin reading. ``python -m fairseq_stack.compat`` prints the table of all changes: what is different, for which models,
and what makes it unnecessary (docs/fairseq.md has it).

Five files are not named after a module of fairseq, since they change the process: ``versions.py`` (numpy and torch),
``messages.py`` (errors of the user), ``noise.py`` (warnings), ``omegaconf.py`` (options) and ``left_out.py`` (what a
score leaves out).

:func:`apply` is called by :mod:`fairseq_stack.models`, :mod:`~fairseq_stack.tasks`, :mod:`~fairseq_stack.optim` and
:mod:`~fairseq_stack.criterions` before they touch fairseq, so that ``--user-dir`` is all a user needs. Importing this
package changes nothing and does not import fairseq. It may import :mod:`fairseq_stack.ops` and
:mod:`fairseq_stack.companions`; models are known here only by what they have (``has_companions``), and schedules
(``count_validation``) and dictionaries (``scorer``) alike.
"""

from __future__ import annotations

from fairseq_stack.compat import (  # noqa: F401  (each registers what it changes)
    adam,
    checkpoint_utils,
    configs,
    data_utils,
    dictionary,
    fairseq_cli_train,
    fairseq_dropout,
    fairseq_task,
    file_io,
    iterators,
    label_smoothed_cross_entropy,
    language_modeling,
    left_out,
    messages,
    models,
    multihead_attention,
    ngram_repeat_block,
    noise,
    omegaconf,
    progress_bar,
    reduce_lr_on_plateau,
    replacing,
    scoring,
    sequence_generator,
    sequence_scorer,
    trainer,
    utils,
    versions,
)


def apply() -> None:
    """Make all changes in this process. Calling it again changes nothing.

    Raises:
        MissingPackage: if fairseq is missing or is a version that this plugin cannot work with.
    """
    versions.require_supported_fairseq()
    replacing.install()
