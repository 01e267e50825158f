"""The choice between fairseq's beam search and the paper's, for every task that generates."""

from __future__ import annotations

from typing import Any

from fairseq.dataclass import ChoiceEnum
from fairseq.tasks import FairseqTask
from torch import nn

from fairseq_stack.errors import UserError
from fairseq_stack.search import LengthNormalizedBeamSearchGenerator

LENGTH_NORMALIZED = "length-normalized"
BEAM_SEARCH_CHOICES = ChoiceEnum(["fairseq", LENGTH_NORMALIZED])
BEAM_SEARCH_HELP = (
    "the beam search of fairseq-generate, fairseq-interactive and --eval-bleu: fairseq's own, or the search of "
    "DuSell & Chiang (2024, G.4), which divides log-probabilities by length before it selects the next beam"
)

# Options of fairseq's generators that this search has no meaning for, with their neutral values.
_UNSUPPORTED: dict[str, Any] = {
    "sampling": False,
    "sampling_topk": -1,
    "sampling_topp": -1.0,
    "diverse_beam_groups": -1,
    "diversity_rate": -1.0,
    "match_source_len": False,
    "constraints": None,
    "prefix_allowed_tokens_fn": None,
    "no_repeat_ngram_size": 0,
    "unnormalized": False,
    "lenpen": 1,
    "print_alignment": None,
    "replace_unk": None,
    "print_step": False,
    "retain_iter_history": False,
    "lm_path": None,
}


class BeamSearchChoice(FairseqTask):
    """Mix-in, to be named before the fairseq task: ``build_generator`` heeds ``--beam-search``."""

    def build_generator(
        self, models: list[nn.Module], args: Any, *, extra_gen_cls_kwargs: dict[str, Any] | None = None, **others: Any
    ) -> Any:
        """As in :class:`fairseq.tasks.FairseqTask`, and the paper's search if ``--beam-search`` says so.

        ``--score-reference`` gives fairseq's scorer whatever the search.

        Raises:
            UserError: an option is set that the paper's search does not have, or a value is out of range.
        """
        options = self.cfg or self.args  # tasks of language modeling have ``args``
        if str(options.beam_search) != LENGTH_NORMALIZED or getattr(args, "score_reference", False):
            return super().build_generator(models, args, extra_gen_cls_kwargs=extra_gen_cls_kwargs, **others)
        extra = dict(extra_gen_cls_kwargs or {})
        if extra.get("lm_model") is None:
            extra.pop("lm_weight", None)  # fairseq-generate always passes one
        _refuse_others(args, **others, **extra)
        return LengthNormalizedBeamSearchGenerator(
            models,
            self.target_dictionary,
            beam_size=getattr(args, "beam", 5),
            max_len_a=getattr(args, "max_len_a", 0),
            max_len_b=getattr(args, "max_len_b", 200),
            min_len=getattr(args, "min_len", 1),
            unk_penalty=getattr(args, "unkpen", 0.0),
            temperature=getattr(args, "temperature", 1.0),
        )


def _refuse_others(args: Any, **arguments: Any) -> None:
    """Raise UserError for an option or an argument that the paper's search does not have."""
    options = {name: getattr(args, name, neutral) for name, neutral in _UNSUPPORTED.items()}
    others = [f"--{name.replace('_', '-')} {value}" for name, value in options.items() if value != _UNSUPPORTED[name]]
    others += [f"{name}={value}" for name, value in arguments.items() if value is not None]
    if others:
        raise UserError(
            f"--beam-search {LENGTH_NORMALIZED} cannot be combined with: {', '.join(others)}; "
            "leave these options out, or use --beam-search fairseq"
        )
