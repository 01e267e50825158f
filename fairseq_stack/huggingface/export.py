"""A trained model as a folder that transformers loads: see :func:`export`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from fairseq.data import Dictionary
from transformers import GenerationConfig, PreTrainedTokenizerBase

from fairseq_stack.companions import MANIFEST
from fairseq_stack.errors import UserError
from fairseq_stack.hub.interface import Hub, LanguageModelHub
from fairseq_stack.hub.text import piece_model
from fairseq_stack.huggingface.configuration import END
from fairseq_stack.huggingface.modeling import StackLSTMForCausalLM, StackModel, StackTransformerForCausalLM
from fairseq_stack.huggingface.readme import readme
from fairseq_stack.huggingface.seq2seq import StackTransformerForConditionalGeneration
from fairseq_stack.huggingface.tokenizers import (
    DICTIONARY,
    SPECIAL_SYMBOLS,
    PieceTokenizer,
    require_plain,
    word_tokenizer,
)
from fairseq_stack.models.plain import plain_model
from fairseq_stack_preprocess.layout import TOKENIZER_NAME
from fairseq_stack_preprocess.text.output import output_folder

TARGET_TOKENIZER = "target_tokenizer"
"""The folder of the target language's tokenizer, since a folder can have only one."""

_MODELS = (StackTransformerForCausalLM, StackLSTMForCausalLM, StackTransformerForConditionalGeneration)
# What fairseq-generate does by default: a beam of 5, and 1 to 200 tokens between the first </s> and the last.
_BEAM, _MAX_LENGTH = 5, 202
_TOKENS = ("bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id")


def export(hub: Hub, folder: Path) -> None:
    """Write a folder that ``from_pretrained`` of transformers loads, complete or not at all.

    Args:
        hub: the model, with its dictionaries.
        folder: the folder to write.

    Raises:
        UserError: the folder exists; the model is an ensemble, or one that has no counterpart in
            :mod:`fairseq_stack.networks`; or its text is prepared in a way that has no counterpart in transformers.
        PrepareError: the folder cannot be written.
    """
    if os.path.lexists(folder):
        raise UserError(f"{folder} already exists; name a new folder")
    _require_own_text(hub)
    is_language_model = isinstance(hub, LanguageModelHub)
    model = _language_model(hub.as_language_model()) if is_language_model else _translation_model(hub)
    with output_folder(folder) as unfinished:
        model.save_pretrained(unfinished)
        if is_language_model:
            end = hub.tgt_dict[hub.tgt_dict.eos()]  # of a model of a stream the word <eos>
            roles = {"bos_token": end, "eos_token": end}
            tokenizer = save_tokenizer(hub, hub.tgt_dict, None, unfinished, begins=True, padding_side="left", **roles)
        else:
            tokenizer = save_tokenizer(hub, hub.src_dict, hub.task.cfg.source_lang, unfinished, begins=False)
            save_tokenizer(hub, hub.tgt_dict, hub.task.cfg.target_lang, unfinished / TARGET_TOKENIZER, begins=False)
        ends = hub.tgt_dict.eos()
        words = [index for index in range(len(SPECIAL_SYMBOLS), len(hub.src_dict)) if index != ends]
        classes = [hub.tgt_dict[index] for index in sorted(hub.vocabulary.classes)[:3]] if is_language_model else []
        text = readme(folder.name, model, tokenizer.decode(words[:3]), hub.tgt_dict[ends], classes)
        (unfinished / "README.md").write_text(text, encoding="utf-8")


def _require_own_text(hub: Hub) -> None:
    for option, part in {"--tokenizer": hub.tokenizer, "--bpe": hub.bpe}.items():
        if part is not None:
            raise UserError(
                f"{option}: a model whose text fairseq itself tokenizes cannot be exported; expected words separated "
                "by spaces, or pieces of fairseq-stack prepare"
            )


def _language_model(hub: LanguageModelHub) -> StackModel:
    end = hub.tgt_dict.eos()
    return _model(hub, vocab_size=len(hub.tgt_dict), bos_token_id=end, eos_token_id=end)


def _translation_model(hub: Hub) -> StackModel:
    model = _model(hub, source_vocab_size=len(hub.src_dict), vocab_size=len(hub.tgt_dict))
    config = model.config
    model.generation_config = GenerationConfig(
        **{name: getattr(config, name) for name in _TOKENS},
        num_beams=_BEAM,
        early_stopping=True,
        min_new_tokens=1,
        max_length=min(_MAX_LENGTH, config.max_target_positions),
        forced_eos_token_id=END,
        suppress_tokens=model.generation_config.suppress_tokens,
    )
    return model


def _model(hub: Hub, **settings: int) -> StackModel:
    network = plain_model(hub)
    model_class = next(each for each in _MODELS if each.network_class is type(network))
    return model_class.of_network(network, **settings)


def save_tokenizer(
    hub: Hub, dictionary: Dictionary, language: str | None, folder: Path, *, begins: bool, **settings: Any
) -> PreTrainedTokenizerBase:
    """Write the tokenizer of a language, and return it.

    Args:
        hub: the model.
        dictionary: of the language.
        language: its name in a translation model; None for a language model.
        folder: the folder of the tokenizer, which is made if it does not exist.
        begins: see :func:`.tokenizers.word_tokenizer`.
        settings: of transformers, such as ``padding_side``.

    Raises:
        UserError: the dictionary has no counterpart in transformers, or the model reads GPT-2's pieces.
    """
    if TOKENIZER_NAME in hub.companions:
        raise UserError(f"{hub.companions[TOKENIZER_NAME]}: models that read GPT-2's pieces cannot be exported")
    require_plain(dictionary.symbols, f"the dictionary of {language}" if language else "the dictionary")
    folder.mkdir(exist_ok=True)
    dictionary.save(str(folder / DICTIONARY))
    pieces = piece_model(hub.companions, language)
    tokenizer: PreTrainedTokenizerBase
    if pieces is None:
        tokenizer = word_tokenizer(dictionary.symbols, begins=begins, **settings)
    else:
        manifest = hub.companions.get(MANIFEST)
        tokenizer = PieceTokenizer(
            str(folder / DICTIONARY),
            str(pieces),
            str(manifest) if manifest else None,
            language=language,
            begins=begins,
            **settings,
        )
    tokenizer.save_pretrained(folder)
    return tokenizer
