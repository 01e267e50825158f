"""Language modeling with the choice of the paper's beam search."""

from dataclasses import dataclass, field
from typing import Any

from fairseq.data import Dictionary
from fairseq.tasks import register_task
from fairseq.tasks.language_modeling import LanguageModelingConfig, LanguageModelingTask
from torch import Tensor, nn

from fairseq_stack.models.vocabulary import check_symbols
from fairseq_stack.search import BEAM_SEARCH_CHOICES, BEAM_SEARCH_HELP

from ._generation import BeamSearchChoice


@dataclass
class StackLanguageModelingConfig(LanguageModelingConfig):
    """Options of fairseq's language modeling task and the kind of beam search."""

    beam_search: BEAM_SEARCH_CHOICES = field(default="fairseq", metadata={"help": BEAM_SEARCH_HELP})


@register_task("stack_language_modeling", dataclass=StackLanguageModelingConfig)
class StackLanguageModelingTask(BeamSearchChoice, LanguageModelingTask):
    """fairseq's language modeling task; ``--beam-search length-normalized`` is the paper's search."""

    def __init__(
        self,
        args: StackLanguageModelingConfig,
        dictionary: Dictionary,
        output_dictionary: Dictionary | None = None,
        targets: list[str] | None = None,
    ) -> None:
        super().__init__(args, dictionary, output_dictionary, targets)
        self.beam_search = str(args.beam_search)

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
