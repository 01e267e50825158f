"""``fairseq.dataclass.configs``: options that fairseq lacks, and a default that would lose sentences."""

from __future__ import annotations

from dataclasses import field, make_dataclass
from typing import Any

from fairseq_stack.compat.replacing import sets

INTERVAL = "validate_interval_sentences"
EXACT = "exact_best_checkpoint_metric"


@sets("fairseq.dataclass.configs")
def set_options() -> None:
    """Add ``--validate-interval-sentences`` and ``--exact-best-checkpoint-metric``; the default of
    ``--required-batch-size-multiple`` is 1.

    fairseq counts epochs and updates, and the number of sentences in an update varies with ``--max-tokens``. It
    compares validations by the numbers that it logs, which have three decimals: small improvements do not count for
    ``--patience``, for the learning rate or for ``checkpoint_best.pt``. ``--batch-size 12`` does not mean 8.

    ``fairseq-hydra-train`` reads its options before it imports plugins: there they are
    ``++dataset.validate_interval_sentences=N`` and ``++checkpoint.exact_best_checkpoint_metric=true``.

    Unnecessary with a fairseq that has such options, and 1 for the default.
    """
    from fairseq.dataclass.configs import CheckpointConfig, DatasetConfig
    from fairseq.dataclass.initialize import hydra_init

    if INTERVAL in DatasetConfig.__dataclass_fields__:
        return
    DatasetConfig.__dataclass_fields__["required_batch_size_multiple"].default = 1
    DatasetConfig.required_batch_size_multiple = 1
    _add_field(
        *(DatasetConfig, INTERVAL, int, 0),
        help="validate and save a checkpoint whenever the number of sentences trained on reaches or passes a multiple "
        "of N (0: never for this reason); --keep-interval-updates says how many of these checkpoints are kept",
    )
    _add_field(
        *(CheckpointConfig, EXACT, bool, False),
        help="compare validations by all digits of --best-checkpoint-metric, which must be an average such as loss or "
        "nll_loss: for --patience, for the best checkpoint and for learning rates that depend on it; without this "
        "option they are compared by the three decimals that fairseq logs",
    )
    hydra_init()  # with the new fields


def _add_field(config: Any, name: str, kind: type, default: object, help: str) -> None:
    """Add a field where instances, fairseq's parsers and OmegaConf look for it."""
    added = (name, kind, field(default=default, metadata={"help": help}))
    longer: Any = make_dataclass(config.__name__, [added], bases=(config,))
    config.__annotations__[name] = kind
    setattr(config, name, default)
    config.__dataclass_fields__ = longer.__dataclass_fields__
    config.__init__ = longer.__init__
