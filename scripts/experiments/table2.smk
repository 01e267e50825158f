"""Table 2 of DuSell & Chiang (2024): language models of the Penn Treebank, the best of 20 runs by validation.

snakemake --snakefile scripts/experiments/table2.smk --profile scripts/experiments/profiles/slurm --directory OUT \
    --config data=DATA

DATA, an absolute path, holds the Penn Treebank's parsed/mrg/wsj folders; --slips makes the text that of the paper. Further
settings: kinds (default: tf,sup,nd), seeds (1 to 20, as 1,2,3), epochs (at most; 10000), interval (sentences between
validations; 20000) and threads (of a training run, 1).

The protocol is Appendix F's: a learning rate drawn log-uniformly from 1e-6 to 1e-4 and a batch size drawn from 128 to 512
tokens for each run; a validation after every 20,000 sentences, whose loss is compared by all digits; the learning rate is
halved after more than 2 validations without improvement, and training stops after 4.
"""

OWN_SETTINGS = {"data", "kinds", "seeds", "epochs", "interval", "threads"}
DEFAULT_SEEDS = ",".join(map(str, range(1, 21)))


include: "settings.smk"


EPOCHS = int(setting("epochs", 10000))
SENTENCES_BETWEEN_VALIDATIONS = int(setting("interval", 20000))
FOLDER = f"ptb/epochs-{EPOCHS}-interval-{SENTENCES_BETWEEN_VALIDATIONS}"


def training(kind, seed):
    """The arguments of fairseq-train for one run."""
    draws = draw(f"table 2 {kind}", seed)
    rate, tokens = log_uniform(draws, 1e-6, 1e-4), draws.randint(128, 512)
    return [
        *("--task", "language_modeling", "--arch", f"stack_transformer_lm_{kind}_ptb", "--seed", seed),
        *("--compact-vocab", "--compact-vocab-unk", "--sample-break-mode", "eos", "--tokens-per-sample", 512),
        *("--max-tokens", tokens, "--sentence-avg", "--optimizer", "adam", "--clip-norm", 5, "--lr", rate),
        *("--lr-scheduler", "validation_plateau", "--lr-shrink", 0.5, "--lr-patience", 2, "--patience", 4),
        *("--max-epoch", EPOCHS, "--validate-interval-sentences", SENTENCES_BETWEEN_VALIDATIONS),
        *("--validate-interval", 1000000, "--save-interval", 1000000, "--keep-interval-updates", 1),
        *("--no-epoch-checkpoints", "--exact-best-checkpoint-metric"),
    ]


CORPORA = {"ptb": ["ptb", "--raw", DATA, "--slips"]}
RUNS = {kind: [f"{FOLDER}/{kind}-seed-{seed}" for seed in SEEDS] for kind in KINDS}
TRAINING = {run: training(kind, seed) for kind, runs in RUNS.items() for seed, run in zip(SEEDS, runs)}
SCORING = ["--max-tokens", 4096]
TASK, RESULT = "language-modeling", f"{FOLDER}/table{CHOICE}.md"
SCORES = [f"{run}/score-{split}.out" for run in TRAINING for split in ("valid", "test")]


rule all:
    input:
        RESULT,
    localrule: True


include: "common.smk"
