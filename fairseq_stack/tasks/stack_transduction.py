"""``--task stack_transduction``: strings become strings of the same length, as in Hao et al. (2018).

fairseq reads the types of options at run time: annotations must not be postponed, and optional ones be spelled
``Optional``.
"""

# ruff: noqa: UP045

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

import torch
from fairseq import utils
from fairseq.criterions import CRITERION_REGISTRY
from fairseq.data import Dictionary, data_utils
from fairseq.data.indexed_dataset import get_available_dataset_impl
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.tasks import FairseqTask, register_task
from omegaconf import II
from torch import Tensor, nn

from fairseq_stack.criterions.transduction import TransductionCriterion
from fairseq_stack.errors import UserError
from fairseq_stack.search import AccuracyScorer, OnePassGenerator

from ._transductions import Transductions, may_be_scored, read_task_file, words_of

TASK = "stack_transduction"
DATASET_IMPLEMENTATIONS = ChoiceEnum(get_available_dataset_impl())


@dataclass
class StackTransductionConfig(FairseqDataclass):
    """Options of data with an input and a target language, whose strings have equal lengths."""

    data: Optional[str] = field(
        default=None, metadata={"help": "folder with the data, such as data-bin of fairseq-stack prepare transduction"}
    )
    source_lang: Optional[str] = field(
        default=None, metadata={"help": "language of the inputs", "argparse_alias": "-s"}
    )
    target_lang: Optional[str] = field(
        default=None, metadata={"help": "language of the targets", "argparse_alias": "-t"}
    )
    score_words: Optional[str] = field(
        default=None,
        metadata={
            "help": "words of the targets that loss and accuracy count, separated by spaces (default: the words of "
            "task.json, or else all words except the blank)"
        },
    )
    blank: Optional[str] = field(
        default=None,
        metadata={"help": "word that pads inputs (default: the blank of task.json, or else # if it is a word)"},
    )
    dataset_impl: Optional[DATASET_IMPLEMENTATIONS] = II("dataset.dataset_impl")  # type: ignore[valid-type]  # noqa: RUF009
    train_subset: str = II("dataset.train_subset")


@register_task(TASK, dataclass=StackTransductionConfig)
class StackTransductionTask(FairseqTask):
    """Pairs of strings of equal length, without ``</s>``; the model writes all symbols of the target in one pass.

    ``task.json`` of ``fairseq-stack prepare transduction``, next to the data, says which word is blank, which words of
    targets are scored, and how long the strings of each split can be. A model that reads its whole input
    (``reads_whole_input``) gets all inputs of a split padded with blanks to that length.
    """

    transduces = True

    def __init__(self, cfg: StackTransductionConfig, dictionary: Dictionary) -> None:
        super().__init__(cfg)
        self.dictionary = dictionary
        self.task_file = read_task_file(Path(utils.split_paths(cfg.data)[0]))
        self.task_name = self.task_file.name or Path(str(cfg.data)).name
        self.blank = self._find_blank()
        self.score_words = self._find_score_words()
        self.pads_to_longest = False

    @classmethod
    def setup_task(cls, cfg: StackTransductionConfig, **kwargs: Any) -> "StackTransductionTask":
        """The task, with the languages and the dictionary of the data.

        Raises:
            UserError: there are no such languages, both have different dictionaries, or an option does not fit them.
        """
        folder = utils.split_paths(cfg.data)[0]
        if cfg.source_lang is None or cfg.target_lang is None:
            cfg.source_lang, cfg.target_lang = data_utils.infer_language_pair(folder)
        if cfg.source_lang is None or cfg.target_lang is None:
            raise UserError(
                f"{folder} has no pair of languages; expected data-bin of fairseq-stack prepare transduction"
            )
        paths = [Path(folder, f"dict.{language}.txt") for language in (cfg.source_lang, cfg.target_lang)]
        source, target = (cls.load_dictionary(str(path)) for path in paths)
        if source.symbols != target.symbols:
            raise UserError(
                f"{paths[0]} and {paths[1]} differ: expected the same words in the same order; give fairseq-preprocess "
                "the option --joined-dictionary"
            )
        return cls(cfg, source)

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> Any:
        """As in fairseq; the model decides whether inputs are padded to the length of the longest."""
        model = super().build_model(cfg, from_checkpoint)
        self.pads_to_longest |= getattr(model, "reads_whole_input", False)  # in an ensemble, for all models
        return model

    def build_criterion(self, cfg: Any, *rest: Any) -> Any:
        """As in fairseq.

        Raises:
            UserError: it is neither ``transduction`` nor derived from it, and would take words for symbols.
        """
        if not issubclass(CRITERION_REGISTRY[cfg._name], TransductionCriterion):
            raise UserError(
                f"--task {TASK}: expected --criterion transduction, or one derived from it, got {cfg._name}"
            )
        return super().build_criterion(cfg, *rest)

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any) -> None:
        """Load a split.

        Raises:
            FileNotFoundError: the split does not exist.
            UserError: see :class:`Transductions`.
        """
        folders = utils.split_paths(self.cfg.data)
        folder = folders[(epoch - 1) % len(folders)] if split == self.cfg.train_subset else folders[0]
        source, target = self.cfg.source_lang, self.cfg.target_lang
        sides = []
        for language in (source, target):
            path = os.path.join(folder, f"{split}.{source}-{target}.{language}")
            side = data_utils.load_indexed_dataset(path, self.dictionary, self.cfg.dataset_impl, combine=combine)
            if side is None:
                raise FileNotFoundError(f"Dataset not found: {split} ({path})")
            sides.append([side[number] for number in range(len(side))])
        name = os.path.join(folder, split)
        longest = self.task_file.longest.get(split)
        inputs, targets = sides
        is_training = split == self.cfg.train_subset
        self.datasets[split] = self._transductions(inputs, targets, name, longest, shuffle=is_training)

    def build_dataset_for_inference(
        self, src_tokens: Sequence[Tensor], src_lengths: Sequence[int], **kwargs: Any
    ) -> Transductions:
        """Inputs without targets, such as ``fairseq-interactive`` reads."""
        longest = max(self.task_file.longest.values(), default=None)
        return self._transductions(src_tokens, None, "input", longest)

    def build_generator(self, models: list[nn.Module], args: Any, *rest: Any, **kwargs: Any) -> OnePassGenerator:
        """A generator that writes the most probable word at each scored position, and blanks elsewhere.

        Raises:
            UserError: ``--score-reference``, ``--prefix-size``, ``--nbest`` or ``--sampling`` is given.
        """
        for name, default in (("score_reference", False), ("prefix_size", 0), ("nbest", 1), ("sampling", False)):
            if getattr(args, name, default) != default:
                raise UserError(
                    f"--{name.replace('_', '-')}: --task {TASK} writes all symbols at once; leave the option out"
                )
        # fairseq-generate gives its scorer nothing else of the task.
        self.dictionary.scorer = AccuracyScorer(self._is_scored())
        return OnePassGenerator(self.dictionary, self._number_of_blank())

    def inference_step(
        self, generator: OnePassGenerator, models: list[nn.Module], sample: dict[str, Any], **kwargs: Any
    ) -> list[list[dict[str, Any]]]:
        """As in fairseq. What ``fairseq-generate`` prints of the batch is then whole strings, without padding."""
        inputs, lengths = sample["net_input"]["src_tokens"], sample["net_input"]["src_lengths"]
        sample["is_scored"] = self.scored_positions(inputs, lengths, sample.get("target"))
        hypotheses = generator.generate(models, sample)
        sample["target"] = sample.get("whole_target")
        is_padding = torch.arange(inputs.size(1), device=inputs.device) >= lengths.unsqueeze(1)
        inputs.masked_fill_(is_padding, self.dictionary.pad())  # fairseq-interactive prints this tensor
        return hypotheses

    def scored_positions(self, inputs: Tensor, lengths: Tensor, target: Tensor | None = None) -> Tensor:
        """Where outputs count, (B, n): where a target is scored; without targets, wherever the task can score one.

        Args:
            inputs: (B, n).
            lengths: of the inputs, (B,).
            target: (B, n), with padding where it is not scored.
        """
        if target is not None:
            return target.ne(self.dictionary.pad())
        return may_be_scored(self.task_file.name, inputs, lengths, self._number_of_blank())

    @property
    def target_dictionary(self) -> Dictionary:
        """The dictionary of inputs and targets."""
        return self.dictionary

    source_dictionary = target_dictionary

    def _transductions(
        self,
        inputs: Sequence[Tensor],
        targets: Sequence[Tensor] | None,
        name: str,
        longest: int | None,
        shuffle: bool = False,
    ) -> Transductions:
        if self.pads_to_longest and self.blank is None:
            raise UserError("--blank: expected the word that pads inputs, which this model reads; task.json is missing")
        blank = self._number_of_blank()
        return Transductions(
            inputs,
            targets,
            self.dictionary,
            name=name,
            scored=self._is_scored(),
            padding=self.dictionary.pad() if blank is None else blank,
            pad_to_longest=self.pads_to_longest,
            longest=longest,
            shuffle=shuffle,
        )

    def _is_scored(self) -> Tensor:
        """Whether each word of the dictionary is scored."""
        scored = torch.zeros(len(self.dictionary), dtype=torch.bool)
        scored[[self.dictionary.index(word) for word in self.score_words]] = True
        return scored

    def _number_of_blank(self) -> int | None:
        return None if self.blank is None else self.dictionary.index(self.blank)

    def _find_blank(self) -> str | None:
        blank = self.cfg.blank or self.task_file.blank or ("#" if "#" in self.dictionary else None)
        if blank is not None and blank not in words_of(self.dictionary):
            origin = "--blank" if self.cfg.blank else f"blank in {self.task_file.path}"
            raise UserError(f"{origin}: expected one of {' '.join(words_of(self.dictionary))}, got {blank}")
        return blank

    def _find_score_words(self) -> list[str]:
        known = words_of(self.dictionary)
        if self.cfg.score_words is not None:
            origin, words = "--score-words", self.cfg.score_words.split()
        elif self.task_file.scored is not None:
            origin, words = f"scored in {self.task_file.path}", list(self.task_file.scored)
        else:
            origin, words = "--blank", [word for word in known if word != self.blank]
        if not words or not set(words) <= set(known):
            wrong = next((word for word in words if word not in known), "nothing")
            raise UserError(f"{origin}: expected some of {' '.join(known)}, got {wrong}")
        return words
