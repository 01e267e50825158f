"""Language modelling of the Penn Treebank text of Mikolov as one stream, with LSTMs that have stacks.

The protocol is that of DuSell & Chiang (2022, 2023): the text in 32 rows, truncated back-propagation through 35 tokens,
plain SGD, and a learning rate that is divided by 1.5 after each epoch without improvement.

snakemake --snakefile scripts/experiments/ptb_stream.smk --profile scripts/experiments/profiles/local --directory OUT \
    --config data=DATA

DATA, an absolute path, holds ptb.{train,valid,test}.txt, plain or .gz. Further settings: kinds (default:
lstm,sup,rns,vrns), sizes (quarter, or paper), epochs (2, or 100 of sizes=paper), seeds (1, or 1..10; several as 1,2,3:
the table shows the best by validation) and threads (of a training run, 1).

With sizes=quarter the models have 64 hidden units, and one learning rate and one bound of the gradient's norm. With
sizes=paper they are the papers' models, for which both are drawn, and training ends after 2 epochs without improvement.
"""

OWN_SETTINGS = {"data", "kinds", "sizes", "seeds", "epochs", "threads"}
SIZES = config.get("sizes", "quarter")
PAPER = SIZES == "paper"
DEFAULT_SEEDS = "1,2,3,4,5,6,7,8,9,10" if PAPER else 1
ALL_KINDS = "lstm,sup,rns,vrns"


include: "settings.smk"


if SIZES not in ("quarter", "paper"):
    refuse(f"sizes={SIZES}: expected quarter or paper")
EPOCHS = int(setting("epochs", 100 if PAPER else 2))

PRESETS = {"lstm": "lstm_256", "sup": "sup_hidden_247", "rns": "rns_2_13", "vrns": "vrns_2_3_10"}
QUARTER = {"lstm": (64, "none"), "sup": (62, "sup-62"), "rns": (64, "ns-2-3@35"), "vrns": (64, "nd-2-3-10@35")}


def model(kind):
    """The options of a model."""
    preset = ["--arch", f"stack_lstm_lm_{PRESETS[kind]}_ptb"]
    if PAPER:
        return preset
    size, stack = QUARTER[kind]
    return [*preset, "--decoder-hidden-size", size, "--decoder-embed-dim", size, "--stack", stack]


def steps(kind, seed):
    """The learning rate, the bound of the gradient's norm, and the end of training."""
    if not PAPER:
        return ["--lr", 20, "--clip-norm", 0.25]
    generator = draw(kind, seed)
    rate, bound = log_uniform(generator, 1, 100), log_uniform(generator, 0.0112, 1.12)
    return ["--lr", rate, "--clip-norm", bound, "--patience", 2]


CORPORA = {"stream": ["lm", *split_files(DATA, "ptb."), "--stream"]}
RUNS = {kind: [f"stream/{SIZES}-epochs-{EPOCHS}/{kind}-seed-{seed}" for seed in SEEDS] for kind in KINDS}
TRAINING = {
    run: [
        *("--task", "stack_truncated_bptt", *model(kind), "--compact-vocab", "--compact-vocab-unk", "--seed", seed),
        *("--batch-size", 32, "--tokens-per-sample", 35, "--optimizer", "sgd", *steps(kind, seed)),
        *("--lr-scheduler", "reduce_lr_on_plateau", "--lr-patience", 0, "--lr-shrink", 1 / 1.5),
        *("--max-epoch", EPOCHS, "--no-epoch-checkpoints"),
    ]
    for kind, runs in RUNS.items()
    for seed, run in zip(SEEDS, runs)
}
TASK, RESULT = "stream", f"stream/{SIZES}-epochs-{EPOCHS}/table{CHOICE}.md"
SCORES = [f"{run}/stream-{split}.out" for run in TRAINING for split in ("valid", "test")]


rule all:
    input:
        RESULT,
    localrule: True


include: "common.smk"


rule validate:
    input:
        "{model}/trained",
    output:
        "{model}/stream-{split}.out",
    log:
        "{model}/stream-{split}.log",
    message:
        "{wildcards.model}: scoring the stream of the {wildcards.split} set"
    params:
        command=lambda wildcards: commands(
            *("fairseq-validate", data_of(wildcards.model), "--user-dir", USER_DIR, "--task", "stack_truncated_bptt"),
            *("--path", f"{wildcards.model}/checkpoint_best.pt", "--valid-subset", wildcards.split),
            *("--batch-size", 32, "--no-progress-bar", "--log-format", "json"),
        ),
    threads: THREADS
    shell:
        "{params.command} 2>&1 | tee {output:q} > {log:q}"
