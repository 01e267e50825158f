"""Transformers with stacks on tasks of Delétang et al. (2023): trained on lengths up to 40, scored far beyond.

snakemake --snakefile scripts/experiments/chomsky.smk --profile scripts/experiments/profiles/local --directory OUT

Settings (--config NAME=VALUE ...): tasks (divide_by_two,missing_palindrome,reverse_string,parity_check, or any task of
`prepare transduction` whose lengths are given), kinds (of LAYERS below; all), lengths (of the test strings;
40,100,200,500), updates (20000), seeds (1,2), limit (strings in a set, for a quick look) and threads (of a training run, 1).

The taggers are causal and have no positional encodings. Each seed has training data of its own. The last checkpoint is
scored, so that no choice depends on any data.
"""

LAYERS = {  # of equal parameters: within 1 % of sdpa's
    "sdpa": ["--stack-layers", "5xsdpa"],
    "nd": ["--stack-layers", "2xsdpa,nd-2-3-5,2xsdpa", "--decoder-ffn-embed-dim", 65],
    "delta": ["--stack-layers", "2xsdpa,delta-2-15-15,2xsdpa", "--delta-beta-scale", 2],
    "deltastack": ["--stack-layers", "2xsdpa,deltastack-2-14-14-64,2xsdpa", "--deltastack-kept-scale"],
}
ALL_KINDS = ",".join(LAYERS)
DEFAULT_SEEDS = "1,2"
OWN_SETTINGS = {"tasks", "kinds", "lengths", "updates", "seeds", "limit", "threads"}


include: "settings.smk"


TASKS = setting_list("tasks", "divide_by_two,missing_palindrome,reverse_string,parity_check")
LENGTHS = [int(length) for length in setting_list("lengths", "40,100,200,500")]
UPDATES = int(setting("updates", 20000))
STRINGS = min(int(setting("limit", 100000)), 100000)
SMALL = f"-limit-{STRINGS}" if STRINGS < 100000 else ""
RESULT = f"chomsky/updates-{UPDATES}{selection('tasks', 'kinds', 'lengths', 'seeds', 'limit')}/table.md"
CORPORA, TRAINING, RUNS = {}, {}, {}


for task in TASKS:
    for length in LENGTHS:
        number = min(STRINGS, 200, length if task == "divide_by_two" else 200)  # which has one string per place of its 1
        CORPORA[f"{task}/length-{length}{SMALL}"] = [
            *("transduction", "--task", task, "--train-size", 1, "--valid-size", 1, "--test-size", number),
            *("--test-min-length", length, "--test-max-length", length),
        ]
    for seed in SEEDS:
        data = f"{task}/seed-{seed}{SMALL}"
        CORPORA[data] = [
            *("transduction", "--task", task, "--seed", seed),
            *("--train-size", STRINGS, "--valid-size", min(STRINGS, 1000), "--test-size", 1),
        ]
        for kind in KINDS:
            folder = f"{data}/updates-{UPDATES}/{kind}"
            RUNS.setdefault(f"{task}:{kind}", []).append(folder)
            TRAINING[folder] = [
                *("--task", "stack_transduction", "--criterion", "transduction", "--arch", "stack_tagger_transformer"),
                *("--causal", "--no-token-positional-embeddings", "--decoder-embed-dim", 32),
                *("--decoder-ffn-embed-dim", 64, *LAYERS[kind], "--seed", seed, "--batch-size", 32),
                *("--optimizer", "adam", "--lr", "1e-3", "--clip-norm", 1, "--lr-scheduler", "polynomial_decay"),
                *("--warmup-updates", 200, "--total-num-update", UPDATES, "--max-update", UPDATES),
                *("--batch-size-valid", 100, "--no-epoch-checkpoints"),
            ]
TASK = "transduction"
SCORES = [f"{run}/{split}.json" for run in TRAINING for split in ("valid", *(f"length-{n}" for n in LENGTHS))]


rule all:
    input:
        RESULT,
    localrule: True


include: "common.smk"


def scored_corpus(wildcards):
    """The folder of the strings that a model is scored on."""
    of_model = corpus_of(wildcards.model)
    return of_model if wildcards.split == "valid" else f"{Path(of_model).parent}/{wildcards.split}{SMALL}"


rule evaluate_transduction:
    input:
        "{model}/trained",
        lambda wildcards: f"{scored_corpus(wildcards)}/prepared",
    output:
        "{model}/{split,valid|length-\\d+}.json",
    log:
        "{model}/{split}.out",
    message:
        "{wildcards.model}: scoring {wildcards.split}"
    params:
        command=lambda wildcards: commands(
            *("fairseq-stack", "evaluate-transduction", f"{wildcards.model}/checkpoint_last.pt", "--batch-size", 20),
            *("--data", f"{scored_corpus(wildcards)}/corpus"),
            *("--split", "valid" if wildcards.split == "valid" else "test"),
        ),
    threads: THREADS
    shell:
        "{params.command} --json {output:q} > {log:q} 2>&1"
