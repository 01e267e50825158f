"""``fairseq.tasks.language_modeling``: ``fairseq-eval-lm`` says what its score covers."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairseq_stack.compat.left_out import left_out
from fairseq_stack.compat.replacing import replaces
from fairseq_stack.errors import UserError


@replaces("fairseq.tasks.language_modeling:LanguageModelingTask.eval_lm_dataloader")
def eval_lm_dataloader(
    original: Any,
    self: Any,
    dataset: Any,
    batch_size: int | None = None,
    num_shards: int = 1,
    shard_id: int = 0,
    context_window: int = 0,
    **options: Any,
) -> Any:
    """Say how many tokens the score covers and whether it is given gold parses, and reject blocks if the model was
    trained on single sentences.

    ``fairseq-eval-lm`` does not look up in the checkpoint how the training data was divided, and by default divides
    data into blocks. In training on sentences, stacks began empty in every sentence; in a block they hold symbols of
    other sentences.

    Raises:
        UserError: the data is not divided as it was when a stack model was trained, or there is nothing to score.

    For every model; the rejection only for stack models. Unnecessary with a fairseq that counts them, and takes the
    segmentation of data from the checkpoint.
    """
    from fairseq.data import LMContextWindowDataset

    _refuse_other_data_than_in_training(self, context_window)
    scored = dataset
    if context_window > 0:
        scored = LMContextWindowDataset(
            dataset=dataset,
            tokens_per_sample=self.args.tokens_per_sample,
            context_window=context_window,
            pad_idx=self.source_dictionary.pad(),
        )
    epoch_itr = self.get_batch_iterator(
        dataset=scored,
        max_sentences=batch_size,
        ignore_invalid_inputs=True,
        num_shards=num_shards,
        shard_id=shard_id,
        **options,
    )
    indices = [index for batch in epoch_itr.frozen_batches[shard_id::num_shards] for index in batch]
    if not indices:
        raise UserError(f"--shard-id {shard_id} of --num-shards {num_shards}: there are too few batches for this shard")
    num_scored = int(dataset.sizes[indices].sum(dtype=np.int64))
    num_tokens = _num_tokens(dataset)
    remarks = []
    if num_scored < num_tokens:
        shard = f"shard {shard_id} of {num_shards}" if num_shards > 1 else ""
        shortened = "" if self.args.shorten_method == "none" else f"--shorten-method {self.args.shorten_method}"
        remarks += [f"scored {num_scored:,} of {num_tokens:,} tokens", left_out.text, shard, shortened]
    if getattr(self.args, "without_eos", False):
        remarks += ["without the ends of sentences"]
    if getattr(self, "reads_tapes", False):
        remarks += ["each word given gold parses (fairseq-stack evaluate-pushdown needs none)"]
    left_out.text = ", ".join(filter(None, remarks))
    return epoch_itr.next_epoch_itr(shuffle=False)


def _num_tokens(dataset: Any) -> int:
    """The number of tokens in the file that a data set is made from, before it is shortened and divided."""
    while hasattr(dataset, "dataset"):
        dataset = dataset.dataset
    return int(np.asarray(dataset.sizes).sum(dtype=np.int64))


def _refuse_other_data_than_in_training(task: Any, context_window: int) -> None:
    if context_window > 0 and getattr(task, "has_parses", False):
        raise UserError(f"--context-window {context_window}: parses are of single examples; leave it out")
    trained = getattr(task, "task_of_training", None)
    if trained is None:
        return
    mode = str(task.args.sample_break_mode)
    if str(getattr(trained, "sample_break_mode", mode)) == "eos":
        if mode != "eos":
            overrides = f"--model-overrides \"{{'sample_break_mode': '{mode}'}}\""
            raise UserError(
                "the model was trained on single sentences (--sample-break-mode eos): expected the same here, got "
                f"--sample-break-mode {mode} (the default of fairseq-eval-lm is none); add "
                f"--sample-break-mode eos (or, to score blocks with this model anyway, {overrides})"
            )
        if context_window > 0:
            raise UserError(
                f"--context-window {context_window} puts words of other sentences before each sentence, but the model "
                "was trained on single sentences (--sample-break-mode eos): leave it out"
            )
    if getattr(trained, "without_eos", False) and not getattr(task.args, "without_eos", False):
        raise UserError(
            "the model was trained without the ends of sentences: expected --task stack_language_modeling --without-eos"
        )
    if bool(getattr(trained, "add_bos_token", False)) != bool(task.args.add_bos_token):
        raise UserError(
            "--add-bos-token: the model was trained "
            + ("without it: leave it out" if task.args.add_bos_token else "with it: add it here")
        )
