"""Trained models in Python: ``from_pretrained``, then ``translate``, ``sample`` and ``score``."""

from __future__ import annotations

import logging
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq import checkpoint_utils, utils
from fairseq.data import Dictionary, language_pair_dataset, monolingual_dataset
from fairseq.hub_utils import GeneratorHubInterface
from fairseq.sequence_scorer import SequenceScorer
from fairseq.tasks.language_modeling import LanguageModelingTask
from fairseq.tokenizer import tokenize_line
from omegaconf import OmegaConf
from torch import Tensor

from fairseq_stack.companions import companions_beside, companions_of_data
from fairseq_stack.errors import UserError, reason_of
from fairseq_stack.hub.batches import batches_of_lengths, require_lengths
from fairseq_stack.hub.language_model import Vocabulary
from fairseq_stack.hub.parse_beams import has_trained_head
from fairseq_stack.hub.paths import checkpoints_at, folder_of_dictionaries
from fairseq_stack.hub.text import pieces_of
from fairseq_stack_preprocess.layout import WORD_MARK

logger = logging.getLogger(__name__)

Hypothesis = dict[str, Any]
"""fairseq's: ``tokens``, ``positional_scores`` (their log-probabilities), ``score`` (the mean of these) and others."""


class Hub(GeneratorHubInterface):
    """A trained model, or an ensemble, with its dictionaries: what ``from_pretrained`` returns.

    It is fairseq's hub interface, for sentences of raw text. If ``fairseq-stack prepare`` made the data in pieces,
    sentences are normalised and split into pieces in the same way. Otherwise they are tokens separated by spaces,
    or what ``--tokenizer`` and ``--bpe`` of the training run make into tokens.
    """

    def __init__(self, cfg: Any, task: Any, models: Sequence[Any], companions: dict[str, Path]) -> None:
        super().__init__(cfg, task, models)
        languages = (getattr(task.cfg, "source_lang", None), getattr(task.cfg, "target_lang", None))
        self.companions = companions
        sides = zip(languages, (self.src_dict, self.tgt_dict), strict=True)
        self._pieces = [pieces_of(companions, *side) if self.bpe is None else None for side in sides]
        self.eval()

    @property
    def architecture(self) -> str:
        """The name of the architecture."""
        options = self.cfg.model
        return str(getattr(options, "arch", None) or options._name)

    @property
    def parses_sentences(self) -> bool:
        """Whether the model also predicts the parses of sentences, by an attachment head that was trained."""
        return has_trained_head(self.models[0], self.cfg.criterion)

    def as_language_model(self) -> LanguageModelHub:
        """The hub as a language model of strings, from the first symbol to the end. Raises UserError if it is none."""
        raise UserError("the checkpoint holds no language model, but one that maps sources to targets")

    def encode(self, sentence: str) -> Tensor:
        """The tokens of a sentence of the source language (of the language, for a language model) and ``</s>``."""
        return self._encode(sentence, self.src_dict, side=0)

    def encode_target(self, sentence: str) -> Tensor:
        """The tokens of a sentence of the target language and ``</s>``."""
        return self._encode(sentence, self.tgt_dict, side=1)

    def cut(self, sentence: str) -> list[str]:
        """The tokens of a sentence of the source language (of the language, for a language model), as text."""
        return tokenize_line(self._cut(sentence, side=0))

    def unknown_words(self, sentence: str, *, of_target: bool = False) -> list[str]:
        """The words of a sentence that the dictionary lacks, and their classes; none if text is split into pieces.

        Pieces are not words that a user writes: those that the dictionary lacks are read as ``<unk>``.
        """
        side, dictionary = (1, self.tgt_dict) if of_target else (0, self.src_dict)
        pieces = self._pieces[side]
        if (pieces is not None and not pieces.classes) or self.bpe is not None or self.tokenizer is not None:
            return []
        pairs = zip(sentence.split(), self._cut(sentence, side).split(), strict=True)
        return [word for word, token in pairs if token not in dictionary]

    def _encode(self, sentence: str, dictionary: Dictionary, side: int) -> Tensor:
        text = self._cut(sentence, side)
        return dictionary.encode_line(text, append_eos=True, add_if_not_exist=False).long()

    def _cut(self, sentence: str, side: int) -> str:
        pieces = self._pieces[side]
        return self.apply_bpe(self.tokenize(sentence)) if pieces is None else pieces.cut(sentence)

    def remove_bpe(self, sentence: str) -> str:
        """Pieces made into text."""
        pieces = self._pieces[1]
        return super().remove_bpe(sentence) if pieces is None else pieces.join(sentence)

    def generate(self, tokenized_sentences: Any, beam: int = 5, verbose: bool = False, **options: Any) -> Any:
        """As fairseq's, but faster for one sentence; one that is too long, or an unknown option, raises UserError."""
        one = torch.is_tensor(tokenized_sentences) and tokenized_sentences.dim() == 1
        sentences = [tokenized_sentences] if one else tokenized_sentences
        limit = self.max_positions[0] if isinstance(self.max_positions, tuple) else self.max_positions
        require_lengths(sentences, limit)
        if len(sentences) == 0:
            return []
        if verbose or options.keys() & {"inference_step_args", "prefix_allowed_tokens_fn"}:
            each = super().generate(sentences, beam, verbose, **options)
        else:
            # fairseq deep-copies the configuration, which takes as long as a few tokens.
            known = OmegaConf.to_container(self.cfg.generation)
            if unknown := options.keys() - known.keys() - {"skip_invalid_size_inputs"}:
                raise UserError(f"{', '.join(sorted(unknown))}: expected options of fairseq-generate, with underscores")
            settings = Namespace(**{**known, "beam": beam, **options})
            search = partial(self.task.inference_step, self.task.build_generator(self.models, settings), self.models)
            each = _in_order(search, self._build_batches(sentences))
        return each[0] if one else each

    def _build_batches(self, tokens: Sequence[Tensor], skip_invalid_size_inputs: bool = False) -> Iterator[Any]:
        """As fairseq's, for sentences of which :meth:`generate` has checked the lengths."""
        lengths = np.array(list(map(len, tokens)))
        dataset = self.task.build_dataset_for_inference(tokens, lengths)
        return self.batches(dataset, lengths.tolist(), dataset.collater)

    def batches(self, samples: Any, lengths: Sequence[int], collate: Callable[[list[Any]], Any]) -> Iterator[Any]:
        """Batches of similar lengths, of the sizes of training; a sentence may be longer than ``--max-tokens``."""
        options = self.cfg.dataset
        for numbers in batches_of_lengths(lengths, options.batch_size, options.max_tokens):
            batch = collate([samples[number] for number in numbers])
            yield utils.apply_to_sample(lambda tensor: tensor.to(self.device), batch)

    def mean_log_probabilities(self, **inputs: Tensor) -> Tensor:
        """The log-probabilities of all tokens, (B, n, V), by the mean of the models' probabilities."""
        outputs = ((model, model(**inputs)) for model in self.models)
        each = [model.get_normalized_probs(output, log_probs=True, sample=None) for model, output in outputs]
        return each[0] if len(each) == 1 else torch.stack(each).logsumexp(0) - np.log(len(each))

    def _score(
        self, sources: Sequence[Tensor], targets: Sequence[Tensor], collate: Callable[..., Any]
    ) -> list[Hypothesis]:
        """The hypothesis of each target, which one of fairseq's functions ``collate`` puts into batches."""
        pairs = list(zip(sources, targets, strict=True))
        samples = [{"id": number, "source": source, "target": target} for number, (source, target) in enumerate(pairs)]
        collate = partial(collate, pad_idx=self.tgt_dict.pad(), eos_idx=self.tgt_dict.eos())
        score = partial(SequenceScorer(self.tgt_dict).generate, self.models)
        lengths = [max(map(len, pair)) for pair in pairs]
        return [best for best, *_ in _in_order(score, self.batches(samples, lengths, collate))]


class TranslationHub(Hub):
    """A translation model: :meth:`translate`, as in fairseq's hub interface, and :meth:`score`."""

    def score(self, sentences: str | Sequence[str], translations: str | Sequence[str]) -> Any:
        """The log-probabilities of the tokens of translations, the ends of the sentences included.

        Args:
            sentences: one sentence or several.
            translations: one translation or as many.

        Returns:
            A :data:`Hypothesis`, or a list of them.

        Raises:
            UserError: the numbers of sentences and translations differ, or a sentence is longer than the model accepts.
        """
        if isinstance(sentences, str) and isinstance(translations, str):
            return self.score([sentences], [translations])[0]
        if isinstance(sentences, str) or isinstance(translations, str) or len(sentences) != len(translations):
            raise UserError("expected one translation for each sentence")
        if not sentences:
            return []
        sources = [self.encode(sentence) for sentence in sentences]
        targets = [self.encode_target(translation) for translation in translations]
        for tokens, limit in zip((sources, targets), self.max_positions, strict=True):
            require_lengths(tokens, limit)
        cfg = self.task.cfg
        padding = {"left_pad_source": cfg.left_pad_source, "left_pad_target": cfg.left_pad_target}
        return self._score(sources, targets, partial(language_pair_dataset.collate, **padding))


class TransductionHub(Hub):
    """A model that transduces strings: :meth:`translate`, as in fairseq's hub interface, gives whole outputs."""


class LanguageModelHub(Hub):
    """A language model: :meth:`sample`, which continues sentences, as in fairseq's hub interface, and :meth:`score`."""

    def __init__(self, cfg: Any, task: Any, models: Sequence[Any], companions: dict[str, Path]) -> None:
        super().__init__(cfg, task, models, companions)
        # The word <eos> ends the sentences of some streams, and </s> does not occur in them.
        self.tgt_dict.eos_index = getattr(task, "end_of_sentence", self.tgt_dict.eos())

    @property
    def vocabulary(self) -> Vocabulary:
        """The symbols of the dictionary."""
        dictionary = self.tgt_dict
        special = {"pad": dictionary.pad(), "end": dictionary.eos(), "unknown": dictionary.unk()}
        pieces = self._pieces[1]
        if pieces is None:
            return Vocabulary(dictionary.symbols, **special, word_mark=WORD_MARK)
        mark, of_first, classes = pieces.word_mark, pieces.marks_first_word, pieces.classes
        return Vocabulary(dictionary.symbols, **special, word_mark=mark, marks_first_word=of_first, classes=classes)

    def as_language_model(self) -> LanguageModelHub:
        """The hub itself. Raises UserError if its strings begin with ``<s>``."""
        if getattr(self.task.args, "add_bos_token", False):
            raise UserError("the model was trained with --add-bos-token: its strings begin with <s>; train without it")
        return self

    def indices(self, tokens: Sequence[str]) -> list[int]:
        """See :class:`~fairseq_stack.hub.language_model.LanguageModel`."""
        encoded = self.tgt_dict.encode_line(" ".join(tokens), add_if_not_exist=False, append_eos=False)
        return list(map(int, encoded))

    def log_probabilities(self, targets: Tensor) -> Tensor:
        """See :class:`~fairseq_stack.hub.language_model.LanguageModel`."""
        padding = targets.eq(self.tgt_dict.pad())
        inputs = targets.roll(1, 1).masked_fill(padding, self.tgt_dict.pad())
        inputs[:, 0] = self.tgt_dict.eos()  # fairseq's beginning of a string
        lengths = (~padding).sum(1)
        return self.mean_log_probabilities(src_tokens=inputs, src_lengths=lengths)

    def translate(self, sentences: Any, beam: int = 5, verbose: bool = False, **kwargs: Any) -> Any:
        """A language model does not translate.

        Raises:
            UserError: always.
        """
        raise UserError("a language model does not translate: sample() continues a sentence, and score() scores it")

    def score(self, sentences: str | Sequence[str]) -> Any:
        """The log-probabilities of the tokens of sentences and of their ends, which fairseq's hub interface leaves out.

        They are what ``fairseq-eval-lm --sample-break-mode eos`` averages.

        Args:
            sentences: one sentence or several.

        Returns:
            A :data:`Hypothesis`, or a list of them.

        Raises:
            UserError: a sentence is longer than the model accepts.
        """
        if isinstance(sentences, str):
            return self.score([sentences])[0]
        if not sentences:
            return []
        unknown = {token for sentence in sentences for token in self.cut(sentence) if token not in self.src_dict}
        if unknown:
            logger.warning("the model does not know %s, and reads <unk> there", ", ".join(sorted(map(repr, unknown))))
        tokens = [self.encode(sentence) for sentence in sentences]
        require_lengths(tokens, self.max_positions)
        sources = [string.roll(1) for string in tokens]  # fairseq's beginning of a string is the end of the one before
        if getattr(self.task.args, "add_bos_token", False):
            begin = torch.tensor([self.src_dict.bos()])
            sources, tokens = ([torch.cat([begin, string]) for string in strings] for strings in (sources, tokens))
        return self._score(sources, tokens, monolingual_dataset.collate)


def load(checkpoint: str | Path, data: str | Path | None = None, **overrides: Any) -> Hub:
    """Load a model, or an ensemble, with its dictionaries.

    Args:
        checkpoint: a checkpoint; or a folder, for its ``checkpoint_best.pt`` (or else ``checkpoint_last.pt``); or
            several checkpoints of an ensemble, separated by ``:``, unless a file has that name.
        data: a corpus of fairseq-stack prepare, or the folder with the dictionaries (default: the folder of the
            checkpoint; if it has none, the folder of the data in training).
        overrides: replace options of the training run.

    Raises:
        UserError: the checkpoint or its dictionaries do not exist, or they do not fit together; or the folder of the
            dictionaries has ``:`` in its name.
    """
    paths = checkpoints_at(checkpoint)
    folder = folder_of_dictionaries(paths[0], None if data is None else Path(data))
    try:
        models, cfg, task = checkpoint_utils.load_model_ensemble_and_task(
            [str(path) for path in paths], {"data": str(folder), **overrides}
        )
    except Exception as error:  # torch and fairseq raise exceptions of every kind
        raise UserError(f"{paths[0]} cannot be loaded with the data of {folder}: {reason_of(error)}") from error
    return _kind_of(task)(cfg, task, models, companions_of_data(folder) | companions_beside(paths[0]))


def _kind_of(task: Any) -> type[Hub]:
    if isinstance(task, LanguageModelingTask):
        return LanguageModelHub
    return TransductionHub if getattr(task, "transduces", False) else TranslationHub


def _in_order(compute: Callable[[Any], list[Any]], batches: Iterable[Any]) -> list[Any]:
    """What is computed of each sample of the batches, without autograd, in the order of the samples' numbers."""
    results: dict[int, Any] = {}
    for batch in batches:
        with torch.no_grad():  # inference_mode would leave tensors in the model that cannot be differentiated
            results |= zip(batch["id"].tolist(), compute(batch), strict=True)
    return [results[number] for number in range(len(results))]
