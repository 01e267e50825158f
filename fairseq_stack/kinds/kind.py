"""What a kind of layer is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from fairseq_stack.modules import StackAttention, StatefulAttention
from fairseq_stack.modules.stack_attention import PARAMETERS_OF_STACKS
from fairseq_stack.ops import Op


@dataclass(frozen=True)
class Size:
    """A number in the name of a layer.

    Attributes:
        letter: the capital letter that stands for it in the grammar of layer lists.
        meaning: what the number counts or measures.
    """

    letter: str
    meaning: str


WINDOW = Size("D", "steps that the stack remembers")
"""The number after ``@`` in the name of a layer."""

BESIDE = "+"
"""What joins attention and the stack beside it in the name of a layer."""


@dataclass(frozen=True, eq=False)
class Kind:
    """A kind of layer: everything that the rest of this package knows about it.

    What depends on its parameters is asked of the sublayer that ``build`` makes: how it is initialised, what it does
    with a sentence, and which arguments its op gets (:class:`~fairseq_stack.modules.StatefulAttention`).

    Attributes:
        name: its name in layer lists, in lower-case letters.
        title: its description in messages.
        sizes: the numbers that follow the name in a layer list, joined by ``-``.
        build: makes the sublayer from d_model, the sizes and ``options``. If ``recurrent``, it takes the keywords
            ``output`` and ``bias`` of :class:`~fairseq_stack.modules.StackAttention` as well, with which it makes the
            stack of a recurrent controller, and if ``limited_memory``, the keyword ``window``. None for attention
            without a state of constant size, which models build themselves.
        recurrent: whether a recurrent controller can drive it.
        options: which options of a model ``build`` takes: its keyword, and the option's name in the configuration.
        controller_options: the same, for the stack of a recurrent controller.
        controller_settings: what ``build`` takes for every stack of a recurrent controller.
        limited_memory: whether its stack can have limited memory of D steps: layer lists then take ``@D`` at the end.
        needs_tape: whether it reads the stack tape of a parse, which only syntactic language models have.
        op: the stack that it uses, which ``fairseq-stack doctor`` checks and the benchmark measures; or None.
        op_options: maps the sizes to the options of the op that depend on them.
        models: the names of the models that may contain it, or None for all.
        examples: sizes for tests and measurements.
    """

    name: str
    title: str
    sizes: tuple[Size, ...]
    build: Callable[..., StatefulAttention] | None = None
    recurrent: bool = True
    options: Mapping[str, str] = field(default_factory=dict)
    controller_options: Mapping[str, str] = field(default_factory=dict)
    controller_settings: Mapping[str, Any] = field(default_factory=dict)
    limited_memory: bool = False
    needs_tape: bool = False
    op: Op | None = None
    op_options: Callable[..., Mapping[str, Any]] = lambda *sizes: {}
    models: tuple[str, ...] | None = None
    examples: tuple[tuple[int, ...], ...] = ((),)

    @property
    def spelling(self) -> str:
        """How layer lists spell it, with letters for the sizes: ``nd-Q-S-M``."""
        return "-".join([self.name, *(size.letter for size in self.sizes)])


@dataclass(frozen=True)
class Layer:
    """The attention of one layer: a kind with its sizes.

    Attributes:
        kind: the kind.
        sizes: its sizes.
        window: D for limited memory of D steps, or None for unlimited memory.
        beside: the stack next to attention that models build themselves, or None: both read the layer's input, and
            the stack reading is added through a gate that begins closed.
    """

    kind: Kind
    sizes: tuple[int, ...] = ()
    window: int | None = None
    beside: Layer | None = None

    def __str__(self) -> str:
        spelling = "-".join([self.kind.name, *map(str, self.sizes)])
        if self.window is not None:
            spelling += f"@{self.window}"
        return spelling if self.beside is None else f"{spelling}{BESIDE}{self.beside}"

    def parts(self) -> tuple[Layer, ...]:
        """The layer, and the stack beside its attention."""
        return (self,) if self.beside is None else (self, self.beside)

    def build(self, model_size: int, cfg: Any) -> StatefulAttention:
        """Its sublayer, with the options of a model's configuration ``cfg``.

        Raises:
            ValueError: models build it themselves.
        """
        return self._build(model_size, cfg, self.kind.options)

    def build_stack(self, hidden_size: int, cfg: Any) -> StackAttention:
        """The stack of a recurrent controller, driven by its hidden state; otherwise as :meth:`build`."""
        settings = {"output": False, "bias": True, **self.kind.controller_settings}
        return cast(StackAttention, self._build(hidden_size, cfg, self.kind.controller_options, **settings))

    def _build(self, model_size: int, cfg: Any, options: Mapping[str, str], **settings: Any) -> StatefulAttention:
        if self.kind.build is None:
            raise ValueError(f"{self} is not stack attention")
        chosen = {keyword: getattr(cfg, name) for keyword, name in options.items()}
        if self.window is not None:
            chosen["window"] = self.window
        layer = self.kind.build(model_size, *self.sizes, **chosen, **settings)
        for parameter in layer.parameters() if isinstance(layer, StackAttention) else ():
            parameter.param_group = PARAMETERS_OF_STACKS  # type: ignore[attr-defined]
        return layer
