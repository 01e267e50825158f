"""From fairseq's generation options to the search that a task's ``--beam-search`` names."""

from __future__ import annotations

from typing import Any

from fairseq.dataclass import ChoiceEnum
from fairseq.tasks import FairseqTask
from torch import nn

from fairseq_stack.errors import UserError

from .length_normalized import LengthNormalizedBeamSearchGenerator

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
    "print_step": False,
    "retain_iter_history": False,
    "lm_path": None,
}


def build_length_normalized_generator(
    task: FairseqTask, models: list[nn.Module], args: Any, **unsupported: Any
) -> LengthNormalizedBeamSearchGenerator:
    """Make the generator for ``--beam-search length-normalized``.

    Args:
        task: its target dictionary is the dictionary of the output.
        models: ensemble.
        args: fairseq's generation options: a config, or a namespace with some of them
            (``--eval-bleu-args``).
        unsupported: further arguments of ``FairseqTask.build_generator``; must be ``None``.

    Raises:
        ValueError: an option is set that this search does not have, or an option's value is out of range.
    """
    options = {name: getattr(args, name, neutral) for name, neutral in _UNSUPPORTED.items()}
    set_options = [
        f"--{name.replace('_', '-')} {value}" for name, value in options.items() if value != _UNSUPPORTED[name]
    ]
    set_options += [f"{name}={value}" for name, value in unsupported.items() if value is not None]
    if set_options:
        raise UserError(
            f"--beam-search {LENGTH_NORMALIZED} cannot be combined with: {', '.join(set_options)}; "
            "leave these options out, or use --beam-search fairseq"
        )
    return LengthNormalizedBeamSearchGenerator(
        models,
        task.target_dictionary,
        beam_size=getattr(args, "beam", 5),
        max_len_a=getattr(args, "max_len_a", 0),
        max_len_b=getattr(args, "max_len_b", 200),
        min_len=getattr(args, "min_len", 1),
        unk_penalty=getattr(args, "unkpen", 0.0),
        temperature=getattr(args, "temperature", 1.0),
    )
