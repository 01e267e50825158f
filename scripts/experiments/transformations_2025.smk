"""Question formation and tense reinflection: do stacks make transformers prefer hierarchical rules (DuSell & Cotterell 2025)?

snakemake --snakefile scripts/experiments/transformations_2025.smk --profile scripts/experiments/profiles/local --directory OUT

Settings (--config NAME=VALUE ...): tasks (question-formation; or with tense-reinflection), kinds (of MODELS below; tf,tf-nd),
seeds (1,2,3,4,5), rate (1e-3), tokens (in a batch at most, 1024), epochs (at most; 1000), limit (pairs in a set, for a
quick look) and threads (of a training run, 1).

The paper's training without its search: the rate and the size of batches are the same for all models. Losses are summed
over a sequence and averaged over sequences. After each 80,000 sequences the model is validated and kept; the rate is
halved after two validations without improvement, and training stops after three. All models are trained on the same
corpus.
"""

MODELS = {  # presets, and other options
    "tf": ("tf", []),
    "tf-sup": ("sup", []),
    "tf-nd": ("nd", []),
    "tf-sup-x2": ("sup_x2", []),
    "tf-nd-x2": ("nd_x2", []),
    "tf-strat": ("sup", ["--stack-layers", "2xsdpa,strat-50,2xsdpa"]),
}
SUFFIXES = {"question-formation": "qf", "tense-reinflection": "tr"}
TOKENS_PER_PAIR = {  # on average, the end included
    "question-formation": 22.85,
    "tense-reinflection": 20.8,
}
ALL_KINDS = ",".join(MODELS)
DEFAULT_KINDS, DEFAULT_SEEDS = "tf,tf-nd", "1,2,3,4,5"
OWN_SETTINGS = {"tasks", "kinds", "seeds", "rate", "tokens", "epochs", "limit", "threads"}


include: "settings.smk"


TASKS = chosen("tasks", ",".join(SUFFIXES), "question-formation")
RATE, TOKENS, EPOCHS = setting("rate", "1e-3"), int(setting("tokens", 1024)), int(setting("epochs", 1000))
PAIRS = min(int(setting("limit", 100000)), 100000)
SMALL = f"-limit-{PAIRS}" if PAIRS < 100000 else ""
RESULTS = f"transformations-2025/rate-{RATE}-tokens-{TOKENS}{selection('tasks', 'kinds', 'seeds', 'epochs', 'limit')}"
TASK, RESULT = "transformations", f"{RESULTS}/table.md"
NUMBER_OF_CLAUSES = 3000
CLAUSE, CURVE, PICTURE = map(
    python_script, ("stack_at_clause.py", "transformation_curve.py", "transformations_picture.py")
)
CORPORA, TRAINING, RUNS, WITH_STACK = {}, {}, {}, []


for task in TASKS:
    data = f"{task}{SMALL}"
    CORPORA[data] = ["transformations", "--task", task, "--limit", PAIRS]
    CORPORA[f"{data}-curve"] = ["transformations", "--task", task, "--limit", min(PAIRS, 1000)]
    interval = max(1, round(0.8 * PAIRS * TOKENS_PER_PAIR[task] / TOKENS))
    for seed in SEEDS:
        for kind in KINDS:
            preset, options = MODELS[kind]
            folder = f"{data}/rate-{RATE}-tokens-{TOKENS}{selection('epochs')}/{kind}-seed-{seed}"
            RUNS.setdefault(f"{task}:{kind}", []).append(folder)
            if kind != "tf" and task == "question-formation":
                WITH_STACK.append(folder)
            TRAINING[folder] = [
                *("--task", "language_modeling", "--compact-vocab", "--sample-break-mode", "eos"),
                *("--tokens-per-sample", 512, "--arch", f"stack_transformer_lm_{preset}_{SUFFIXES[task]}", *options),
                *("--seed", seed, "--max-tokens", TOKENS, "--sentence-avg", "--optimizer", "adam", "--clip-norm", 10),
                *("--lr", RATE, "--lr-scheduler", "validation_plateau", "--lr-shrink", 0.5, "--lr-patience", 1),
                *("--patience", 3, "--exact-best-checkpoint-metric", "--max-epoch", EPOCHS, "--no-epoch-checkpoints"),
                *("--save-interval-updates", interval, "--validate-interval", 1000000),
            ]


SCORES = [f"{run}/{split}.json" for run in TRAINING for split in ("test", "gen")]


rule all:
    input:
        RESULT,
        f"{RESULTS}/curves.png",
        [f"{run}/clause.json" for run in WITH_STACK],
    localrule: True


include: "common.smk"


rule evaluate_transformations:
    input:
        "{model}/trained",
    output:
        "{model}/{split,test|gen}.json",
        "{model}/{split}.csv",
    log:
        "{model}/{split}.out",
    message:
        "{wildcards.model}: scoring {wildcards.split}"
    params:
        corpus=lambda wildcards: f"{corpus_of(wildcards.model)}/corpus",
    threads: THREADS
    shell:
        "fairseq-stack evaluate-transformations {wildcards.model:q}/checkpoint_best.pt --data {params.corpus:q}"
        " --split {wildcards.split} --json {output[0]:q} --csv {output[1]:q} > {log:q} 2>&1"


rule curve:
    """Each checkpoint on 1,000 pairs."""
    input:
        "{model}/trained",
        lambda wildcards: f"{corpus_of(wildcards.model)}-curve/prepared",
    output:
        "{model}/curve.tsv",
    log:
        "{model}/curve.out",
    message:
        "{wildcards.model}: scoring each checkpoint"
    params:
        corpus=lambda wildcards: f"{corpus_of(wildcards.model)}-curve/corpus",
    threads: THREADS
    shell:
        "{CURVE} {wildcards.model:q} {params.corpus:q} {output:q} > {log:q} 2>&1"


rule picture:
    input:
        [f"{run}/curve.tsv" for run in TRAINING],
    output:
        f"{RESULTS}/curves.png",
    message:
        "the figure {output}"
    params:
        runs=table_arguments(RUNS),
    localrule: True
    shell:
        "{PICTURE} {output:q} {params.runs}"


rule clause:
    """What the stack does at relative clauses of the generalisation set."""
    input:
        "{model}/gen.csv",
    output:
        "{model}/clause.json",
        "{model}/clause.png",
    log:
        "{model}/clause.out",
    message:
        "{wildcards.model}: looking at the stack"
    threads: THREADS
    shell:
        "{CLAUSE} {wildcards.model:q}/checkpoint_best.pt {input:q} {output:q} {NUMBER_OF_CLAUSES} > {log:q} 2>&1"
