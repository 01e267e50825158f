"""``pushdown_transformer_lm``: the syntactic language model of Murty et al. (2023)."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from functools import partial
from typing import Any

from fairseq.data import Dictionary
from fairseq.models import FairseqLanguageModel, register_model
from fairseq.tasks import FairseqTask
from torch import Tensor, nn

from fairseq_stack.compat.models import is_from_checkpoint
from fairseq_stack.errors import UserError
from fairseq_stack.kinds import Layer
from fairseq_stack.models.gpt2 import gpt2_of
from fairseq_stack.models.presets import register_presets
from fairseq_stack.models.pretrained import Pretrained
from fairseq_stack.models.pushdown.from_gpt2 import begin_as_gpt2
from fairseq_stack.models.pushdown.pushdown_decoder import PushdownDecoder
from fairseq_stack.models.pushdown.pushdown_options import MODEL, PushdownLanguageModelConfig, settle
from fairseq_stack.models.shared_options import plain_namespace, require_one_dictionary
from fairseq_stack.models.vocabulary import CompactOutput, CompactVocabulary, check_symbols, compact_embedding
from fairseq_stack.modules import PushdownAttention, PushdownAttentionWithStack, PushdownTransformer, attachment_head
from fairseq_stack.modules.pushdown_transformer import Attention
from fairseq_stack.networks.vocabulary import table

_ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    "gelu_accurate": partial(nn.GELU, "tanh"),
}


@register_model(MODEL, dataclass=PushdownLanguageModelConfig)
class PushdownLanguageModel(Pretrained, FairseqLanguageModel):
    """A causal Transformer that predicts words and what they attach to; input and output share embeddings."""

    @classmethod
    def build_model(cls, args: Any, task: FairseqTask) -> PushdownLanguageModel:
        """Build the model that the options describe.

        Raises:
            UserError: for a wrong layer list, wrong sizes, a task whose batches have no tapes, or a folder of GPT-2
                that cannot be used.
        """
        options = plain_namespace(args)
        if not is_from_checkpoint() and not getattr(task, "has_tapes", False):
            raise UserError(
                f"{MODEL} learns from parses: expected --task pushdown_language_modeling, got {type(task).__name__}"
            )
        require_one_dictionary(MODEL, task)
        dictionary, gpt2 = task.target_dictionary, gpt2_of(options)
        decided = {} if gpt2 is None else gpt2.settle(options, pushdown_parametrization="figures")
        layers = settle(options)
        model = cls(PushdownDecoder(options, dictionary, _network(options, dictionary, layers)))
        model.decided_options = decided
        if gpt2 is not None:
            begin_as_gpt2(model.decoder, gpt2)
        return model

    def forward(self, src_tokens: Tensor, **kwargs: Any) -> tuple[Tensor, dict[str, Any]]:
        """As :meth:`PushdownDecoder.forward`; symbols that a compact vocabulary excludes raise UserError."""
        check_symbols(self.decoder, src_tokens)
        return super().forward(src_tokens, **kwargs)


def _network(args: Namespace, dictionary: Dictionary, layers: tuple[Layer, ...]) -> PushdownTransformer:
    embedding, output = _tables(args, dictionary)
    head = attachment_head(
        args.decoder_embed_dim,
        None if args.no_depths_in_head else args.pushdown_depths,
        args.pushdown_parametrization,
        size=args.attachment_size,
        depth_size=args.attachment_depth_size,
        dropout=args.dropout,
    )
    return PushdownTransformer(
        embedding,
        output,
        [_attention(args, layer) for layer in layers],
        head,
        root=dictionary.eos(),
        end=dictionary.eos(),
        feedforward_size=args.decoder_ffn_embed_dim,
        activation=_ACTIVATIONS[str(args.activation_fn)](),
        max_positions=args.max_target_positions if args.decoder_learned_pos else None,
        norm_first=args.decoder_normalize_before,
        scale_embeddings=not args.no_scale_embedding,
        dropout=args.dropout,
    )


def _attention(args: Namespace, layer: Layer) -> Attention:
    if layer.kind.build is not None:
        return layer.build(args.decoder_embed_dim, args)
    depths = args.pushdown_depths if layer.kind.needs_tape else None
    arguments = (args.decoder_attention_heads, depths, args.pushdown_parametrization)
    if layer.beside is None:
        attention = PushdownAttention(args.decoder_embed_dim, *arguments, dropout=args.attention_dropout)
    else:
        stack = layer.beside.build(args.decoder_embed_dim, args)
        attention = PushdownAttentionWithStack(stack, *arguments, dropout=args.attention_dropout)
    if getattr(args, "zero_depths", False) and attention.depths is not None:
        nn.init.zeros_(attention.depths.weight)
    return attention


def _tables(args: Namespace, dictionary: Dictionary) -> tuple[nn.Module, nn.Module]:
    """The embeddings, and the output layer with the same table."""
    size = args.decoder_embed_dim
    if args.compact_vocab:
        vocabulary = CompactVocabulary(dictionary, args.compact_vocab_unk, shared=True)
        embedding = compact_embedding(vocabulary, size).at_beginning()
        return embedding, CompactOutput(vocabulary, embedding.weight, args.output_bias)
    embeddings = table(len(dictionary), size, dictionary.pad())
    output = nn.Linear(size, len(dictionary), bias=args.output_bias)
    output.weight = embeddings.weight
    if args.output_bias:
        nn.init.zeros_(output.bias)
    return embeddings, output


register_presets(MODEL)
