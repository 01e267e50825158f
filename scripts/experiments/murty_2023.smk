"""Pushdown Layers (Murty et al., 2023): Dyck(20, 10), and a treebank, with models that train within minutes on a CPU.

snakemake --snakefile scripts/experiments/murty_2023.smk --profile scripts/experiments/profiles/local --directory OUT \
    [--config data=DATA]

dyck: models without a tape (base), with a tape of 0 and 1 (zero-one), and with a tape of depths (depth). Each is scored on
strings like the ones it was trained on, on deeper strings by the distance of brackets, and on the test of depth, with gold
parses and with its own, greedy ones; on the test of depth also with a beam.

trees: a model without a tape and with one (base, pushdown), and with stack attention in the middle layer (sup, nd), for an
equal number of updates. DATA, an absolute path, holds {train,valid,test}.txt, plain or .gz, with one tree per line, such
as the files of https://github.com/google-deepmind/transformer_grammars (example/data).

Three kinds (of trees) are trained only if kinds names them. nd-latent, nd-supervised and nd-prefixes have as many
parameters as pushdown; nd-latent learns from the words alone, and the stacks of the others from the operations of the
gold parses, with --operation-runs sentence or prefixes. Their parses are best runs.

Settings (--config NAME=VALUE ...): parts (default: dyck, and trees if there is DATA), kinds (of models; default: all
but those three), seeds (1,2), updates (of dyck, 3600), tree_updates (800), limit (strings or trees in a set, for a quick
look) and threads (of a training run, 1).
"""

DEFAULT_SEEDS, DEFAULT_KINDS = "1,2", "base,zero-one,depth,pushdown,sup,nd"
ALL_KINDS = f"{DEFAULT_KINDS},nd-latent,nd-supervised,nd-prefixes"
OWN_SETTINGS = {"parts", "kinds", "seeds", "updates", "tree_updates", "limit", "threads"}
OWN_SETTINGS |= {"data"} if "data" in config or "trees" in str(config.get("parts")) else set()


include: "settings.smk"


PARTS = chosen("parts", "dyck,trees", "dyck,trees" if "data" in config else "dyck")
UPDATES = {"dyck": int(setting("updates", 3600)), "trees": int(setting("tree_updates", 800))}
BEAM = 10
LIMIT = ["--limit", config["limit"]] if "limit" in config else []
GREATEST_DEPTH = min(49, 14 + int(setting("limit", 49)))
SMALL = f"-limit-{config['limit']}" if LIMIT else ""

FOLDERS = {part: f"{part}{SMALL}" for part in PARTS}
PART_OF = {folder: part for part, folder in FOLDERS.items()}
CORPORA = {}
if "dyck" in PARTS:
    CORPORA[FOLDERS["dyck"]] = [
        *("cfl", "--task", "bounded-dyck", "--max-length", 150, "--train-size", 200000, "--valid-size", 500),
        *("--distance-max-length", 130, "--distance-size", 4000, "--depth-to", GREATEST_DEPTH, *LIMIT),
    ]
if "trees" in PARTS:
    CORPORA[FOLDERS["trees"]] = ["treebank", *split_files(DATA), "--rare-words", "classes", *LIMIT]

BASE, TAPE = "pushdown_transformer_lm_dyck_base", "pushdown_transformer_lm_dyck"
MODELS = {
    ("dyck", "base"): (BASE, "4xsdpa"),
    ("dyck", "zero-one"): (TAPE, "4xpushdown"),
    ("dyck", "depth"): (TAPE, "4xpushdown", "--pushdown-depths", 16),
    ("trees", "base"): (BASE, "5xsdpa"),
    ("trees", "pushdown"): (TAPE, "5xpushdown", "--pushdown-depths", 32),
    ("trees", "sup"): (BASE, "2xsdpa,sup-127,2xsdpa"),
    ("trees", "nd"): (BASE, "2xsdpa,nd-3-3-10,2xsdpa"),
    ("trees", "nd-latent"): (BASE, "2xsdpa,nd-3-3-59,2xsdpa"),
    ("trees", "nd-supervised"): (BASE, "2xsdpa,nd-3-3-59,2xsdpa"),
    ("trees", "nd-prefixes"): (BASE, "2xsdpa,nd-3-3-59,2xsdpa"),
}
BY_BEST_RUNS = {
    "nd-latent": ["--operation-weight", 0],
    "nd-supervised": [],
    "nd-prefixes": ["--operation-runs", "prefixes"],
}
DROPOUT = {"dyck": 0, "trees": 0.2}


def training(part, kind, seed):
    """The arguments of fairseq-train: one recipe for both parts, except for dropout."""
    arch, layers, *options = MODELS[part, kind]
    loss = ["operation_cross_entropy", *BY_BEST_RUNS[kind]] if kind in BY_BEST_RUNS else ["pushdown_cross_entropy"]
    dropout = DROPOUT[part]
    return [
        *("--task", "pushdown_language_modeling", "--tokens-per-sample", 1024, "--compact-vocab", "--compact-vocab-unk"),
        *("--arch", arch, "--stack-layers", layers, "--decoder-normalize-before", "--decoder-attention-heads", 4),
        *("--decoder-embed-dim", 64, "--decoder-ffn-embed-dim", 256),
        *("--attachment-size", 64, "--attachment-depth-size", 64),
        *("--dropout", dropout, "--attention-dropout", dropout, *options, "--seed", seed),
        *("--criterion", *loss, "--optimizer", "adam", "--adam-betas", "(0.9, 0.98)"),
        *("--clip-norm", 1, "--lr", "2e-3", "--lr-scheduler", "cosine", "--warmup-updates", 200),
        *("--max-update", UPDATES[part], "--max-tokens", 2048, "--no-epoch-checkpoints"),
    ]


RUNS = {
    part: {
        kind: [f"{folder}/updates-{UPDATES[part]}/{kind}-seed-{seed}" for seed in SEEDS]
        for of_part, kind in MODELS
        if of_part == part and kind in KINDS
    }
    for part, folder in FOLDERS.items()
}
TRAINING = {
    run: training(part, kind, seed)
    for part, kinds in RUNS.items()
    for kind, runs in kinds.items()
    for seed, run in zip(SEEDS, runs)
}

# The name of each result, the set, and how many parses the model keeps; 1 for greedy decisions.
SETS = {
    "dyck": {
        **{split: (split, 1) for split in ("test", "distance", "depth")},
        "depth-beam": ("depth", BEAM),
    },
    "trees": {"test": ("test", BEAM)},
}


def scores(part):
    """The results of a part."""
    return [f"{run}/{name}.json" for runs in RUNS[part].values() for run in runs for name in SETS[part]]


rule results:
    input:
        [f"{folder}/updates-{UPDATES[part]}/table{CHOICE}.md" for part, folder in FOLDERS.items()],
    default_target: True
    localrule: True


for part, folder in FOLDERS.items():

    rule:
        name:
            f"table_{part}"
        input:
            scores(part),
        output:
            f"{folder}/updates-{UPDATES[part]}/table{CHOICE}.md",
        message:
            "the table {output}"
        params:
            part=part,
            runs=table_arguments(RUNS[part]),
        localrule: True
        shell:
            "{TABLE} {params.part} {output:q} {params.runs}"


include: "common.smk"


def evaluated(wildcards):
    """The set of a result, and how the model parses."""
    split, beam = SETS[PART_OF[corpus_of(wildcards.model)]][wildcards.name]
    kind = Path(wildcards.model).name.rpartition("-seed-")[0]
    return ["--split", split, *(["--best-runs"] if kind in BY_BEST_RUNS else ["--beam", beam])]


rule evaluate_pushdown:
    input:
        "{model}/trained",
    output:
        "{model}/{name,test|distance|depth|depth-beam}.json",
    log:
        "{model}/{name}.out",
    message:
        "{wildcards.model}: scoring for {wildcards.name}.json"
    params:
        command=lambda wildcards: commands(
            *("fairseq-stack", "evaluate-pushdown", f"{wildcards.model}/checkpoint_best.pt"),
            *("--data", f"{corpus_of(wildcards.model)}/corpus", *evaluated(wildcards)),
        ),
    threads: THREADS
    shell:
        "{params.command} --json {output:q} > {log:q} 2>&1"
