"""Truncated back-propagation through one stream of text: the state is carried from segment to segment."""

import logging
import os
from dataclasses import dataclass, field, fields
from operator import itemgetter
from typing import Any

import torch
from fairseq import utils
from fairseq.data import Dictionary, data_utils
from fairseq.data.iterators import EpochBatchIterator
from fairseq.tasks import register_task

from fairseq_stack.errors import UserError

from ._carried import CarriedStates, Carrying, as_plain, from_plain
from ._streams import Segments, TextStream, end_of_sentence
from .stack_language_modeling import StackLanguageModelingConfig, StackLanguageModelingTask

TASK = "stack_truncated_bptt"
# fairseq's options of language modeling that say how a text is divided or what is predicted.
_NOT_FOR_STREAMS = (
    "sample_break_mode",
    "output_dictionary_size",
    "self_target",
    "past_target",
    "add_bos_token",
    "shorten_method",
    "pad_to_fixed_length",
    "pad_to_fixed_bsz",
    "batches_of_neighbours",
)
_NOT_CARRIED = (
    "does not carry the state of a stream from segment to segment: score it with "
    f"fairseq-validate --task {TASK} --batch-size 1, and single sentences with fairseq-stack surprisal --end"
)

logger = logging.getLogger(__name__)


@dataclass
class StackTruncatedBPTTConfig(StackLanguageModelingConfig):
    """The options of a stream of text."""

    tokens_per_sample: int = field(
        default=35, metadata={"help": "the length of a segment: gradients flow back through at most this many tokens"}
    )


@register_task(TASK, dataclass=StackTruncatedBPTTConfig)
class StackTruncatedBPTTTask(StackLanguageModelingTask):
    """Language modeling of a text that is one stream, for models that carry a state.

    The stream is cut into ``--batch-size`` rows, and each batch has the next ``--tokens-per-sample`` tokens of every
    row. The model begins each batch with the detached state after the last one, and an epoch with its initial state.
    Training and validation have separate states. A checkpoint within an epoch has the state of the training run.

    A model carries a state if it has ``initial_state(batch_size)``, if its ``forward`` takes ``state``, from which it
    reads all tokens, and returns the state after the last token under ``"state"`` in addition to the logits. A state is
    a dataclass of tensors, numbers, tuples and dataclasses, and has ``detach()``.
    """

    def __init__(self, args: StackTruncatedBPTTConfig, dictionary: Dictionary, *others: Any, **kwargs: Any) -> None:
        super().__init__(args, dictionary, *others, **kwargs)
        _check(args)
        self.end_of_sentence = end_of_sentence(dictionary)
        self._training = CarriedStates()
        self._validation = CarriedStates()
        self._layout: dict[str, int] = {"segments": 0}
        self._restored: dict[str, Any] = {}

    def build_model(self, args: Any, from_checkpoint: bool = False) -> Any:
        """As in fairseq.

        Raises:
            UserError: the model cannot carry a state.
        """
        model = super().build_model(args, from_checkpoint)
        if not hasattr(model, "initial_state"):
            raise UserError(
                f"--task {TASK} carries the state of a recurrent model from segment to segment: expected --arch "
                f"stack_lstm_lm or one of its presets, got a {type(model).__name__}, which has no such state"
            )
        return model

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any) -> None:
        """Load a split as a :class:`TextStream`.

        Raises:
            FileNotFoundError: the split does not exist.
        """
        folders = utils.split_paths(self.args.data)
        path = os.path.join(folders[(epoch - 1) % len(folders)], split)
        lines = data_utils.load_indexed_dataset(path, self.dictionary, self.args.dataset_impl, combine=combine)
        if lines is None:
            raise FileNotFoundError(f"Dataset not found: {split} ({path})")
        self.datasets[split] = TextStream(split, (lines[number] for number in range(len(lines))), self.dictionary)

    def get_batch_iterator(
        self,
        dataset: Any,
        max_tokens: int | None = None,
        max_sentences: int | None = None,
        *args: Any,
        num_shards: int = 1,
        **kwargs: Any,
    ) -> Any:
        """The segments of a :class:`TextStream` in order; batches of other data sets as in fairseq.

        Raises:
            UserError: the number of rows is not given, the stream is too short, several processes are to share it, or
                an option does not apply to streams.
        """
        if not isinstance(dataset, TextStream):
            return super().get_batch_iterator(
                dataset, max_tokens, max_sentences, *args, num_shards=num_shards, **kwargs
            )
        if kwargs.get("skip_remainder_batch"):
            raise UserError(f"--skip-remainder-batch: --task {TASK} reads the last, shorter segment; leave this out")
        if num_shards > 1:
            raise UserError(f"--task {TASK}: expected one process, got {num_shards}; a checkpoint holds one state")
        if max_tokens is not None or max_sentences is None:
            raise UserError(
                f"--task {TASK}: expected --batch-size, the number of rows of a stream, "
                + ("and not --max-tokens" if max_sentences else f"got --max-tokens {max_tokens}")
            )
        segments = Segments(dataset, max_sentences, self.args.tokens_per_sample)
        logger.info(
            f"{dataset.name}: {segments.num_tokens:,} of {len(dataset):,} tokens, in {max_sentences:,} rows and "
            f"{len(segments):,} segments"
        )
        return EpochBatchIterator(
            dataset=segments,
            collate_fn=itemgetter(0),  # a segment is a batch already
            batch_sampler=[[number] for number in range(len(segments))],
            num_workers=kwargs.get("num_workers", 0),
            epoch=kwargs.get("epoch", 1),
            buffer_size=kwargs.get("data_buffer_size", 0),
            disable_shuffling=True,
        )

    def train_step(
        self, sample: dict[str, Any], model: Any, criterion: Any, optimizer: Any, update_num: int, *args: Any, **kw: Any
    ) -> Any:
        """As in fairseq, from the state after the segment before.

        Raises:
            UserError: training resumes within an epoch, and the checkpoint lacks a state that fits.
        """
        if self._restored:
            restored, self._restored = self._restored, {}
            self._training.keep(restored["segment"], self._restore(restored, sample, model))
        self._layout = self._layout_of(sample)
        carrying = Carrying(model, self._before(self._training, sample, model, update_num))
        result = super().train_step(sample, carrying, criterion, optimizer, update_num, *args, **kw)
        self._training.keep(sample["segment"] + 1, carrying.state)
        return result

    def valid_step(self, sample: dict[str, Any], model: Any, criterion: Any, *args: Any, **kw: Any) -> Any:
        """As in fairseq, from the state after the segment before."""
        carrying = Carrying(model, self._before(self._validation, sample, model, update=sample["segment"]))
        result = super().valid_step(sample, carrying, criterion, *args, **kw)
        self._validation.keep(sample["segment"] + 1, carrying.state)
        return result

    def eval_lm_dataloader(self, *args: Any, **kwargs: Any) -> Any:
        """Refused.

        Raises:
            UserError: always.
        """
        raise UserError(f"fairseq-eval-lm {_NOT_CARRIED}")

    def inference_step(self, generator: Any, models: Any, sample: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """As in fairseq, of what ``fairseq-interactive`` reads.

        Raises:
            UserError: the sample is a segment of a stream.
        """
        if "segment" in sample:
            raise UserError(f"fairseq-generate {_NOT_CARRIED}")
        return super().inference_step(generator, models, sample, *args, **kwargs)

    def get_checkpoint_dict(self) -> dict[str, Any]:
        """What a checkpoint needs to resume within an epoch: the state, and the segment that comes next."""
        segment, state = self._training.latest or (0, None)
        if segment in (0, self._layout["segments"]):  # an epoch begins with the initial state
            return {}
        return {type(self).__name__: {"segment": segment, "layout": self._layout, "state": as_plain(state)}}

    def set_checkpoint_dict(self, restored: dict[str, Any]) -> None:
        """Take what :meth:`get_checkpoint_dict` returned; training continues from there."""
        self._restored = restored

    def _layout_of(self, sample: dict[str, Any]) -> dict[str, int]:
        """How the stream is divided that a segment is from."""
        return {
            "segments": sample["num_segments"],
            "--batch-size": sample["nsentences"],
            "--tokens-per-sample": self.args.tokens_per_sample,
        }

    def _restore(self, restored: dict[str, Any], sample: dict[str, Any], model: Any) -> Any:
        """The state of a checkpoint, for this model."""
        layout = self._layout_of(sample)
        if layout != restored["layout"]:
            expected, got = (
                ", ".join(f"{name} {value}" for name, value in of_one.items())
                for of_one in (restored["layout"], layout)
            )
            raise UserError(
                f"the checkpoint is from within an epoch of another division of the stream: expected {expected}, got "
                f"{got}; resume with the same options and text, or begin an epoch with --reset-dataloader"
            )
        return from_plain(restored["state"], like=_state_after_a_token(sample, model))

    def _before(self, states: CarriedStates, sample: dict[str, Any], model: Any, update: int) -> Any:
        """The state before a segment."""
        segment = sample["segment"]
        try:
            state = states.before(segment, update)
        except KeyError:
            raise UserError(
                f"the state before segment {segment + 1} is missing: the checkpoint is from within an epoch, or a "
                "segment was skipped for lack of memory; begin an epoch with --reset-dataloader"
            ) from None
        return model.initial_state(sample["nsentences"]) if state is None else state


@torch.no_grad()
def _state_after_a_token(sample: dict[str, Any], model: Any) -> Any:
    """A state of the model as it is after a step, whatever the token."""
    model.eval()  # draws no random numbers; fairseq turns training on
    tokens = sample["net_input"]["src_tokens"][:, :1]
    _, extra = model(tokens, state=model.initial_state(len(tokens)))
    return extra["state"].detach()


def _check(args: Any) -> None:
    """Refuse options that a stream cannot heed."""
    if args.tokens_per_sample < 1:
        raise UserError(f"--tokens-per-sample: expected at least 1, got {args.tokens_per_sample}")
    defaults = {option.name: option.default for option in fields(StackTruncatedBPTTConfig)}
    for name in _NOT_FOR_STREAMS:
        value, default = getattr(args, name, defaults[name]), defaults[name]
        if str(value) != str(default):
            flag = f"--{name.replace('_', '-')}"
            raise UserError(
                f"{flag}: --task {TASK} reads a text as one stream, in segments of --tokens-per-sample tokens; "
                "leave the option out"
            )
