"""``stack_transformer_lm``: language modelling with stack attention in chosen layers."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from fairseq.models import register_model
from fairseq.models.transformer import TransformerConfig
from fairseq.models.transformer_lm import TransformerLanguageModel, base_lm_architecture
from fairseq.tasks import FairseqTask
from torch import Tensor

from fairseq_stack.errors import UserError
from fairseq_stack.models.gpt2 import gpt2_of
from fairseq_stack.models.presets import fill_in, register_presets
from fairseq_stack.models.pretrained import Pretrained
from fairseq_stack.models.shared_options import (
    initial_scale,
    plain_namespace,
    require_language_modeling,
    require_one_dictionary,
)
from fairseq_stack.models.transformer.encoder_decoder import StackTransformerDecoder
from fairseq_stack.models.transformer.from_gpt2 import begin_as_gpt2, settle_from_gpt2
from fairseq_stack.models.transformer.transformer_options import (
    StackTransformerLanguageModelConfig,
    option_defaults,
    set_depth,
    settle,
)
from fairseq_stack.models.vocabulary import CompactVocabulary, check_symbols, compact_embedding
from fairseq_stack.networks import TransformerOptions
from fairseq_stack.networks.initialization import initialize_transformer

MODEL = "stack_transformer_lm"


@register_model(MODEL, dataclass=StackTransformerLanguageModelConfig)
class StackTransformerLanguageModel(Pretrained, TransformerLanguageModel):
    """A causal, pre-norm transformer language model whose layers are given by a layer list."""

    @classmethod
    def build_model(cls, args: Any, task: FairseqTask) -> StackTransformerLanguageModel:
        """Build the model that fairseq's and our options describe.

        Raises:
            UserError: for a wrong layer list, options that cannot be combined, a task of translation, or a folder of
                GPT-2 that cannot be used.
        """
        require_language_modeling(MODEL, task)
        options = plain_namespace(args)
        fill_in(options, option_defaults())  # checkpoints of earlier versions lack some
        if options.character_embeddings or options.adaptive_input:
            raise UserError(f"{MODEL} has no character embeddings and no adaptive input")
        gpt2 = gpt2_of(options)
        decided = {} if gpt2 is None else settle_from_gpt2(options, gpt2)
        options.stack_decoder_layers = options.stack_layers
        settle(options, MODEL, {"decoder": "stack_layers"})
        if options.decoder_layers_to_keep:
            options.decoder_layers = len(str(options.decoder_layers_to_keep).split(","))
        options.decoder_normalize_before = True  # as in the paper, and in all of fairseq's own presets
        options.decoder_input_dim = options.decoder_input_dim or options.decoder_embed_dim
        options.decoder_output_dim = options.decoder_output_dim or options.decoder_embed_dim
        _check_tables(options, task)
        if options.max_target_positions is None:
            options.max_target_positions = options.tokens_per_sample
        embeddings = cls.build_embedding(options, task.source_dictionary, options.decoder_input_dim)
        cfg = TransformerConfig.from_namespace(options)
        model = cls(StackTransformerDecoder(cfg, task.target_dictionary, embeddings, no_encoder_attn=True))
        initialize_transformer(model, options.stack_init, initial_scale(options, TransformerOptions.stack_init_scale))
        model.decided_options = decided
        if gpt2 is not None:
            begin_as_gpt2(model.decoder, gpt2)
        return model

    @classmethod
    def build_embedding(cls, args: Any, dictionary: Any, embed_dim: int, path: str | None = None) -> Any:
        if not args.compact_vocab:
            return super().build_embedding(args, dictionary, embed_dim, path)
        shared, padding = args.share_decoder_input_output_embed, not getattr(args, "no_padding_row", False)
        vocabulary = CompactVocabulary(dictionary, args.compact_vocab_unk, shared, padding=padding)
        return compact_embedding(vocabulary, embed_dim)

    def forward(
        self, src_tokens: Tensor, tape: Tensor | None = None, next_words: Tensor | None = None, **kwargs: Any
    ) -> tuple[Tensor, dict[str, Any]]:
        """As in fairseq; the tapes in batches of ``pushdown_language_modeling`` are not read.

        Raises:
            UserError: there are symbols that a compact vocabulary treats as impossible.
        """
        check_symbols(self.decoder, src_tokens)
        return super().forward(src_tokens, **kwargs)


def _check_tables(options: Namespace, task: FairseqTask) -> None:
    """Raise UserError if the tables of embeddings cannot be as the options say."""
    if options.compact_vocab:
        require_one_dictionary(MODEL + " with --compact-vocab", task)
    shared = options.share_decoder_input_output_embed
    if options.compact_vocab and getattr(options, "no_padding_row", False) and not shared:
        raise UserError("--no-padding-row has no effect: expected --share-decoder-input-output-embed")
    if shared and options.decoder_input_dim != options.decoder_output_dim:
        raise UserError(
            "--share-decoder-input-output-embed: expected equal --decoder-input-dim and --decoder-output-dim, got "
            f"{options.decoder_input_dim} and {options.decoder_output_dim}"
        )


def _complete(args: Namespace) -> None:
    set_depth(args, "stack_layers", "decoder")
    base_lm_architecture(args)


register_presets(MODEL, _complete)
