"""Language modeling with the parses of sentences, for models that read a stack tape."""

# ruff: noqa: UP045

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

from fairseq import utils
from fairseq.data import TokenBlockDataset
from fairseq.tasks import register_task
from fairseq.tasks.language_modeling import SAMPLE_BREAK_MODE_CHOICES

from fairseq_stack.errors import UserError
from fairseq_stack.models.pretrained import Pretrained

from ._attachments import WithAttachments, of_window, read_attachments
from .stack_language_modeling import StackLanguageModelingConfig, StackLanguageModelingTask


@dataclass
class PushdownLanguageModelingConfig(StackLanguageModelingConfig):
    """Options of the task ``stack_language_modeling``, and where the attachments are."""

    attachments: Optional[str] = field(
        default=None,
        metadata={
            "help": "folder with the files SPLIT.attach that fairseq-stack prepare treebank writes (default: text/ "
            "next to the folder of the data)"
        },
    )
    sample_break_mode: Optional[SAMPLE_BREAK_MODE_CHOICES] = field(
        default="eos",
        metadata={
            "help": "eos, one sentence per sample, or complete, whole sentences of at most --tokens-per-sample tokens; "
            "parses allow no other mode"
        },
    )


@register_task("pushdown_language_modeling", dataclass=PushdownLanguageModelingConfig)
class PushdownLanguageModelingTask(StackLanguageModelingTask):
    """Language modeling of sentences with their parses. Batches have the tapes; see :class:`WithAttachments`.

    With ``--sample-break-mode complete``, a sample is a window of several sentences. ``</s>`` is the end of a sentence
    and ROOT of the next one, so ROOT is before each of them, as in Appendix B of Murty et al. (2023).

    What has no parses, such as the input of ``fairseq-interactive``, is read with the model's own decisions.

    Attributes:
        has_tapes: tells models that batches may have tapes.
        has_parses: whether the data have parses.
        reads_tapes: whether the model that was built last reads them.
    """

    has_tapes = True
    has_parses = True
    reads_tapes = False

    def __init__(self, args: PushdownLanguageModelingConfig, *others: Any, targets: list[str] | None = None) -> None:
        super().__init__(args, *others, targets=targets)
        if args.sample_break_mode not in ("eos", "complete"):
            raise UserError(
                "--task pushdown_language_modeling needs --sample-break-mode eos, one sentence per sample, or "
                f"complete, several whole ones; got {args.sample_break_mode}"
            )
        for option, is_wrong in (
            ("--add-bos-token", args.add_bos_token),
            (f"--shorten-method {args.shorten_method}", str(args.shorten_method) != "none"),
            ("--self-target, --past-target", targets is not None and list(targets) != ["future"]),
        ):
            if is_wrong:
                raise UserError(f"--task pushdown_language_modeling: sentences with parses cannot have {option}")

    def build_model(self, args: Any, from_checkpoint: bool = False) -> Any:
        """As in fairseq.

        Raises:
            UserError: batches have tapes, which only models of this plugin accept.
        """
        model = super().build_model(args, from_checkpoint)
        if self.has_parses and not isinstance(model, Pretrained):
            raise UserError(
                "--task pushdown_language_modeling: expected --arch pushdown_transformer_lm, stack_transformer_lm or "
                f"stack_lstm_lm, or one of their presets, got a {type(model).__name__}"
            )
        self.reads_tapes = self.has_parses and getattr(getattr(model.decoder, "network", None), "reads_tape", False)
        return model

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any) -> None:
        """As in fairseq, with the attachments of the split.

        Raises:
            UserError: see :func:`read_attachments`.
        """
        super().load_dataset(split, epoch, combine, **kwargs)
        if not self.has_parses:
            return
        folder = self.text_folder(epoch) if self.args.attachments is None else Path(self.args.attachments)
        dataset = self.datasets[split]
        blocks = dataset
        while not isinstance(blocks, TokenBlockDataset):
            blocks = blocks.dataset
        of_sentences = read_attachments(folder / f"{split}.attach", blocks.dataset.sizes)
        windows = [of_window(of_sentences[first : last + 1]) for first, _, last in blocks.block_to_dataset_index]
        self.datasets[split] = WithAttachments(dataset, windows)

    def text_folder(self, epoch: int = 1) -> Path:
        """The folder with the files that have a line for each sentence of the data of an epoch."""
        paths = utils.split_paths(self.args.data)
        return Path(paths[(epoch - 1) % len(paths)]).absolute().parent / "text"
