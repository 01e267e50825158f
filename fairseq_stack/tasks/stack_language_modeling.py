"""Language modeling with the choice of the paper's beam search, and of the papers' batches."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from fairseq.data import Dictionary, SortDataset
from fairseq.tasks import register_task
from fairseq.tasks.language_modeling import LanguageModelingConfig, LanguageModelingTask
from torch import Tensor, nn

from fairseq_stack.models.vocabulary import check_symbols
from fairseq_stack.search import BEAM_SEARCH_CHOICES, BEAM_SEARCH_HELP

from ._generation import BeamSearchChoice


@dataclass
class StackLanguageModelingConfig(LanguageModelingConfig):
    """Options of fairseq's language modeling task, the kind of beam search, and the kind of batches."""

    beam_search: BEAM_SEARCH_CHOICES = field(default="fairseq", metadata={"help": BEAM_SEARCH_HELP})
    batches_of_neighbours: bool = field(
        default=False,
        metadata={
            "help": "make batches of sentences that follow one another in the data, the same in each epoch, and only "
            "shuffle the order of batches; without this, sentences of similar lengths are batched anew in each epoch"
        },
    )


@register_task("stack_language_modeling", dataclass=StackLanguageModelingConfig)
class StackLanguageModelingTask(BeamSearchChoice, LanguageModelingTask):
    """fairseq's language modeling task; ``--beam-search length-normalized`` is the paper's search.

    With ``--batches-of-neighbours`` and the ``--batch-size`` of the corpus, the batches of a corpus from
    ``fairseq-stack prepare cfl`` are the papers': strings of one length, drawn together.
    """

    def __init__(
        self,
        args: StackLanguageModelingConfig,
        dictionary: Dictionary,
        output_dictionary: Dictionary | None = None,
        targets: list[str] | None = None,
    ) -> None:
        super().__init__(args, dictionary, output_dictionary, targets)
        self.beam_search = str(args.beam_search)

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any) -> None:
        """As in fairseq, in the order of the data if ``--batches-of-neighbours`` says so."""
        super().load_dataset(split, epoch, combine, **kwargs)
        if self.args.batches_of_neighbours:
            dataset = self.datasets[split]
            self.datasets[split] = SortDataset(dataset, np.arange(len(dataset)))

    def inference_step(
        self,
        generator: Any,
        models: list[nn.Module],
        sample: dict[str, Any],
        prefix_tokens: Tensor | None = None,
        constraints: Tensor | None = None,
    ) -> list[list[dict[str, Any]]]:
        """As fairseq's, but a prefix with a symbol that a compact vocabulary excludes raises ValueError."""
        for model in models:
            check_symbols(model.decoder, sample["net_input"]["src_tokens"])
        return super().inference_step(generator, models, sample, prefix_tokens, constraints)
