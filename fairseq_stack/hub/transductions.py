"""What a model of transductions writes for the strings of a corpus."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from fairseq import utils

from fairseq_stack.errors import UserError
from fairseq_stack.hub.batches import require_lengths
from fairseq_stack.hub.interface import Hub, TransductionHub


def require_transductions(hub: Hub) -> TransductionHub:
    """The hub, if its model transduces strings.

    Raises:
        UserError: it does not.
    """
    if not isinstance(hub, TransductionHub):
        raise UserError("the checkpoint holds no model of transductions; train one with --task stack_transduction")
    return hub


def load_split(hub: TransductionHub, split: str) -> list[list[str]]:
    """Load the strings of a split of the model's data, and return them: first all inputs, then all targets.

    Raises:
        UserError: the data have no such split, or a pair of strings is wrong or too long for the model.
    """
    try:
        hub.task.load_dataset(split)
    except FileNotFoundError as error:
        raise UserError(f"{hub.task.cfg.data} has no split {split}; expected a folder with binarised data") from error
    dataset = hub.task.dataset(split)
    require_lengths(dataset.inputs, hub.max_positions)
    words = hub.tgt_dict.symbols
    return [[words[word] for word in string] for string in (*dataset.inputs, *dataset.targets)]


@torch.no_grad()
def transduce(hub: TransductionHub, split: str, *, batch_size: int) -> Iterator[tuple[int, int, int]]:
    """Yield of each string of a loaded split the numbers of its symbols, of those that are scored, and of scored ones
    that the model writes; in any order.
    """
    batches = hub.task.get_batch_iterator(
        hub.task.dataset(split), max_sentences=batch_size, disable_iterator_cache=True
    )
    for batch in batches.next_epoch_itr(shuffle=False):
        batch = utils.apply_to_sample(lambda tensor: tensor.to(hub.device), batch)
        words = hub.mean_log_probabilities(**batch["net_input"]).argmax(2) + hub.tgt_dict.nspecial
        scored = batch["target"].ne(hub.tgt_dict.pad())
        correct = words.eq(batch["target"]) & scored
        columns = (batch["net_input"]["src_lengths"], scored.sum(1), correct.sum(1))
        yield from zip(*(column.tolist() for column in columns), strict=True)
