"""The demo: three models of about the same size on two generated corpora of nested sequences, tables and pictures.

The models are tf (no stack), sup and nd (stack attention in the middle layer). bash scripts/demo.sh runs this workflow.
--config init=paper and seed=2 train with another initialisation and seed, each in a --directory of its own.
"""

import shlex
from pathlib import Path


configfile: str(Path(workflow.basedir) / "demo.yaml")


SIZE = config["sizes"][config["size"]]
MIDDLE = {
    "nested-translation": {"tf": "sdpa", "sup": "sup-64", "nd": "nd-3-3-5"},
    "dyck": {"tf": "sdpa", "sup": "sup-32", "nd": "nd-2-3-5"},
}
PREPARE = {"nested-translation": ["nested-translation"], "dyck": ["cfl", "--task", "dyck"]}
CORPORA = {corpus: [*PREPARE[corpus], *SIZE[corpus]["corpus"].split()] for corpus in MIDDLE}
GENERATION = ["--task", "translation", "--beam", 4, "--max-len-a", 1.2, "--max-len-b", 5, "--batch-size", 100, "--cpu"]
REPORT = shlex.join(["python", str(Path(workflow.basedir) / "demo_report.py")])
EVALUATION, SAMPLES = ["--cpu"], SIZE["dyck"]["samples"]


def training(corpus, kind):
    """The arguments of fairseq-train. It validates and saves at the same updates, not at the end of epochs."""
    updates, interval = SIZE[corpus]["updates"], SIZE[corpus]["interval"]
    middle = MIDDLE[corpus][kind]
    if corpus == "nested-translation":
        sizes = ("embed-dim", 64), ("ffn-embed-dim", 256), ("attention-heads", 4)
        model = [
            *("--task", "translation", "--arch", f"stack_transformer_{kind}_small"),
            *(option for side in ("encoder", "decoder") for option in (f"--stack-{side}-layers", f"sdpa,{middle},sdpa")),
            *(word for side in ("encoder", "decoder") for name, size in sizes for word in (f"--{side}-{name}", size)),
            *("--max-tokens", 1024, "--lr", "4e-3"),
        ]
    else:
        model = [
            *("--task", "stack_language_modeling", "--arch", f"stack_transformer_lm_{kind}_cfl", "--compact-vocab"),
            *("--stack-layers", f"sdpa,{middle},sdpa"),
            *("--dropout", 0, "--attention-dropout", 0, "--activation-dropout", 0),
            *("--sample-break-mode", "eos", "--tokens-per-sample", 512),
            *("--batch-size", 50, "--sentence-avg", "--lr", "1e-2"),
        ]
    return [
        *(*model, "--stack-init", config["init"]),
        *("--cpu", "--seed", config["seed"], "--optimizer", "adam", "--adam-betas", "(0.9, 0.98)", "--clip-norm", 5),
        *("--lr-scheduler", "polynomial_decay", "--warmup-updates", 100, "--total-num-update", updates),
        *("--max-update", updates, "--validate-interval-updates", interval, "--save-interval-updates", interval),
        *("--validate-interval", 1000000, "--save-interval", 1000000),
        *("--keep-interval-updates", 1, "--no-epoch-checkpoints"),
    ]


TRAINING = {f"{corpus}/{kind}": training(corpus, kind) for corpus, kinds in MIDDLE.items() for kind in kinds}


rule report:
    input:
        expand("nested-translation/{kind}/generate-test.txt", kind=MIDDLE["nested-translation"]),
        expand("dyck/{kind}/test.json", kind=MIDDLE["dyck"]),
    output:
        "table.md",
        "demo.png",
        "demo-stack.png",
    log:
        "report.out",
    message:
        "the table and the pictures"
    shell:
        "{REPORT} . > {log} 2>&1"


include: "common.smk"
include: "evaluate_cfl.smk"
