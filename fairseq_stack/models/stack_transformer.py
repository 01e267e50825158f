"""``stack_transformer``: translation with stack attention in chosen layers of the encoder and the decoder."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import register_model, register_model_architecture
from fairseq.models.transformer import TransformerDecoderBase, TransformerEncoderBase, TransformerModel
from fairseq.models.transformer.transformer_legacy import base_architecture
from fairseq.tasks import FairseqTask
from fairseq.tasks.language_modeling import LanguageModelingTask
from omegaconf import OmegaConf
from torch import Tensor, nn

from fairseq_stack.layer_list import LayerKind, ScaledDotProduct, parse_layer_list
from fairseq_stack.models.checkpoints import FINGERPRINT, CheckedLoading
from fairseq_stack.models.config import StackOptions
from fairseq_stack.models.initialization import initialize_as_in_paper, initialize_output_layer
from fairseq_stack.models.layers import build_decoder_layer, build_encoder_layer
from fairseq_stack.models.presets import TRANSLATION_PRESETS, Settings
from fairseq_stack.models.self_attention import IncrementalState
from fairseq_stack.models.vocabulary import (
    CompactEmbedding,
    CompactOutput,
    CompactVocabulary,
    End,
    fingerprint,
    new_table,
)
from fairseq_stack.modules import InterleavedSinusoidalPositions


class StackTransformerEncoder(TransformerEncoderBase):
    """fairseq's transformer encoder with the self-attention that ``cfg.stack_encoder_layers`` lists."""

    def __init__(self, cfg: Any, dictionary: Dictionary, embed_tokens: nn.Module, return_fc: bool = False) -> None:
        self._kinds = _kinds_to_build(cfg.stack_encoder_layers, cfg.encoder)
        super().__init__(cfg, dictionary, embed_tokens, return_fc=return_fc)
        _set_positions(self, cfg, cfg.encoder.embed_dim, cfg.max_source_positions)
        self.register_buffer(FINGERPRINT, torch.tensor(fingerprint(dictionary)))

    def build_encoder_layer(self, cfg: Any) -> nn.Module:
        return build_encoder_layer(cfg, next(self._kinds), self.return_fc)


class StackTransformerDecoder(TransformerDecoderBase):
    """fairseq's transformer decoder with the self-attention that ``cfg.stack_decoder_layers`` lists.

    It is the decoder of translation models, and with ``no_encoder_attn`` a language model's.
    """

    def __init__(
        self,
        cfg: Any,
        dictionary: Dictionary,
        embed_tokens: nn.Module,
        no_encoder_attn: bool = False,
        output_projection: nn.Module | None = None,
    ) -> None:
        self._kinds = _kinds_to_build(cfg.stack_decoder_layers, cfg.decoder)
        if isinstance(embed_tokens, CompactEmbedding):
            embed_tokens = embed_tokens.at_beginning()
        super().__init__(cfg, dictionary, embed_tokens, no_encoder_attn, output_projection)
        _set_positions(self, cfg, cfg.decoder.embed_dim, cfg.max_target_positions)
        self.register_buffer(FINGERPRINT, torch.tensor(fingerprint(dictionary)))

    def build_decoder_layer(self, cfg: Any, no_encoder_attn: bool = False) -> nn.Module:
        return build_decoder_layer(cfg, next(self._kinds), no_encoder_attn)

    def build_output_projection(self, cfg: Any, dictionary: Dictionary, embed_tokens: nn.Module) -> None:
        if isinstance(embed_tokens, CompactEmbedding):
            vocabulary = embed_tokens.vocabulary
            shared = self.share_input_output_embed
            weight = embed_tokens.weight if shared else new_table(vocabulary.num_output_rows(), self.output_embed_dim)
            self.output_projection = CompactOutput(vocabulary, weight, cfg.output_bias)
            return
        super().build_output_projection(cfg, dictionary, embed_tokens)
        if cfg.output_bias:
            self.output_projection.bias = nn.Parameter(torch.zeros(len(dictionary)))

    def extract_features(
        self,
        prev_output_tokens: Tensor,
        encoder_out: dict[str, list[Tensor]] | None = None,
        incremental_state: IncrementalState | None = None,
        full_context_alignment: bool = False,
        alignment_layer: int | None = None,
        alignment_heads: int | None = None,
    ) -> tuple[Tensor, dict[str, Any]]:
        """As fairseq's.

        Raises:
            ValueError: if, decoding incrementally, ``prev_output_tokens`` is not one token longer than before: the
                base class would silently skip the tokens between.
        """
        if incremental_state is not None:
            self._count_step(incremental_state, prev_output_tokens.size(1))
        return super().extract_features(
            prev_output_tokens,
            encoder_out,
            incremental_state,
            full_context_alignment,
            alignment_layer,
            alignment_heads,
        )

    def _count_step(self, incremental_state: IncrementalState, num_tokens: int) -> None:
        saved = self.get_incremental_state(incremental_state, "length")
        num_before = 0 if saved is None else saved["length"]
        if num_tokens != num_before + 1:
            raise ValueError(
                f"incremental decoding takes one token a step: expected {num_before + 1} previous output tokens, "
                f"got {num_tokens}"
            )
        self.set_incremental_state(incremental_state, "length", {"length": num_tokens})


@register_model("stack_transformer")
class StackTransformer(CheckedLoading, TransformerModel):
    """A transformer for translation whose encoder and decoder layers are given by layer lists."""

    @classmethod
    def add_args(cls, parser: ArgumentParser) -> None:
        """Add fairseq's transformer options, the layer lists and the options of all stack transformers."""
        super().add_args(parser)
        for side in ("encoder", "decoder"):
            parser.add_argument(
                f"--stack-{side}-layers",
                metavar="LIST",
                help=f"attention of each {side} layer, e.g. 2xsdpa,nd-3-3-5,2xsdpa; it sets the depth too",
            )
        gen_parser_from_dataclass(parser, StackOptions(), delete_default=True, with_prefix="")

    @classmethod
    def build_model(cls, args: Any, task: FairseqTask) -> StackTransformer:
        """Build the model that fairseq's and our options describe.

        Raises:
            ValueError: for a wrong layer list, options that do not go together, or a task of language modelling.
        """
        if isinstance(task, LanguageModelingTask):
            raise ValueError(f"stack_transformer translates: expected --task translation, got {type(task).__name__}")
        args = plain_namespace(args)
        stack_transformer(args)
        for side in ("encoder", "decoder"):
            kept = getattr(args, f"{side}_layers_to_keep", None)
            if isinstance(kept, list | tuple):  # the command line gives a list, fairseq goes on to split a string
                setattr(args, f"{side}_layers_to_keep", ",".join(map(str, kept)))
            layers = getattr(args, f"stack_{side}_layers")
            if layers is not None:
                setattr(args, f"{side}_layers", len(parse_option(f"--stack-{side}-layers", layers)))
        check_options(args)
        model = super().build_model(args, task)
        initialize(model, args)
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
            # The decoder may share its table with the output layer; that of the encoder is shared with nothing.
            vocabulary = CompactVocabulary(src_dict, keep_unk=True, shared=False)
            embed_tokens = compact_embedding(vocabulary, args.encoder.embed_dim)
        return StackTransformerEncoder(args, src_dict, embed_tokens)

    @classmethod
    def build_decoder(cls, args: Any, tgt_dict: Dictionary, embed_tokens: nn.Module) -> StackTransformerDecoder:
        return StackTransformerDecoder(args, tgt_dict, embed_tokens, no_encoder_attn=args.no_cross_attention)

    def forward(
        self, src_tokens: Tensor, src_lengths: Tensor, prev_output_tokens: Tensor, **kwargs: Any
    ) -> tuple[Tensor, dict[str, Any]]:
        """As fairseq's; symbols that a compact vocabulary takes as impossible raise ValueError."""
        check_symbols(self.encoder, src_tokens)
        check_symbols(self.decoder, prev_output_tokens)
        return super().forward(src_tokens, src_lengths, prev_output_tokens, **kwargs)


@register_model_architecture("stack_transformer", "stack_transformer")
def stack_transformer(args: Namespace) -> None:
    """fairseq's base transformer; without layer lists all layers are SDPA."""
    fill_in(args, {"stack_encoder_layers": None, "stack_decoder_layers": None, **option_defaults()})
    base_architecture(args)


def _preset(settings: Settings, args: Namespace) -> None:
    fill_in(args, settings)
    stack_transformer(args)


for _name, _settings in TRANSLATION_PRESETS.items():
    register_model_architecture("stack_transformer", _name)(partial(_preset, _settings))


def plain_namespace(args: Any) -> Namespace:
    """A namespace of the options, whichever form fairseq holds them in: in others our own options get lost."""
    if OmegaConf.is_config(args):
        return Namespace(**OmegaConf.to_container(args, resolve=True))
    return args


def fill_in(args: Any, settings: Settings) -> None:
    """Set the options that the user has not set."""
    for name, value in settings.items():
        setattr(args, name, getattr(args, name, value))


def option_defaults() -> Settings:
    """The defaults of the options that all stack transformers share."""
    return {name: field.default for name, field in StackOptions.__dataclass_fields__.items() if name != "_name"}


def parse_option(flag: str, layers: str) -> tuple[LayerKind, ...]:
    """Parse a layer list given by a flag; errors name the flag."""
    try:
        return parse_layer_list(layers)
    except ValueError as error:
        raise ValueError(f"{flag}: {error}") from None


def check_options(args: Namespace) -> None:
    """Raise ValueError if options do not go together."""
    if args.output_bias and args.adaptive_softmax_cutoff:
        raise ValueError("--output-bias and --adaptive-softmax-cutoff cannot be combined")
    if args.quant_noise_pq:
        raise ValueError("--quant-noise-pq: stack attention has no quantization noise")
    if args.stack_positions == "interleaved":
        for name in ("encoder_learned_pos", "decoder_learned_pos"):
            if getattr(args, name, None):
                raise ValueError(f"--stack-positions interleaved and --{name.replace('_', '-')} cannot be combined")
    if not args.compact_vocab:
        if args.compact_vocab_unk:
            raise ValueError("--compact-vocab-unk needs --compact-vocab")
        return
    for name in ("adaptive_softmax_cutoff", "merge_src_tgt_embed", "base_layers", "encoder_embed_path",
                 "decoder_embed_path", "adaptive_input"):  # fmt: skip
        if getattr(args, name, None):
            raise ValueError(f"--compact-vocab and --{name.replace('_', '-')} cannot be combined")


def compact_embedding(vocabulary: CompactVocabulary, embed_dim: int) -> CompactEmbedding:
    """New embeddings for the input of an encoder; a decoder takes them ``at_beginning()``."""
    num_rows = vocabulary.num_input_rows()
    weight = new_table(num_rows, embed_dim, padding_row=num_rows - 1 if vocabulary.shared else None)
    return CompactEmbedding(vocabulary, weight, End.EOS)


def initialize(model: Any, args: Namespace) -> None:
    """Initialise the model anew if ``--stack-init paper`` asks for it."""
    if args.stack_init == "paper":
        initialize_as_in_paper(model, args.stack_init_scale)
        if not args.share_decoder_input_output_embed:
            initialize_output_layer(model.decoder.output_projection)


def check_symbols(part: Any, tokens: Tensor) -> None:
    """Raise ValueError if tokens have symbols that the compact vocabulary of an encoder or decoder lacks."""
    embed_tokens = getattr(part, "embed_tokens", None)
    if isinstance(embed_tokens, CompactEmbedding):
        embed_tokens.check(tokens, part.dictionary)


def _kinds_to_build(layers: str | None, cfg: Any) -> Iterator[LayerKind]:
    if layers is None:
        return iter([ScaledDotProduct()] * cfg.layers)
    kinds = parse_layer_list(layers)
    if cfg.layers_to_keep:
        kept = sorted(int(index) for index in str(cfg.layers_to_keep).split(","))
        if kept[-1] >= len(kinds):
            raise ValueError(f"layers to keep: expected numbers below {len(kinds)} for {layers!r}, got {kept[-1]}")
        kinds = tuple(kinds[index] for index in kept)
    return iter(kinds)


def _set_positions(part: Any, cfg: Any, embed_dim: int, max_positions: int) -> None:
    if cfg.stack_positions == "interleaved" and not cfg.no_token_positional_embeddings:
        part.embed_positions = InterleavedSinusoidalPositions(embed_dim, part.padding_idx, max_positions)
