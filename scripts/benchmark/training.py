"""Training steps, as fairseq does them, of the papers' models and of models of equal parameters, on random tokens."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fairseq_stack.kinds import parse_layer_list

from .agreement import check
from .cases import Case, Variant
from .tables import Columns, Row
from .timing import Settings, Timer, Times, say

EQUAL = Path(__file__).resolve().parents[1] / "experiments" / "cfl_modern.json"
"""What models of equal parameters add to the options of the preset without a stack."""
PRECISIONS = ("float32", "fp16", "bf16")  # all but the first are options of fairseq-train
HALF = {"fp16": torch.float16, "bf16": torch.bfloat16}
GRADIENT_NORM = 5.0

COLUMNS: Columns = {
    "model": "model",
    "precision": "precision",
    "sentences x tokens": lambda row: f"{row['sentences']} x {row['length']}",
    "parameters": lambda row: f"{row['parameters']:,}",
    "threads": "threads",
    "forward ms": "forward_ms",
    "backward ms": "backward_ms",
    "update ms": "update_ms",
    "step ms": "step_ms",
    "tokens/s": "tokens_per_second",
    "x tf": lambda row: f"{row['times_tf']:.2f}",
}


@dataclass(frozen=True)
class Workload:
    """Training steps of models that are compared.

    Attributes:
        name: of the comparison.
        models: the options of each by its name; the model without a stack comes first.
        task: fairseq's task.
        vocabulary: how many symbols the dictionary has.
        sentences: in a batch.
        length: tokens of each sentence, and with translation also of its source.
    """

    name: str
    models: Mapping[str, Sequence[str]]
    task: str
    vocabulary: int
    sentences: int
    length: int

    @property
    def is_translation(self) -> bool:
        return self.task == "translation"

    @property
    def tokens(self) -> int:
        """Target tokens in a batch."""
        return self.sentences * self.length


def _presets(names: str) -> dict[str, list[str]]:
    """The presets of a table of a paper."""
    return {preset: ["--arch", preset] for preset in (names.format(kind) for kind in ("tf", "sup", "nd"))}


def _of_equal_parameters() -> dict[str, list[str]]:
    options = json.loads(EQUAL.read_text(encoding="utf-8"))
    return {name: ["--arch", "stack_transformer_lm_tf_cfl", *options[name].split()] for name in options}


WORKLOADS = (
    Workload("ptb", _presets("stack_transformer_lm_{}_ptb"), "language_modeling", 23_832, 16, 32),
    Workload("cfl", _presets("stack_transformer_lm_{}_cfl"), "language_modeling", 3, 10, 60),
    Workload("small", _presets("stack_transformer_{}_small"), "translation", 6_152, 64, 32),
    Workload("equal parameters", _of_equal_parameters(), "language_modeling", 3, 10, 60),
)


def tiny(workload: Workload) -> Workload:
    """The same models on tiny data."""
    return replace(workload, vocabulary=min(workload.vocabulary, 20), sentences=2, length=5)


def measure(workload: Workload, precision: str, settings: Settings) -> list[Row]:
    """Measure steps of the models in turn, after a check of their stacks.

    Raises:
        Disagreement: a stack of a model computes something else than the reference.
    """
    say(f"{workload.name} in {precision}: building the models")
    trainings = {name: Training(workload, name, settings.timer, precision) for name in workload.models}
    for case in dict.fromkeys(case for training in trainings.values() for case in training.stacks()):
        check(case, [Variant("auto", torch.float32)], settings.device)
    rows = []
    for threads in settings.each_number_of_threads(f"{workload.name}: training steps"):
        times = settings.least_times({name: training.step for name, training in trainings.items()})
        without_stack = times[next(iter(trainings))][-1]
        for name, training in trainings.items():
            forward, backward, update, total = times[name]
            rows.append(
                {
                    "model": name,
                    "precision": precision,
                    "sentences": workload.sentences,
                    "length": workload.length,
                    "threads": threads,
                    "parameters": training.parameters,
                    "forward_ms": 1e3 * forward,
                    "backward_ms": 1e3 * backward,
                    "update_ms": 1e3 * update,
                    "step_ms": 1e3 * total,
                    "tokens_per_second": workload.tokens / total,
                    "times_tf": total / without_stack,
                }
            )
    return rows


class Training:
    """A model of a workload in training.

    Attributes:
        model: the model, on the device.
    """

    def __init__(self, workload: Workload, name: str, timer: Timer, precision: str) -> None:
        from fairseq import tasks

        torch.manual_seed(0)
        cfg, dictionary = _configuration(workload, name, timer.device, precision), _dictionary(workload.vocabulary)
        if workload.is_translation:
            task: Any = tasks.translation.TranslationTask(cfg.task, dictionary, dictionary)
        else:
            task = tasks.language_modeling.LanguageModelingTask(cfg.task, dictionary, dictionary)
        self.model = task.build_model(cfg.model).to(timer.device).train()
        if precision in HALF:
            self.model.to(HALF[precision])
        self._timer, self._workload, self._options = timer, workload, cfg.model
        self._criterion = task.build_criterion(cfg.criterion)
        self._optimizer = _optimizer(cfg, [*self.model.parameters()], precision)
        self._sample = _sample(workload, dictionary, timer.device)

    def stacks(self) -> Iterator[Case]:
        """The stacks that the model computes in a step."""
        for name in ("stack_layers", "stack_encoder_layers", "stack_decoder_layers"):
            for layer in parse_layer_list(getattr(self._options, name, None) or "sdpa"):
                if layer.kind.build is not None:
                    yield Case(layer.kind, (self._workload.sentences, self._workload.length, *layer.sizes))

    @property
    def parameters(self) -> int:
        """The number of parameters of the model."""
        return sum(parameter.numel() for parameter in self.model.parameters())

    def step(self) -> Times:
        """Train on the batch: the seconds that forward pass, backward pass and update took, and their sum."""
        lap = self._timer.start()
        self._optimizer.zero_grad()
        loss, tokens, _ = self._criterion(self.model, self._sample)
        forward = lap()
        self._optimizer.backward(loss)
        backward = lap()
        self._optimizer.multiply_grads(1 / tokens)
        self._optimizer.clip_grad_norm(GRADIENT_NORM)
        self._optimizer.step()
        update = lap()
        return forward, backward, update, forward + backward + update


def _optimizer(cfg: Any, parameters: list[Tensor], precision: str) -> Any:
    """The optimizer that fairseq's trainer makes."""
    from fairseq import optim

    if precision in HALF:
        return optim.FP16Optimizer.build_optimizer(cfg, parameters)
    return optim.build_optimizer(cfg.optimizer, parameters)


def _configuration(workload: Workload, name: str, device: torch.device, precision: str) -> Any:
    from fairseq import options
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf

    import fairseq_stack.models  # noqa: F401  (registers the presets, before a parser is made)

    flags = ["data", "--task", workload.task, *workload.models[name], "--compact-vocab"]
    flags += ["--optimizer", "adam", "--lr", "1e-4", "--criterion", "cross_entropy"]
    flags += ["--cpu"] if device.type == "cpu" else []
    flags += [] if precision == "float32" else [f"--{precision}"]
    parser = options.get_training_parser(default_task=workload.task)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # from hydra, about how fairseq uses it
        return convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, flags))


def _dictionary(vocabulary: int) -> Any:
    from fairseq.data import Dictionary

    dictionary = Dictionary()
    for index in range(vocabulary):
        dictionary.add_symbol(f"w{index}")
    return dictionary


def _sample(workload: Workload, dictionary: Any, device: torch.device) -> dict[str, Any]:
    """A batch as fairseq's data sets make it, of sentences of one length."""
    generator = torch.Generator().manual_seed(0)

    def sentences() -> Tensor:
        shape = (workload.sentences, workload.length)
        words = torch.randint(dictionary.nspecial, len(dictionary), shape, generator=generator)
        words[:, -1] = dictionary.eos()
        return words.to(device)

    target = sentences()
    previous = target.roll(1, 1)
    source = sentences() if workload.is_translation else previous
    inputs = {"src_tokens": source, "src_lengths": torch.full((workload.sentences,), workload.length, device=device)}
    if workload.is_translation:
        inputs["prev_output_tokens"] = previous
    return {"net_input": inputs, "target": target, "ntokens": target.numel(), "nsentences": workload.sentences}
