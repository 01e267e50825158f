"""Classification and regression by prompts, which a language model continues with the label (Murty et al., 2023)."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from fairseq import utils
from fairseq.criterions import CRITERION_REGISTRY
from fairseq.tasks import register_task
from omegaconf import II

from fairseq_stack.criterions.classification_cross_entropy import ClassificationCrossEntropyCriterion
from fairseq_stack.errors import UserError

from ._prompts import Regressor, WithLabels, read_label_tokens, read_labels
from .pushdown_language_modeling import PushdownLanguageModelingConfig, PushdownLanguageModelingTask

TASK = "prompt_classification"


@dataclass
class PromptClassificationConfig(PushdownLanguageModelingConfig):
    """Options of the task ``pushdown_language_modeling``, and the split that is trained on."""

    train_subset: str = II("dataset.train_subset")


@register_task(TASK, dataclass=PromptClassificationConfig)
class PromptClassificationTask(PushdownLanguageModelingTask):
    """Prompts of ``fairseq-stack prepare classification``. Batches have the labels; see :class:`WithLabels`.

    A model that reads tapes gets those of the prompts' parses, which ``fairseq-stack parse-prompts`` writes. For a
    regression, the model gets a :class:`Regressor`, as its ``regressor``.

    Attributes:
        label_tokens: the tokens of each label by its text; None: the task is a regression.
        has_parses: whether the model reads tapes.
    """

    has_parses = False

    def __init__(self, args: PromptClassificationConfig, *others: Any, **kwargs: Any) -> None:
        if args.sample_break_mode != "eos":
            raise UserError(
                f"--task {TASK} needs --sample-break-mode eos, one prompt per sample; got {args.sample_break_mode}"
            )
        super().__init__(args, *others, **kwargs)
        self.label_tokens = read_label_tokens(Path(utils.split_paths(args.data)[0]), self.dictionary)

    def build_model(self, args: Any, from_checkpoint: bool = False) -> Any:
        """As in fairseq, with a regressor for a regression."""
        model = super().build_model(args, from_checkpoint)
        self.has_parses = self.reads_tapes = getattr(getattr(model.decoder, "network", None), "reads_tape", False)
        if self.label_tokens is None:
            model.regressor = Regressor(_num_features(model, self.dictionary.eos()))
        return model

    def build_criterion(self, cfg: Any, *rest: Any) -> Any:
        """As in fairseq.

        Raises:
            UserError: no regressor would be trained.
        """
        of_class = CRITERION_REGISTRY[cfg._name]
        if self.label_tokens is None and not issubclass(of_class, ClassificationCrossEntropyCriterion):
            raise UserError(
                f"--task {TASK}: a regression needs --criterion classification_cross_entropy, or one derived from it, "
                f"got {cfg._name}"
            )
        return super().build_criterion(cfg, *rest)

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any) -> None:
        """As in fairseq, with the labels of the split and, if the model reads tapes, the attachments.

        Raises:
            UserError: see :func:`read_labels` and :func:`read_attachments`.
        """
        super().load_dataset(split, epoch, combine, **kwargs)
        dataset, tokens = self.datasets[split], self.label_tokens
        labels = read_labels(self.text_folder(epoch) / f"{split}.label", tokens, len(dataset))
        of_labels = None if tokens is None else list(tokens.values())
        is_training = combine and split == self.args.train_subset  # only the trainer combines parts
        self.datasets[split] = WithLabels(dataset, labels, of_labels, with_candidates=not is_training)


@torch.no_grad()
def _num_features(model: Any, end: int) -> int:
    """The size of the final states of a model."""
    was_training = model.training
    model.eval()
    features, _ = model(torch.tensor([[end]]), src_lengths=torch.tensor([1]), features_only=True)
    model.train(was_training)
    return int(features.size(-1))
