"""Validation after any number of sentences, and compared by all digits."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from typing import Any

from fairseq_stack.compat.options import add_dataclass_field
from fairseq_stack.compat.resuming import train_command
from fairseq_stack.compat.wrapping import Function, wrap_once
from fairseq_stack.errors import UserError

_INTERVAL = "validate_interval_sentences"
_EXACT = "exact_best_checkpoint_metric"
_NUM_SENTENCES = "num_sentences"  # in the extra state of a checkpoint
_ALL_DIGITS = 400  # more than a float has: round() changes nothing


def add_options_of_validation() -> None:
    """Add ``--validate-interval-sentences`` and ``--exact-best-checkpoint-metric`` to ``fairseq-train``.

    fairseq counts epochs and updates, and the number of sentences in an update varies with ``--max-tokens``. It
    compares validations by the numbers that it logs, which have three decimals: small improvements do not count for
    ``--patience``, for the learning rate or for ``checkpoint_best.pt``.

    ``fairseq-hydra-train`` reads its options before it imports plugins: there they are
    ``++dataset.validate_interval_sentences=N`` and ``++checkpoint.exact_best_checkpoint_metric=true``.
    Unnecessary with a fairseq that has such options.
    """
    from fairseq.dataclass.configs import CheckpointConfig, DatasetConfig
    from fairseq.dataclass.initialize import hydra_init
    from fairseq.trainer import Trainer

    if _INTERVAL in DatasetConfig.__dataclass_fields__:
        return
    add_dataclass_field(
        *(DatasetConfig, _INTERVAL, int, 0),
        help="validate and save a checkpoint whenever the number of sentences trained on reaches or passes a multiple "
        "of N (0: never for this reason); --keep-interval-updates says how many of these checkpoints are kept",
    )
    add_dataclass_field(
        *(CheckpointConfig, _EXACT, bool, False),
        help="compare validations by all digits of --best-checkpoint-metric, which must be an average such as loss or "
        "nll_loss: for --patience, for the best checkpoint and for learning rates that depend on it; without this "
        "option they are compared by the three decimals that fairseq logs",
    )
    hydra_init()  # with the new fields
    wrap_once(Trainer, "__init__", _beginning_to_count)
    wrap_once(Trainer, "_reduce_and_log_stats", _counting_sentences)
    wrap_once(Trainer, "save_checkpoint", _saving_count)
    wrap_once(Trainer, "load_checkpoint", _loading_count)


def _beginning_to_count(init: Function) -> Function:
    def init_and_count(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        self.num_sentences = 0
        self.has_passed_interval = False
        wrap_once(train_command(), "validate_and_save", _after_sentences)
        wrap_once(train_command(), "validate", _exactly)

    return init_and_count


def _counting_sentences(reduce_and_log_stats: Function) -> Function:
    def reduce_and_count(self: Any, logging_outputs: Any, sample_size: Any, grad_norm: Any = None) -> Any:
        interval = self.cfg.dataset.get(_INTERVAL, 0)
        if interval > 0 and grad_norm is not None:  # an update; validation has no gradient
            before = self.num_sentences
            self.num_sentences += _number_of_sentences(logging_outputs)
            self.has_passed_interval = self.num_sentences // interval > before // interval
        return reduce_and_log_stats(self, logging_outputs, sample_size, grad_norm)

    return reduce_and_count


def _number_of_sentences(logging_outputs: list[dict[str, Any]]) -> int:
    """The sentences of an update, of all workers."""
    if not all("nsentences" in output for output in logging_outputs):
        raise UserError(
            "--validate-interval-sentences: expected a criterion that logs nsentences, the number of sentences; give "
            "--validate-interval-updates and --save-interval-updates instead"
        )
    return sum(int(output["nsentences"]) for output in logging_outputs)


def _after_sentences(validate_and_save: Function) -> Function:
    def validate_and_save_after_sentences(cfg: Any, trainer: Any, *args: Any, **kwargs: Any) -> Any:
        if trainer.has_passed_interval:
            trainer.has_passed_interval = False
            cfg = _after_every_update(cfg)
        return validate_and_save(cfg, trainer, *args, **kwargs)

    return validate_and_save_after_sentences


def _after_every_update(cfg: Any) -> Any:
    """The configuration of a training run that validates and saves after every update."""
    cfg = copy.deepcopy(cfg)
    cfg.dataset.validate_interval_updates = 1
    cfg.checkpoint.save_interval_updates = 1
    return cfg


def _saving_count(save_checkpoint: Function) -> Function:
    def save_checkpoint_with_count(self: Any, filename: str, extra_state: dict[str, Any]) -> Any:
        return save_checkpoint(self, filename, {**extra_state, _NUM_SENTENCES: self.num_sentences})

    return save_checkpoint_with_count


def _loading_count(load_checkpoint: Function) -> Function:
    def load_checkpoint_with_count(
        self: Any, filename: str, reset_optimizer: bool = False, *args: Any, **kwargs: Any
    ) -> Any:
        extra_state = load_checkpoint(self, filename, reset_optimizer, *args, **kwargs)
        if extra_state is not None and not reset_optimizer:
            self.num_sentences = extra_state.get(_NUM_SENTENCES, 0)
        return extra_state

    return load_checkpoint_with_count


def _exactly(validate: Function) -> Function:
    def validate_exactly(cfg: Any, *args: Any, **kwargs: Any) -> Any:
        if not cfg.checkpoint.get(_EXACT, False):
            return validate(cfg, *args, **kwargs)
        with _all_digits(cfg.checkpoint.best_checkpoint_metric):
            return validate(cfg, *args, **kwargs)

    return validate_exactly


@contextlib.contextmanager
def _all_digits(metric: str) -> Iterator[None]:
    """Log an average with all its digits within the block.

    Raises:
        UserError: it is not an average of numbers that are logged.
    """
    from fairseq.logging import metrics

    log_scalar = metrics.log_scalar
    logged = set()

    def log_scalar_exactly(key: str, value: Any, weight: Any = 1, priority: int = 10, round: int | None = None) -> None:
        logged.add(key)
        log_scalar(key, value, weight, priority, _ALL_DIGITS if key == metric else round)

    metrics.log_scalar = log_scalar_exactly
    try:
        yield
    finally:
        metrics.log_scalar = log_scalar
    if metric not in logged:
        raise UserError(
            f"--exact-best-checkpoint-metric: {metric}, the --best-checkpoint-metric, is rounded when it is computed; "
            f"expected an average, such as {' or '.join(sorted(logged & {'loss', 'nll_loss'}))}; leave the option out"
        )
