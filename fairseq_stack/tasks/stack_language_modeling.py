"""Language modeling with the choice of the paper's beam search, and of the papers' batches and losses."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from fairseq.data import BaseWrapperDataset, Dictionary, SortDataset
from fairseq.tasks import register_task
from fairseq.tasks.language_modeling import LanguageModelingConfig, LanguageModelingTask

from fairseq_stack.errors import UserError
from fairseq_stack.models.vocabulary import check_symbols

from ._generation import BEAM_SEARCH_CHOICES, BEAM_SEARCH_HELP, BeamSearchChoice


@dataclass
class StackLanguageModelingConfig(LanguageModelingConfig):
    """Options of fairseq's language modeling task, the kind of beam search, the kind of batches, and what is scored."""

    beam_search: BEAM_SEARCH_CHOICES = field(default="fairseq", metadata={"help": BEAM_SEARCH_HELP})
    batches_of_neighbours: bool = field(
        default=False,
        metadata={
            "help": "group consecutive sentences of the data into batches, the same in each epoch, and only shuffle "
            "the order of batches; by default, sentences of similar lengths are regrouped in each epoch"
        },
    )
    without_eos: bool = field(
        default=False,
        metadata={"help": "leave the ends of sentences out of the loss; needs --sample-break-mode eos"},
    )


class WithoutEos(BaseWrapperDataset):
    """Sentences whose ends are not scored: in ``target``, they are padding.

    Args:
        dataset: samples of one sentence each, whose batches have ``target``, (B, n), and ``ntokens``.
        eos: the index of the end of a sentence.
        pad: the index of padding.
    """

    def __init__(self, dataset: Any, *, eos: int, pad: int) -> None:
        super().__init__(dataset)
        self.eos, self.pad = eos, pad

    def collater(self, samples: list[dict[str, Any]]) -> dict[str, Any]:
        """As the data set's, but ``ntokens`` counts what is scored."""
        batch: dict[str, Any] = super().collater(samples)
        if batch:
            target = batch["target"]
            batch["target"] = target = target.masked_fill(target == self.eos, self.pad)
            batch["ntokens"] = int((target != self.pad).sum())
        return batch


@register_task("stack_language_modeling", dataclass=StackLanguageModelingConfig)
class StackLanguageModelingTask(BeamSearchChoice, LanguageModelingTask):
    """fairseq's language modeling task; ``--beam-search length-normalized`` is the paper's search.

    With ``--batches-of-neighbours`` and the ``--batch-size`` of the corpus, the batches of a corpus from
    ``fairseq-stack prepare cfl`` are the papers': strings of one length, drawn together.
    """

    def __init__(self, args: StackLanguageModelingConfig, dictionary: Dictionary, *others: Any, **kwargs: Any) -> None:
        super().__init__(args, dictionary, *others, **kwargs)
        if args.without_eos and args.sample_break_mode != "eos":
            raise UserError(
                f"--without-eos needs --sample-break-mode eos, one sentence per sample; got {args.sample_break_mode}"
            )

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any) -> None:
        """As in fairseq, with ``--batches-of-neighbours`` in the order of the data, and ``--without-eos``."""
        super().load_dataset(split, epoch, combine, **kwargs)
        dataset = self.datasets[split]
        if self.args.without_eos:
            dataset = WithoutEos(dataset, eos=self.dictionary.eos(), pad=self.dictionary.pad())
        if self.args.batches_of_neighbours:
            dataset = SortDataset(dataset, np.arange(len(dataset)))
        self.datasets[split] = dataset

    def inference_step(self, generator: Any, models: Any, sample: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """As fairseq's, but a prefix with a symbol that a compact vocabulary excludes raises ValueError."""
        for model in models:
            check_symbols(model.decoder, sample["net_input"]["src_tokens"])
        return super().inference_step(generator, models, sample, *args, **kwargs)
