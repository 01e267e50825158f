"""Translation with the choice of the paper's beam search."""

from dataclasses import dataclass, field

from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask

from ._generation import BEAM_SEARCH_CHOICES, BEAM_SEARCH_HELP, BeamSearchChoice


@dataclass
class StackTranslationConfig(TranslationConfig):
    """Options of fairseq's translation task and the kind of beam search."""

    beam_search: BEAM_SEARCH_CHOICES = field(default="fairseq", metadata={"help": BEAM_SEARCH_HELP})


@register_task("stack_translation", dataclass=StackTranslationConfig)
class StackTranslationTask(BeamSearchChoice, TranslationTask):
    """fairseq's translation task; ``--beam-search length-normalized`` is the paper's search."""
