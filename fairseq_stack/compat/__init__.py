"""All the changes that fairseq needs to run on current versions of numpy and torch, and with this plugin.

:func:`apply` is called by :mod:`fairseq_stack.models` and :mod:`fairseq_stack.tasks` before they touch
fairseq, so that ``--user-dir`` is all a user needs. Nothing happens when this package is imported. Every shim
says why it exists and what makes it unnecessary. No file of fairseq is changed.
"""

from __future__ import annotations

from fairseq_stack.compat import (
    building,
    checkpoints,
    data,
    divergence,
    diverse,
    flags,
    generation,
    interactive,
    logs,
    messages,
    noise,
    numerics,
    resuming,
    saving,
    scoring,
    seeding,
    validation,
    versions,
)


def apply() -> None:
    """Install all shims in this process. Calling it again changes nothing.

    Raises:
        ImportError: if fairseq is missing or is a version that this plugin cannot work with.
    """
    versions.require_supported_fairseq()
    messages.end_commands_with_a_message()
    noise.silence_harmless_warnings()
    logs.write_each_line_once()
    versions.restore_numpy_compat()
    versions.allow_checkpoint_globals()
    numerics.smooth_over_possible_symbols()
    numerics.keep_double_precision()
    seeding.seed_only_what_training_uses()
    building.note_what_a_model_is_built_for()
    data.keep_last_batches()
    data.refuse_empty_data()
    data.refuse_reserved_words()
    data.make_batches_anew_in_each_epoch()
    data.end_workers_with_their_epoch()
    data.end_readers_with_the_process()
    flags.refuse_flags_that_cannot_work()
    flags.refuse_flags_without_effect()
    checkpoints.say_why_a_checkpoint_does_not_fit()
    checkpoints.say_why_a_checkpoint_cannot_be_read()
    checkpoints.refuse_to_restore_nothing()
    saving.write_checkpoints_whole()
    resuming.resume_what_fairseq_forgets()
    resuming.end_finished_training()
    resuming.count_validations_that_are_due()
    validation.add_options_of_validation()  # after the counts, which heed the new interval
    divergence.end_training_that_diverges()
    divergence.refuse_checkpoints_that_diverged()
    diverse.count_overlaps_by_place_in_batch()
    generation.repeat_no_ngrams()
    generation.search_each_sentence_as_if_alone()
    interactive.go_on_after_unusable_lines()
    scoring.say_what_scores_leave_out()
    scoring.score_sentences_one_by_one()
