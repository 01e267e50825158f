"""fairseq's commands with options, data, checkpoints and lines that they cannot use."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tests.commands.running import Server
from tests.hostile.cases import Case, check, parametrize

NEW = "--save-dir new"
MT = f"fairseq-train {{mt_train}} {NEW}"
LM = f"fairseq-train {{lm_train}} {NEW}"
LSTM = (
    f"fairseq-train {{lm}} {{plugin}} --task language_modeling --arch stack_lstm_lm --optimizer adam --max-tokens 400 "
    f"--max-update 2 --sample-break-mode eos --tokens-per-sample 64 {NEW}"
)
GENERATE = "fairseq-generate {mt} {plugin} --task translation --batch-size 4 --max-len-b 5 --num-workers 0"
TRANSLATE = f"{GENERATE} --path {{mt_model}}"
INTERACTIVE = "fairseq-interactive {mt} {plugin} --task translation --path {mt_model} --max-len-b 5 -s de -t en"
EVAL_LM = "fairseq-eval-lm {lm} {plugin} --sample-break-mode eos --num-workers 0 --gen-subset test"
SCORE = f"{EVAL_LM} --path {{lm_model}}"
VALIDATE = "fairseq-validate {mt} {plugin} --task translation --num-workers 0"


def refused(group: str, command: str, cases: Iterable[tuple[str, str]], quick: int = 0) -> list[Case]:
    """Cases that add options to ``command``, each with what the error says; the first ``quick`` are quick."""
    return [
        Case(f"{group}: {flags or 'without'}", f"{command} {flags}", message, quick=index < quick)
        for index, (flags, message) in enumerate(cases)
    ]


def accepted(group: str, command: str, cases: Iterable[str], quick: int = 0) -> list[Case]:
    """Cases that add options to ``command`` with which it still works; the first ``quick`` are quick."""
    return [Case(f"{group}: {flags}", f"{command} {flags}", quick=index < quick) for index, flags in enumerate(cases)]


LAYER_LISTS = [
    *refused("encoder list", MT, [
        (f"--stack-encoder-layers={text}", "; for example '2xsdpa,nd-3-3-5,2xsdpa'")
        for text in ("spda", "''", "\uff53dpa", f"{'9' * 5000}xsdpa")
    ], quick=2),
    *refused("list that is too long", LM, [("--stack-layers 9999xsdpa,2xsup-3", "at most 10,000 layers, got 10,001")]),
    *refused("list that is too large", LM, [("--decoder-ffn-embed-dim 99999999999", "GiB in training")]),
    *refused("list that is too large", MT, [
        ("--stack-encoder-layers 99999999999xsdpa", "at most 9 digits"),
        ("--stack-encoder-layers nd-99999-9-9", "--stack-encoder-layers and the"),
    ], quick=1),
    *refused("depth beside a list", MT, [
        ("--encoder-layers 2", "--encoder-layers 2 and --stack-encoder-layers nd-2"),
        ("--decoder-layers 4", "do not agree; leave --decoder-layers out"),
    ], quick=1),
    *refused("depth beside a list", LM, [("--decoder-layers 6", "--decoder-layers 6 and --stack-layers nd-2-2-3,")]),
    *accepted("depth beside a list", MT, ["--decoder-layers 3 --encoder-layers 3"]),
]  # fmt: skip

PRESET = f"fairseq-train {{mt}} {{plugin}} --task translation --optimizer adam --max-tokens 400 --max-update 1 {NEW}"
OPTIONS = [
    *refused("preset", PRESET, [
        ("--arch stack_transformer_nd_huge", "invalid choice: 'stack_transformer_nd_huge'"),
        ("--arch stack_transformer_lm_nd_ptb", "this is the architecture of a language model: give --task"),
        ("--arch stack_transformer_nd_small --fp16", "--fp16 needs a GPU"),
        ("--arch stack_transformer_nd_small --bf16", "--bf16: fairseq uses bfloat16 on TPUs only"),
    ]),
    *refused("LSTM", LSTM, [("--stack stack", "--stack: stacks 'stack': expected 'sup-M'")], quick=1),
    *accepted("LSTM", LSTM, ["--store-ema --sample-break-mode none --tokens-per-sample 20 --num-workers 2"]),
    *refused("batches", PRESET.replace("--max-tokens 400", "--arch stack_transformer_nd_small"),
             [("", "the batch size is missing: give --max-tokens")], quick=1),
    *refused("language model", LM, [("--best-checkpoint-metric accuracy", "the validation has no such metric")]),
    *accepted("training of translation", MT, ["--num-workers 2", "--tensorboard-logdir new/board", "--store-ema"], 2),
    *accepted("training of a language model", LM, ["--num-workers 2 --compact-vocab", "--add-bos-token"]),
]  # fmt: skip

DATA = [
    *refused("MT data", f"fairseq-train {{plugin}} --task translation --arch stack_transformer --max-tokens 99 {NEW}", [
        ("missing", "missing does not exist: expected a folder that fairseq-preprocess has written"),
        ("missing -s de -t en", "dict.de.txt is missing: expected a folder that fairseq-preprocess has written"),
        (".", "the languages cannot be inferred from the file names"),
    ], quick=1),
    *refused("LM data", "fairseq-train {plugin} --task language_modeling --arch stack_transformer_lm --max-tokens 9", [
        ("missing", "dict.txt"),
    ]),
    Case("a folder of text as data", f"fairseq-train here {{plugin}} --task translation --arch stack_transformer "
         f"--max-tokens 99 -s de -t en {NEW}", "here/dict.de.txt is missing", files={"here/train.de": "a b c\n"}),
]  # fmt: skip

KINDS_OF_FILES: dict[str, tuple[str | bytes, str]] = {
    "empty": (b"", "it is empty"),
    "text": ("It was a dark and stormy night.\n", "it is a file of another kind"),
    "html": ("<!DOCTYPE html><html>404</html>", "it is a file of another kind"),
    "null": (b"\0" * 5000, "it is a file of another kind"),
    "gzip": (b"\x1f\x8b\x08" + b"x" * 500, "it is a file of another kind"),
    "cut": (b"PK\x03\x04" + b"x" * 5000, "it is truncated after 5,004 bytes"),
    "two bytes": (b"PK", "it is truncated after 2 bytes"),
    "pickle": (b"\x80\x04K\x01.", "torch cannot load it (RuntimeError)"),
    "program": (b"\x80\x04cposix\nsystem\n(S'true'\ntR.", "it holds more than tensors and plain values"),
}
READERS = {
    "generate": (GENERATE, "--path"),
    "eval-lm": (EVAL_LM, "--path"),
    "validate": (f"{VALIDATE} --max-tokens 400", "--path"),
    "train": (MT, "--restore-file"),
    "finetune": (MT, "--finetune-from-model"),
}
CHECKPOINTS = [
    Case(f"{reader}: {kind}", f"{command} {flag} x.pt", f"x.pt is not a fairseq checkpoint: {message}",
         files={"x.pt": content}, quick=reader == "generate" and kind in ("empty", "cut"))
    for reader, (command, flag) in READERS.items() for kind, (content, message) in KINDS_OF_FILES.items()
    if reader == "generate" or kind in ("cut", "program")
] + [
    *refused("generate", GENERATE, [
        ("--path .", ". is not a fairseq checkpoint: it is a folder"),
        ("--path missing.pt", "--path: missing.pt does not exist"),
        ("--path {mt_model} --gen-subset other", " has no split other"),
    ]),
    *refused("train", MT, [
        ("--restore-file missing.pt", "--restore-file: missing.pt does not exist: give another file, or"),
        ("--restore-file .", "--restore-file: . is a folder: give a file in it"),
        ("--finetune-from-model missing.pt", "--finetune-from-model missing.pt does not exist"),
        ("--valid-subset other", " has no split other"),
    ], quick=1),
]  # fmt: skip

GENERATION = [
    *refused("paper's search", TRANSLATE.replace("--task translation", "--task stack_translation"), [
        ("--beam-search length-normalized --beam 0", "(--beam): expected at least 1, got 0"),
        ("--beam-search length-normalized --lenpen 2", "combined with: --lenpen"),
    ]),
    *accepted("generate", TRANSLATE, [
        "--beam 300 --batch-size 1", "--score-reference",
        "--batch-size 1000", "--max-tokens 1000000", "--temperature 1e-3 --lenpen -1 --unkpen inf",
    ], quick=1),
    *refused("generate", TRANSLATE, [
        ("--print-step", "--retain-iter-history: the model does not translate in iter"),
        ("--constraints", "--constraints: only fairseq-interactive reads constraints"),
    ]),
    *refused("validate", VALIDATE, [("--path {mt_model}", "the batch size is missing: give --max-tokens")], 1),
    *refused("validate", "fairseq-validate {mt} {plugin} --path {mt_model} --max-tokens 400",
             [("", "the task is missing: give --task, such as")], quick=1),
]  # fmt: skip

LONG = "a " * 1100
INTERACTION = [
    Case("a long line", INTERACTIVE, "too long for the model: 1 of 1 sentences", stdin=f"a\n{LONG}\n", quick=True),
    Case("no lines", INTERACTIVE), Case("an empty line", INTERACTIVE, stdin="\n", prints="H-0\t"),
    Case("no line feed at the end", INTERACTIVE, stdin="a", prints="H-0\t"),
    Case("unknown words", INTERACTIVE, stdin="\U0001f600 ä </s>\n", prints="H-0\t"),
    Case("a reserved word", INTERACTIVE, "fairseq reserves the symbol <pad>", stdin="ä\nä <pad>\n"),
    Case("a NUL", INTERACTIVE, stdin="a\0b c\n", prints="H-0\t"),
]  # fmt: skip

SCORING = accepted("eval-lm", SCORE, ["--output-word-stats", "--softmax-batch 1"])


@parametrize([*LAYER_LISTS, *OPTIONS, *DATA, *CHECKPOINTS, *GENERATION, *INTERACTION, *SCORING])
def test_command(case: Case, server: Server, workspace: dict[str, str], folder: Path) -> None:
    check(case, server, workspace, folder)
