"""``fairseq-stack evaluate-classification CHECKPOINT --data DIR``: a language model that labels prompts."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairseq_stack.errors import UserError
from fairseq_stack.evaluation.classification import (
    ClassificationResult,
    LabelledPrompt,
    classification_scores,
    regression_scores,
)
from fairseq_stack.evaluation.results import method_of, sha_of
from fairseq_stack_preprocess.layout import DATA_BIN
from fairseq_stack_preprocess.progress import progress

from .checkpoint import add_checkpoint, add_device, load_checkpoint, model_of, on_device
from .evaluation import add_intervals, add_outputs, add_split, intervals_of, report, require_outputs

if TYPE_CHECKING:
    from fairseq_stack.evaluation.prompts import Prompts
    from fairseq_stack.hub.interface import Hub

SUMMARY = "score a language model that labels prompts"

DESCRIPTION = """\
Score a model of --task prompt_classification on a split of the corpus that
fairseq-stack prepare classification wrote to DIR. The model predicts the label with
the highest probability after the prompt. The table shows accuracy, F1 and Matthews'
correlation or, for a regression, the correlations of Pearson and Spearman, all with
bootstrap intervals over prompts. A model that reads tapes needs the parses in
SPLIT.attach, as in training."""

EXAMPLE = """\
example:
  fairseq-stack evaluate-classification checkpoints/rte --data data/rte \\
      --split valid --json rte.json --csv prompts.csv"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_checkpoint(parser, corpus="the corpus of fairseq-stack prepare classification, or its data-bin")
    add_split(parser, what="the prompts to score: text/NAME.txt")
    parser.add_argument(
        "--attachments",
        metavar="DIR",
        type=Path,
        help="the folder with SPLIT.attach (default: --attachments of its training, or text/ of the corpus)",
    )
    add_intervals(parser)
    add_outputs(parser, row="prompt")
    add_device(parser)


def run(args: argparse.Namespace) -> int:
    require_outputs(args)
    from fairseq_stack.evaluation.prompts import read_prompts

    corpus = read_prompts(args.data)
    texts, labels = corpus.read(args.split)
    hub = on_device(load_checkpoint(args, corpus.folder / DATA_BIN), args)
    prompts, attachments = _predicted(hub, corpus, args, texts, labels)
    intervals = intervals_of(args)
    result = ClassificationResult(
        signature=method_of(
            task=corpus.task,
            split=args.split,
            prompts=len(prompts),
            sha=sha_of([texts, labels]),
            **({} if attachments is None else {"parses": sha_of(attachments)}),
            **intervals.options,
        ),
        task=corpus.task,
        split=args.split,
        model=model_of(hub, args.checkpoint),
        prompts=len(prompts),
        classification=classification_scores(prompts, list(corpus.labels), intervals) if corpus.labels else None,
        regression=None if corpus.labels else regression_scores(prompts, intervals),
    )
    return report(args, result, [prompt.row() for prompt in prompts])


def _predicted(
    hub: Hub, corpus: Prompts, args: argparse.Namespace, texts: list[tuple[str, ...]], labels: list[str]
) -> tuple[list[LabelledPrompt], list[list[int]] | None]:
    """The prompts with what the model predicts, and their attachments, if it reads tapes."""
    import torch

    from fairseq_stack.criterions.classification_cross_entropy import label_log_probabilities, predicted_values
    from fairseq_stack.tasks.prompt_classification import PromptClassificationTask

    task = hub.task
    if not isinstance(task, PromptClassificationTask) or len(hub.models) != 1:
        raise UserError(f"{args.checkpoint}: expected one model that was trained with --task prompt_classification")
    if args.attachments is not None:
        if not task.has_parses:
            raise UserError("--attachments: the model reads no parses; leave it out")
        task.args.attachments = str(args.attachments)
    task.load_dataset(args.split)
    dataset: Any = task.datasets[args.split]
    longest = int(max(dataset.sizes))
    if longest > hub.max_positions:
        raise UserError(
            f"{args.split}: a prompt has {longest:,} tokens with its end; the model accepts {hub.max_positions:,}"
        )
    predict = predicted_values if corpus.labels is None else label_log_probabilities
    predicted: dict[int, Any] = {}
    with torch.no_grad():
        batches = hub.batches(dataset, dataset.sizes.tolist(), dataset.collater)
        for batch in progress(batches, label=args.split, total=None, unit="batch"):
            values = predict(hub.models[0], batch)
            if values.isnan().any():
                raise UserError(f"{args.checkpoint}: the model's outputs are not numbers; did its training diverge?")
            predicted |= zip(batch["id"].tolist(), values.tolist(), strict=True)
    attachments = [dataset[number]["attachments"].tolist() for number in range(len(texts))] if task.has_parses else None
    columns = zip(texts, labels, (predicted[number] for number in range(len(texts))), strict=True)
    if corpus.labels is None:
        return [LabelledPrompt(text, float(label), value, {}) for text, label, value in columns], attachments
    prompts = []
    for text, label, scores in columns:
        named = dict(zip(corpus.labels, scores, strict=True))
        prompts.append(LabelledPrompt(text, label, max(named, key=named.__getitem__), named))
    return prompts, attachments
