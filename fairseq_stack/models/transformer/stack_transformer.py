"""``stack_transformer``: translation with stack attention in chosen layers of the encoder and the decoder."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from fairseq.data import Dictionary
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import register_model, register_model_architecture
from fairseq.models.transformer import TransformerModel
from fairseq.models.transformer.transformer_legacy import base_architecture
from fairseq.tasks import FairseqTask
from fairseq.tasks.language_modeling import LanguageModelingTask
from torch import Tensor, nn

from fairseq_stack.errors import UserError
from fairseq_stack.kinds import spellings
from fairseq_stack.models.presets import fill_in, register_presets
from fairseq_stack.models.pretrained import Pretrained
from fairseq_stack.models.shared_options import flag, initial_scale, plain_namespace
from fairseq_stack.models.transformer.encoder_decoder import (
    StackTransformerDecoder,
    StackTransformerEncoder,
)
from fairseq_stack.models.transformer.transformer_options import StackOptions, option_defaults, set_depth, settle
from fairseq_stack.models.vocabulary import CompactEmbedding, CompactVocabulary, check_symbols, compact_embedding
from fairseq_stack.networks import TransformerOptions
from fairseq_stack.networks.initialization import initialize_transformer

MODEL = "stack_transformer"
LAYER_LISTS = {"encoder": "stack_encoder_layers", "decoder": "stack_decoder_layers"}
"""For each side, the option that lists its layers."""


@register_model(MODEL)
class StackTransformer(Pretrained, TransformerModel):
    """A transformer for translation whose encoder and decoder layers are given by layer lists."""

    @classmethod
    def add_args(cls, parser: ArgumentParser) -> None:
        """Add fairseq's transformer options, the layer lists and the options of all stack transformers."""
        super().add_args(parser)
        for side, name in LAYER_LISTS.items():
            parser.add_argument(
                flag(name),
                metavar="LIST",
                help=f"attention of each {side} layer ({spellings()}), e.g. 2xsdpa,nd-3-3-5,2xsdpa; it also sets the "
                "depth",
            )
        gen_parser_from_dataclass(parser, StackOptions(), delete_default=True, with_prefix="")

    @classmethod
    def build_model(cls, args: Any, task: FairseqTask) -> StackTransformer:
        """Build the model that fairseq's and our options describe.

        Raises:
            UserError: for a wrong layer list, options that cannot be combined, or a task of language modelling.
        """
        if isinstance(task, LanguageModelingTask):
            raise UserError(f"stack_transformer translates: expected --task translation, got {type(task).__name__}")
        args = plain_namespace(args)
        stack_transformer(args)
        for side in LAYER_LISTS:
            kept = getattr(args, f"{side}_layers_to_keep", None)
            if isinstance(kept, list | tuple):  # the command line gives a list, but fairseq then splits a string
                setattr(args, f"{side}_layers_to_keep", ",".join(map(str, kept)))
        settle(args, MODEL, LAYER_LISTS)
        model = super().build_model(args, task)
        initialize_transformer(model, args.stack_init, initial_scale(args, TransformerOptions.stack_init_scale))
        return model

    @classmethod
    def build_embedding(cls, args: Any, dictionary: Dictionary, embed_dim: int, path: str | None = None) -> nn.Module:
        if not args.compact_vocab:
            return super().build_embedding(args, dictionary, embed_dim, path)
        shared = args.share_all_embeddings or args.share_decoder_input_output_embed
        return compact_embedding(CompactVocabulary(dictionary, keep_unk=True, shared=shared), embed_dim)

    @classmethod
    def build_encoder(cls, args: Any, src_dict: Dictionary, embed_tokens: nn.Module) -> StackTransformerEncoder:
        if isinstance(embed_tokens, CompactEmbedding) and not args.share_all_embeddings:
            # The decoder may share its table with the output layer; the encoder's table is not shared.
            vocabulary = CompactVocabulary(src_dict, keep_unk=True, shared=False)
            embed_tokens = compact_embedding(vocabulary, args.encoder.embed_dim)
        return StackTransformerEncoder(args, src_dict, embed_tokens)

    @classmethod
    def build_decoder(cls, args: Any, tgt_dict: Dictionary, embed_tokens: nn.Module) -> StackTransformerDecoder:
        return StackTransformerDecoder(args, tgt_dict, embed_tokens, no_encoder_attn=args.no_cross_attention)

    def forward(
        self, src_tokens: Tensor, src_lengths: Tensor, prev_output_tokens: Tensor, **kwargs: Any
    ) -> tuple[Tensor, dict[str, Any]]:
        """As in fairseq; symbols that a compact vocabulary treats as impossible raise UserError."""
        check_symbols(self.encoder, src_tokens)
        check_symbols(self.decoder, prev_output_tokens)
        return super().forward(src_tokens, src_lengths, prev_output_tokens, **kwargs)


@register_model_architecture(MODEL, MODEL)
def stack_transformer(args: Namespace) -> None:
    """fairseq's base transformer; without layer lists all layers are SDPA."""
    fill_in(args, dict.fromkeys(LAYER_LISTS.values()) | option_defaults())
    for side, name in LAYER_LISTS.items():
        set_depth(args, name, side)
    base_architecture(args)


register_presets(MODEL, stack_transformer)
