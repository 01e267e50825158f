"""Scores: the line with a score says how much it leaves out, and data that a model cannot score is refused."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np

from fairseq_stack.compat.wrapping import Function, wrap_once
from fairseq_stack.errors import UserError

_COMMANDS = ("fairseq_cli.eval_lm", "fairseq_cli.generate")
_RESULTS = ("Loss (base 2)", "Translated ")
_MOST_NUMBERS = 5
_STREAM = "stack_truncated_bptt"


def say_what_scores_leave_out() -> None:
    """Let fairseq's commands say in each line with a score how much of the data the score does not cover.

    ``fairseq-eval-lm`` always leaves out sentences that are too long for the model; the other commands do so with
    ``--skip-invalid-size-inputs-valid-test``. fairseq warns about them once, far from the score, and gives a
    perplexity of 1 if no sentence is left. Unnecessary with a fairseq that counts them.

    ``eval_lm`` also leaves out symbols to which the model gives probability zero, so that an infinite perplexity
    becomes a finite one. Such data is refused there. ``fairseq-generate --score-reference`` may meet it: it prints the
    score ``-inf``, which is right. Unnecessary with a fairseq that gives the infinite perplexity.
    """
    from fairseq import scoring
    from fairseq.sequence_scorer import SequenceScorer
    from fairseq.tasks import FairseqTask
    from fairseq.tasks.language_modeling import LanguageModelingTask

    for command in _COMMANDS:
        logging.getLogger(command).addFilter(_left_out)
    FairseqTask.filter_indices_by_size = _filter_indices_by_size
    LanguageModelingTask.eval_lm_dataloader = _eval_lm_dataloader
    wrap_once(FairseqTask, "reduce_metrics", _counting_what_is_left_out)
    wrap_once(scoring, "build_scorer", _completing_the_results)
    wrap_once(SequenceScorer, "__init__", _remembering_the_dictionary)
    wrap_once(SequenceScorer, "generate", _refusing_probability_zero)


def score_sentences_one_by_one() -> None:
    """Refuse to score blocks of text with a model of ours that was trained on single sentences or on one stream.

    ``fairseq-eval-lm`` does not look up in the checkpoint how the training data was divided, and by default divides
    data into blocks. In training, the stacks began empty in every sentence; in a block they hold symbols of other
    sentences.
    Unnecessary with a fairseq that takes these options from the checkpoint.
    """
    from fairseq import checkpoint_utils

    wrap_once(checkpoint_utils, "load_model_ensemble_and_task", _remembering_the_training)


class _LeftOut(logging.Filter):
    """Records what the last data set to be batched leaves out, and adds it to the line with the score."""

    def __init__(self) -> None:
        super().__init__()
        self.num_samples = 0
        self.text = ""

    def filter(self, record: logging.LogRecord) -> bool:
        """Complete the line with the score."""
        if str(record.msg).startswith(_RESULTS):
            record.msg, record.args = self.complete(record.getMessage()), None
        return True

    def complete(self, result: str) -> str:
        """The text with a score, followed by what the score leaves out."""
        return f"{result}; {self.text}" if self.text else result


_left_out = _LeftOut()


def _filter_indices_by_size(
    self: Any, indices: np.ndarray, dataset: Any, max_positions: Any = None, ignore_invalid_inputs: bool = False
) -> np.ndarray:
    """``FairseqTask.filter_indices_by_size``, with numbers in its messages.

    Raises:
        UserError: samples are too long and must not be left out, or nothing is left of a data set.
    """
    kept, ignored = dataset.filter_indices_by_size(indices, max_positions)
    _left_out.num_samples, _left_out.text = len(ignored), ""
    if len(ignored) == 0:
        return kept
    split = _split_of(self, dataset)
    where = f" of {split}" if split else ""
    number = f"{len(ignored):,} of {len(indices):,} {_samples(self)}{where}"
    if not ignore_invalid_inputs:
        size = _plain(dataset.size(ignored[0]))
        raise UserError(
            f"too long for the model: {number}; number {ignored[0]} has {size} tokens, expected at most "
            f"{max_positions}; split longer samples, or add --skip-invalid-size-inputs-valid-test to leave them out"
        )
    _left_out.text = f"left out {number} (more than {max_positions} tokens)"
    if split:  # otherwise the numbers are places in a buffer of fairseq-interactive
        if len(kept) == 0:
            raise UserError(f"no data: {_left_out.text}; use a model that was trained with longer samples")
        numbers = ", ".join(map(str, ignored[:_MOST_NUMBERS]))
        logging.getLogger(__name__).warning(f"{_left_out.text}; the first are numbers {numbers}")
    return kept


def _plain(size: Any) -> Any:
    return tuple(map(int, size)) if isinstance(size, tuple) else int(size)


def _split_of(task: Any, dataset: Any) -> str:
    """The name of the split that a data set holds, or an empty string if it is not a split."""
    inner = getattr(dataset, "dataset", None)  # --context-window wraps the split
    return next((name for name, split in task.datasets.items() if split is dataset or split is inner), "")


def _samples(task: Any) -> str:
    mode = str(getattr(getattr(task, "args", None), "sample_break_mode", "eos"))
    return "sentences" if mode == "eos" else "blocks"


def _counting_what_is_left_out(reduce_metrics: Function) -> Function:
    def reduce_metrics_and_count(self: Any, logging_outputs: list[dict[str, Any]], criterion: Any) -> None:
        from fairseq.logging import metrics

        reduce_metrics(self, logging_outputs, criterion)
        if _left_out.num_samples and not criterion.training:
            metrics.log_scalar("left_out", _left_out.num_samples, round=0)

    return reduce_metrics_and_count


def _completing_the_results(build_scorer: Function) -> Function:
    def build_and_complete(choice: Any, tgt_dict: Any) -> Any:
        is_default = getattr(choice, "_name", choice) == "bleu"
        scorer = getattr(tgt_dict, "scorer", None) if is_default else None
        scorer = scorer or build_scorer(choice, tgt_dict)
        wrap_once(scorer, "result_string", _completing_the_result)
        return scorer

    return build_and_complete


def _completing_the_result(result_string: Function) -> Function:
    def complete_result_string(*args: Any, **kwargs: Any) -> Any:
        return _left_out.complete(result_string(*args, **kwargs))

    return complete_result_string


def _remembering_the_dictionary(init: Function) -> Function:
    """Only ``eval_lm`` gives a scorer ``softmax_batch``, and only its scorers refuse probability zero."""

    def init_and_remember(
        self: Any, tgt_dict: Any, softmax_batch: int | None = None, *args: Any, **kwargs: Any
    ) -> None:
        init(self, tgt_dict, softmax_batch, *args, **kwargs)
        self.dictionary_of_eval_lm = None if softmax_batch is None else tgt_dict

    return init_and_remember


def _refusing_probability_zero(generate: Function) -> Function:
    def generate_and_refuse(self: Any, *args: Any, **kwargs: Any) -> Any:
        hypotheses = generate(self, *args, **kwargs)
        dictionary = getattr(self, "dictionary_of_eval_lm", None)
        if dictionary is not None:
            for (hypothesis,) in hypotheses:
                _refuse_probability_zero(hypothesis, dictionary)
        return hypotheses

    return generate_and_refuse


def _refuse_probability_zero(hypothesis: dict[str, Any], dictionary: Any) -> None:
    impossible = hypothesis["tokens"][hypothesis["positional_scores"].isinf()]
    if len(impossible) > 0:
        raise UserError(
            f"the model gives probability zero to {dictionary[int(impossible[0])]!r}, which is in the data, so the "
            "perplexity is infinite: expected data whose symbols all have a probability (if it is <unk>, train with "
            "--compact-vocab-unk)"
        )


def _eval_lm_dataloader(
    self: Any,
    dataset: Any,
    max_tokens: int | None = 36000,
    batch_size: int | None = None,
    max_positions: int | None = None,
    num_shards: int = 1,
    shard_id: int = 0,
    num_workers: int = 1,
    data_buffer_size: int = 10,
    context_window: int = 0,
) -> Any:
    """``LanguageModelingTask.eval_lm_dataloader``, which also counts the tokens that the score will cover.

    Raises:
        UserError: the data is not divided as it was when a model of ours was trained, or there is nothing to score.
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
        max_tokens=max_tokens,
        max_sentences=batch_size,
        max_positions=max_positions,
        ignore_invalid_inputs=True,
        num_shards=num_shards,
        shard_id=shard_id,
        num_workers=num_workers,
        data_buffer_size=data_buffer_size,
    )
    indices = [index for batch in epoch_itr.frozen_batches[shard_id::num_shards] for index in batch]
    if not indices:
        raise UserError(f"--shard-id {shard_id} of --num-shards {num_shards}: there are too few batches for this shard")
    num_scored = int(dataset.sizes[indices].sum(dtype=np.int64))
    num_tokens = _num_tokens(dataset)
    if num_scored < num_tokens:
        shard = f"shard {shard_id} of {num_shards}" if num_shards > 1 else ""
        shortened = "" if self.args.shorten_method == "none" else f"--shorten-method {self.args.shorten_method}"
        reasons = [f"scored {num_scored:,} of {num_tokens:,} tokens", _left_out.text, shard, shortened]
        _left_out.text = ", ".join(filter(None, reasons))
    return epoch_itr.next_epoch_itr(shuffle=False)


def _num_tokens(dataset: Any) -> int:
    """The number of tokens in the file that a data set is made from, before it is shortened and divided."""
    while hasattr(dataset, "dataset"):
        dataset = dataset.dataset
    return int(np.asarray(dataset.sizes).sum(dtype=np.int64))


def _remembering_the_training(load: Function) -> Function:
    from fairseq import checkpoint_utils

    def load_and_remember(filenames: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            models, cfg, task = load(filenames, *args, **kwargs)
        except UserError:  # a model of another task does not always fit
            if kwargs.get("task") is not None:
                cfg = checkpoint_utils.load_checkpoint_to_cpu(filenames[0])["cfg"]
                _refuse_another_task_than_the_stream(kwargs["task"], str(getattr(cfg.task, "_name", "")))
            raise
        if any(type(model).__module__.startswith("fairseq_stack.") for model in models):
            task.task_of_training = cfg.task
            _refuse_another_task_than_the_stream(task, str(getattr(cfg.task, "_name", "")))
        return models, cfg, task

    return load_and_remember


def _refuse_another_task_than_the_stream(task: Any, trained: str) -> None:
    """Only with the task of streams does a model read, before a sentence, the end of another."""
    if trained == _STREAM and not hasattr(task, "end_of_sentence"):
        raise UserError(
            f"the model was trained on one stream: expected --task {_STREAM} here (fairseq-eval-lm cannot carry the "
            f"state of a stream: score it with fairseq-validate --task {_STREAM} --batch-size 1, and single sentences "
            "with fairseq-stack surprisal --end)"
        )


def _refuse_other_data_than_in_training(task: Any, context_window: int) -> None:
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
    if bool(getattr(trained, "add_bos_token", False)) != bool(task.args.add_bos_token):
        raise UserError(
            "--add-bos-token: the model was trained "
            + ("without it: leave it out" if task.args.add_bos_token else "with it: add it here")
        )
