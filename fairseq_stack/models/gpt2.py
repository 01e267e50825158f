"""GPT-2's weights, from a folder as Hugging Face transformers writes it, for models that begin as GPT-2.

Nothing is downloaded. ``config.json`` decides the sizes and everything else that GPT-2's logits depend on, and
``model.safetensors`` has the weights. Rows of the embeddings are found by the names of the pieces, in
``tokenizer.json`` or ``vocab.json``, so a dictionary may have any of GPT-2's pieces in any order.
"""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from fairseq_stack.compat.models import is_from_checkpoint
from fairseq_stack.errors import UserError, missing_package
from fairseq_stack.files import read_text
from fairseq_stack.models.shared_options import parse_option
from fairseq_stack.models.vocabulary import CompactEmbedding
from fairseq_stack_preprocess.layout import TOKENIZER_NAME

CONFIG, WEIGHTS, VOCABULARY = "config.json", "model.safetensors", "vocab.json"
END = "<|endoftext|>"
"""What GPT-2 has before and after a text, where fairseq has ``</s>``."""

Part = tuple[str, int | None]
"""The name of a module of a block, and which third of its outputs is meant; None for all of them."""

_SETTINGS: dict[str, tuple[Any, ...]] = {
    "activation_function": ("gelu_new", "gelu_pytorch_tanh"),
    "layer_norm_epsilon": (1e-5,),
    "scale_attn_weights": (True,),
    "scale_attn_by_inverse_layer_idx": (False,),
    "add_cross_attention": (False,),
    "tie_word_embeddings": (True,),
    "quantization_config": (None,),
}
"""The values of ``config.json`` that models here can compute, the default first."""


class GPT2:
    """A folder with GPT-2's weights.

    Args:
        folder: the folder.

    Attributes:
        weights: by the names that GPT-2 gives them, as linear layers of torch have them.

    Raises:
        UserError: safetensors is not installed; a file is missing or cannot be read; the model is another one than
            GPT-2; or a tensor is missing or does not fit ``config.json``.
    """

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)
        config = self._read_json(CONFIG)
        self._require(config.get("model_type"), ("gpt2",), "model_type")
        for key, expected in _SETTINGS.items():
            self._require(config.get(key, expected[0]), expected, key)
        sizes = ("n_embd", "n_head", "n_layer", "n_positions", "vocab_size")
        for key in sizes:
            if not isinstance(config.get(key), int):
                raise UserError(f"{self.folder / CONFIG}: {key}: expected a whole number, got {config.get(key)!r}")
        self.size, self.num_heads, self.num_layers, self.num_positions, self.num_rows = (config[key] for key in sizes)
        self.feedforward_size = config.get("n_inner") or 4 * self.size
        # Read here, so that weights of other sizes are refused before a model is built.
        self.weights = self._read_weights()

    def settle(self, options: Namespace, **others: Any) -> dict[str, Any]:
        """Set the options of a model that ``config.json`` decides, and return them.

        Args:
            options: of the model.
            others: further ones, which only this model has.

        Raises:
            UserError: the layer list is wrong or has another length, samples are longer than GPT-2 can read, or <unk>
                can occur.
        """
        config, layers = self.folder / CONFIG, parse_option(options, "stack_layers")
        if len(layers) != self.num_layers:
            raise UserError(
                f"--stack-layers: expected {self.num_layers} layers, the n_layer of {config}, got {len(layers)}"
            )
        if options.compact_vocab_unk:
            raise UserError("--compact-vocab-unk and --init-from-gpt2 cannot be combined: GPT-2 has no <unk>")
        if options.tokens_per_sample > self.num_positions:
            raise UserError(
                f"--tokens-per-sample: expected at most {self.num_positions}, the n_positions of {config}, got "
                f"{options.tokens_per_sample}"
            )
        decided = {
            "decoder_embed_dim": self.size,
            "decoder_ffn_embed_dim": self.feedforward_size,
            "decoder_attention_heads": self.num_heads,
            "decoder_normalize_before": True,
            "decoder_learned_pos": True,
            "activation_fn": "gelu_accurate",
            "no_scale_embedding": True,
            "output_bias": False,
            "compact_vocab": True,
            "max_target_positions": self.num_positions,
            **others,
        }
        vars(options).update(decided)
        return decided

    def _read_weights(self) -> dict[str, Tensor]:
        path = self.folder / WEIGHTS
        try:
            from safetensors import SafetensorError
            from safetensors.torch import load_file
        except ImportError:
            raise missing_package("safetensors") from None
        try:
            read = load_file(path)
        except FileNotFoundError:
            raise UserError(f"{path}: no such file") from None
        except (SafetensorError, OSError) as error:
            raise UserError(f"{path} is not a file of safetensors: {error}") from None
        named = {name.removeprefix("transformer."): tensor for name, tensor in read.items()}
        for name, shape in self._shapes():
            if name not in named:
                raise UserError(f"{path}: expected a tensor {name}, of shape {shape}")
            if named[name].shape != shape:
                raise UserError(f"{path}: {name}: expected the shape {shape}, got {tuple(named[name].shape)}")
        # transformers would then use both, whatever tie_word_embeddings says.
        if not torch.equal(named.get("lm_head.weight", named["wte.weight"]), named["wte.weight"]):
            raise UserError(f"{path}: lm_head.weight: expected the values of wte.weight, with which GPT-2 shares it")
        # GPT-2's linear layers are convolutions, whose weights are transposed.
        return {
            name: tensor.t() if tensor.dim() == 2 and name.startswith("h.") else tensor
            for name, tensor in ((name, named[name]) for name, _ in self._shapes())
        }

    def copy_embeddings(self, embedding: CompactEmbedding, symbols: Sequence[str]) -> None:
        """Copy the rows of the symbols; both meanings of ``</s>`` get that of ``<|endoftext|>``.

        Args:
            embedding: the embeddings, of a compact vocabulary that input and output share.
            symbols: of the dictionary, in its order.

        Raises:
            UserError: GPT-2 lacks a symbol.
        """
        path, rows = self._vocabulary()
        wanted = [*(symbols[index] for index in embedding.vocabulary.symbols), END, END]
        for symbol in wanted:
            if rows.get(symbol) not in range(self.num_rows):
                raise UserError(
                    f"{path} lacks {symbol!r}, a symbol of the dictionary: expected the pieces of GPT-2, as "
                    "fairseq-stack prepare treebank --gpt2 cuts them"
                )
        embedding.weight.data[: len(wanted)] = self.weights["wte.weight"][[rows[symbol] for symbol in wanted]]

    @torch.no_grad()
    def copy_layers(self, model: nn.Module, norm: str, layers: Sequence[Mapping[str, Part]]) -> None:
        """Copy the weights and biases of layers, and of the normalisation after them.

        Args:
            model: the model, which has its layers in ``layers``.
            norm: the name of the normalisation.
            layers: for each layer, by the names of modules in it, the modules of a block of GPT-2.
        """
        parts: dict[str, Part] = {norm: ("ln_f", None)}
        for block, modules in enumerate(layers):
            parts |= {f"layers.{block}.{ours}": (f"h.{block}.{name}", third) for ours, (name, third) in modules.items()}
        for module, (name, third) in parts.items():
            for kind in ("weight", "bias"):
                source = self.weights[f"{name}.{kind}"]
                model.get_parameter(f"{module}.{kind}").copy_(source if third is None else source.chunk(3)[third])

    def _vocabulary(self) -> tuple[Path, dict[str, int]]:
        """The row of each piece, and the file that says so."""
        path = self.folder / VOCABULARY
        if path.is_file() and not (self.folder / TOKENIZER_NAME).exists():
            return path, self._read_json(VOCABULARY)
        tokenizer, path = self._read_json(TOKENIZER_NAME), self.folder / TOKENIZER_NAME
        try:
            added = {token["content"]: token["id"] for token in tokenizer.get("added_tokens", [])}
            return path, {**tokenizer["model"]["vocab"], **added}
        except (KeyError, TypeError) as error:
            raise UserError(f"{path}: expected GPT-2's pieces, of the type BPE, in model.vocab ({error})") from None

    def _shapes(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        size, hidden = self.size, self.feedforward_size
        of_block = {"ln_1": (), "ln_2": (), "attn.c_attn": (size, 3 * size), "attn.c_proj": (size, size),
                    "mlp.c_fc": (size, hidden), "mlp.c_proj": (hidden, size)}  # fmt: skip
        yield "wte.weight", (self.num_rows, size)
        yield "wpe.weight", (self.num_positions, size)
        modules = {f"h.{block}.{name}": shape for block in range(self.num_layers) for name, shape in of_block.items()}
        for name, shape in {**modules, "ln_f": ()}.items():
            yield f"{name}.weight", shape or (size,)
            yield f"{name}.bias", (shape or (size,))[-1:]

    def _read_json(self, name: str) -> dict[str, Any]:
        path = self.folder / name
        try:
            content: dict[str, Any] = json.loads(read_text(path))
        except FileNotFoundError:
            raise UserError(f"--init-from-gpt2 {self.folder}: expected a folder with the file {name}") from None
        except (OSError, ValueError) as error:
            raise UserError(f"{path}: {error}") from None
        if not isinstance(content, dict):
            raise UserError(f"{path}: expected an object, got {type(content).__name__}")
        return content

    def _require(self, got: Any, expected: tuple[Any, ...], key: str) -> None:
        if got not in expected:
            choices = " or ".join(map(json.dumps, expected))
            raise UserError(f"{self.folder / CONFIG}: {key}: expected {choices}, got {json.dumps(got)}")


def gpt2_of(options: Namespace) -> GPT2 | None:
    """The GPT-2 that a new model begins as; None without one, and for a model from a checkpoint, which has its weights.

    Raises:
        UserError: see :class:`GPT2`.
    """
    if is_from_checkpoint() or options.init_from_gpt2 is None:
        return None
    return GPT2(options.init_from_gpt2)
