"""Language models of single sentences, which ptb.smk and syntax.smk train with the same commands, in the same folders."""

MIKOLOV = "mikolov"
LAYERS = {"tf": "5xsdpa", "sup": "2xsdpa,sup-127,2xsdpa", "nd": "2xsdpa,nd-3-3-10,2xsdpa", "pushdown": "5xpushdown"}


PUSHDOWN = [
    *("--task", "pushdown_language_modeling", "--criterion", "pushdown_cross_entropy"),
    *("--arch", "pushdown_transformer_lm", "--decoder-normalize-before"),
]


def sentence_training(kind, seed, epochs):
    """The options of a training run: all kinds have the same sizes and the same optimisation."""
    return [
        *(PUSHDOWN if kind == "pushdown" else ["--task", "language_modeling", "--arch", f"stack_transformer_lm_{kind}_ptb"]),
        *("--stack-layers", LAYERS[kind], "--decoder-embed-dim", 64, "--decoder-ffn-embed-dim", 256),
        *([] if kind == "pushdown" else ["--stack-init", "fairseq"]),
        *("--seed", seed, "--compact-vocab", "--compact-vocab-unk", "--sample-break-mode", "eos"),
        *("--tokens-per-sample", 512, "--max-tokens", 1024, "--optimizer", "adam", "--adam-betas", "(0.9, 0.98)"),
        *("--clip-norm", 5, "--lr", "4e-3", "--lr-scheduler", "inverse_sqrt", "--warmup-updates", 400),
        *("--max-epoch", epochs, "--no-epoch-checkpoints"),
    ]
