"""``stack_transformer_lm``: language modelling with stack attention in chosen layers."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from fairseq.models import register_model
from fairseq.models.transformer import TransformerConfig
from fairseq.models.transformer_lm import (
    TransformerLanguageModel,
    TransformerLanguageModelConfig,
    base_lm_architecture,
)
from fairseq.tasks import FairseqTask
from fairseq.tasks.translation import TranslationTask
from torch import Tensor

from fairseq_stack.compat.building import is_from_checkpoint
from fairseq_stack.errors import UserError
from fairseq_stack.models.checkpoints import CheckedLoading
from fairseq_stack.models.options import plain_namespace, settle_depth_limit
from fairseq_stack.models.presets import register_presets
from fairseq_stack.models.pretrained import Pretrained
from fairseq_stack.models.sizes import Side, require_memory
from fairseq_stack.models.transformer.config import StackTransformerLanguageModelConfig
from fairseq_stack.models.transformer.encoder_decoder import StackTransformerDecoder
from fairseq_stack.models.transformer.initialization import initialize
from fairseq_stack.models.transformer.options import (
    check_options,
    layers_of,
    set_depth,
    settle_layers,
)
from fairseq_stack.models.vocabulary import CompactVocabulary, check_symbols, compact_embedding


@register_model("stack_transformer_lm", dataclass=StackTransformerLanguageModelConfig)
class StackTransformerLanguageModel(CheckedLoading, Pretrained, TransformerLanguageModel):
    """A causal, pre-norm transformer language model whose layers are given by a layer list."""

    @classmethod
    def build_model(cls, args: Any, task: FairseqTask) -> StackTransformerLanguageModel:
        """Build the model that fairseq's and our options describe.

        Raises:
            UserError: for a wrong layer list, options that cannot be combined, sizes beyond the memory of this machine,
                or a task of translation.
        """
        if isinstance(task, TranslationTask):
            raise UserError(
                "stack_transformer_lm is a language model: expected --task language_modeling, "
                f"got {type(task).__name__}"
            )
        options = plain_namespace(args)
        if options.character_embeddings or options.adaptive_input:
            raise UserError("stack_transformer_lm has no character embeddings and no adaptive input")
        check_options(options)
        options.stack_decoder_layers = options.stack_layers
        settle_layers(options, "stack_layers", "decoder_layers", "stack_transformer_lm")
        if options.decoder_layers is None:
            options.decoder_layers = TransformerLanguageModelConfig.decoder_layers
        settle_depth_limit(options, layers_of(options, "stack_layers", "decoder_layers"))
        if not is_from_checkpoint():
            tables = 1 if options.share_decoder_input_output_embed else 2
            require_memory([_side(options, tables * len(task.target_dictionary))])
        if options.decoder_layers_to_keep:
            options.decoder_layers = len(str(options.decoder_layers_to_keep).split(","))
        options.decoder_normalize_before = True  # as in the paper, and in all of fairseq's own presets
        options.decoder_input_dim = options.decoder_input_dim or options.decoder_embed_dim
        options.decoder_output_dim = options.decoder_output_dim or options.decoder_embed_dim
        if options.max_target_positions is None:
            options.max_target_positions = options.tokens_per_sample
        embeddings = cls.build_embedding(options, task.source_dictionary, options.decoder_input_dim)
        cfg = TransformerConfig.from_namespace(options)
        model = cls(StackTransformerDecoder(cfg, task.target_dictionary, embeddings, no_encoder_attn=True))
        initialize(model, options)
        return model

    @classmethod
    def build_embedding(cls, args: Any, dictionary: Any, embed_dim: int, path: str | None = None) -> Any:
        if not args.compact_vocab:
            return super().build_embedding(args, dictionary, embed_dim, path)
        shared = args.share_decoder_input_output_embed
        return compact_embedding(CompactVocabulary(dictionary, args.compact_vocab_unk, shared), embed_dim)

    def forward(self, src_tokens: Tensor, **kwargs: Any) -> tuple[Tensor, dict[str, Any]]:
        """As in fairseq; symbols that a compact vocabulary treats as impossible raise UserError."""
        check_symbols(self.decoder, src_tokens)
        return super().forward(src_tokens, **kwargs)


def _side(options: Namespace, num_embeddings: int) -> Side:
    """The sizes of the decoder, the only part of the model."""
    return Side(
        flag="--stack-layers",
        layers=layers_of(options, "stack_layers", "decoder_layers"),
        model_size=options.decoder_embed_dim,
        hidden_size=options.decoder_ffn_embed_dim,
        num_embeddings=num_embeddings,
    )


def _complete(args: Namespace) -> None:
    set_depth(args, "stack_layers", "decoder_layers")
    base_lm_architecture(args)


register_presets("stack_transformer_lm", _complete)
