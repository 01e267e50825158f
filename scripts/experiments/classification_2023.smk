"""Classification by language models with Pushdown Layers (Murty et al., 2023, Table 3).

snakemake --snakefile scripts/experiments/classification_2023.smk --profile scripts/experiments/profiles/local \
    --directory OUT --config trees=TREES [gpt2=GPT2 glue=GLUE] [agreement=AGREEMENT] [blimp=BLIMP]

A model learns from trees, and is then fine-tuned on each task with the tapes of its own parses. All folders are absolute
paths. TREES has {train,valid,test}.txt, plain or .gz, with one tree per line. GPT2, in the format of Hugging Face
transformers, has the weights that models begin with; GLUE has RTE, SST-5, MRPC and STS-B with train.tsv and dev.tsv
(SST-5: with the columns sentence and label). AGREEMENT has the sentences of Linzen et al. (2016) and Gulordava et al.
(2018) as in github.com/facebookresearch/colorlessgreenRNNs (.text and .gold, plain or .gz), and BLIMP the files
PARADIGM.jsonl of BLiMP.
Without GPT2, the models are small: four layers, 64 wide, with 1,000 pieces, and begin at random.

base has attention alone; the upper half of the layers of pushdown are Pushdown Layers; and a layer in the middle of nd
has a nondeterministic stack beside its attention, which is not in the paper.

Settings (--config NAME=VALUE ...): kinds (base,pushdown,nd), seeds (1,2,3 with GPT2, otherwise 1,2), updates (on
trees; 10000 with GPT2, otherwise 800), rate and batch (of fine-tuning; with GPT2 3e-5 and 256 as in the paper, computed
8 at a time; otherwise 5e-4 and 32), epochs (of fine-tuning at most; 20), patience (5), words (whose loss is
tuned: all, as in the paper, or label), limit (trees or prompts in a set, for a quick look) and threads.
"""

import json

GPT2 = config.get("gpt2")
DEFAULT_SEEDS, DEFAULT_KINDS = "1,2,3" if GPT2 else "1,2", "base,pushdown,nd"
ALL_KINDS = DEFAULT_KINDS
OWN_SETTINGS = {"trees", "gpt2", "glue", "agreement", "blimp", "kinds", "seeds", "updates", "rate", "batch", "epochs"}
OWN_SETTINGS |= {"patience", "words", "limit", "threads"}


include: "settings.smk"


LIMIT = ["--limit", config["limit"]] if "limit" in config else []
DATA_SUFFIX = selection("limit") + ("-gpt2" if GPT2 else "")
UPDATES = int(setting("updates", 10000 if GPT2 else 800))
RATE, BATCH = (setting("rate", "3e-5"), 256) if GPT2 else (setting("rate", "5e-4"), 32)
BATCH, EPOCHS, PATIENCE = int(setting("batch", BATCH)), int(setting("epochs", 20)), int(setting("patience", 5))
TUNED = f"rate-{RATE}-batch-{BATCH}-epochs-{EPOCHS}{selection('words', 'patience')}"
CHOICES = python_script("choices.py")


# Half of the number of layers, the longest text, and how many prompts are computed at a time.
HALF, LONGEST, AT_ONCE = 2, 512, BATCH
if GPT2:
    with open(data_folder("gpt2", "config.json, model.safetensors and tokenizer.json") / "config.json") as file:
        gpt2_config = json.load(file)
    HALF, LONGEST, AT_ONCE = gpt2_config["n_layer"] // 2, min(512, gpt2_config["n_positions"]), min(8, BATCH)
    if BATCH % AT_ONCE:
        refuse(f"batch={BATCH}: expected a multiple of {AT_ONCE} with gpt2")
STACK = "nd-3-3-32@64" if GPT2 else "nd-3-3-10"
LAYERS = {
    "base": f"{2 * HALF}xsdpa",
    "pushdown": f"{HALF}xsdpa,{HALF}xpushdown",
    "nd": f"{HALF}xsdpa,sdpa+{STACK}" + (f",{HALF - 1}xsdpa" if HALF > 1 else ""),
}
SIZES = ["--decoder-embed-dim", 64, "--decoder-ffn-embed-dim", 256, "--decoder-attention-heads", 4]
SMALL = [*SIZES, "--pushdown-parametrization", "figures", "--decoder-normalize-before", "--decoder-learned-pos"]
SMALL += ["--activation-fn", "gelu_accurate", "--no-scale-embedding", "--compact-vocab", "--compact-vocab-unk"]
SMALL += ["--attachment-size", 64, "--attachment-depth-size", 64, "--dropout", 0.2, "--attention-dropout", 0.2]


def model_options(kind):
    begin = ["--init-from-gpt2", GPT2] if GPT2 else SMALL
    if kind != "pushdown":  # does not read a tape
        begin = [*begin, "--no-depths-in-head"]
    elif GPT2:
        begin = [*begin, "--zero-depths"]
    return [
        *("--arch", "pushdown_transformer_lm", "--stack-layers", LAYERS[kind], "--pushdown-depths", 50, *begin),
        *("--tokens-per-sample", LONGEST),
    ]


# For each task the corpus, the splits that are scored, and the metric that chooses checkpoints.
TREES, OF_TREES = data_folder("trees", "train.txt, valid.txt and test.txt"), f"trees{DATA_SUFFIX}"
CORPORA, NEEDED, SCORED, METRICS = {}, {}, {}, {}
CORPORA[OF_TREES] = ["treebank", *split_files(TREES), *(["--gpt2", GPT2] if GPT2 else ["--pieces", 1000]), *LIMIT]


def add_task(name, tables, scored, metric, *options, part=""):
    """A corpus of prompts, or a further part of one, on which no model is trained."""
    folder = f"{name}{DATA_SUFFIX}{part}"
    arguments = [word for split, path in tables.items() for word in (f"--{split}", path)]
    CORPORA[folder] = ["classification", *options, "--penn", "--like", f"{OF_TREES}/corpus", *arguments, *LIMIT]
    NEEDED[folder] = [f"{OF_TREES}/prepared"]
    if name in ("agreement", "blimp"):
        NEEDED[folder].append(f"tables/{name}")
    SCORED[folder] = scored
    if not part:
        METRICS[folder] = metric


if "glue" in config:
    glue = data_folder("glue", "RTE, SST-5, MRPC and STS-B")
    for name, folder, metric in (
        *(("rte", "RTE", "accuracy"), ("sst5", "SST-5", "accuracy"), ("mrpc", "MRPC", "f1")),
        ("sts-b", "STS-B", "pearson"),
    ):
        tables = {"train": glue / folder / "train.tsv", "valid": glue / folder / "dev.tsv"}
        add_task(name, tables, ["valid"], metric, "--task", name)
if "agreement" in config:
    AGREEMENT = data_folder("agreement", "the sentences of Linzen et al. and Gulordava et al.")
    NUMBER = ["--template", "Sentence: {sentence}. Number: {label}", "--label-column", "number"]
    NUMBER += ["--labels", "plural=plural", "singular=singular"]
    tables = {split: f"tables/agreement/{split}.tsv" for split in ("train", "valid", "test")}
    add_task("agreement", tables, ["valid", "test"], "accuracy", *NUMBER)
    nonce = dict.fromkeys(("train", "valid"), "tables/agreement/nonce.tsv")
    add_task("agreement", nonce, ["valid"], "accuracy", *NUMBER, part="-nonce")
if "blimp" in config:
    BLIMP = data_folder("blimp", "the files PARADIGM.jsonl")
    RIGHT = ["--template", "First: {sentence1} Second: {sentence2} Better: {label}", "--label-column", "right"]
    tables = {split: f"tables/blimp/{split}.tsv" for split in ("train", "valid", "test")}
    add_task("blimp", tables, ["valid", "test"], "accuracy", *RIGHT, "--labels", "0=first", "1=second")
if not METRICS:
    refuse("glue=GLUE, agreement=AGREEMENT or blimp=BLIMP: expected at least one")

WINDOWS = ["--sample-break-mode", "complete", "--batch-size", 4, "--update-freq", 64]
TRAINING, RUNS, SCORES = {}, {}, []
for seed in SEEDS:
    for kind in KINDS:
        pretrained = f"{OF_TREES}/updates-{UPDATES}/{kind}-seed-{seed}"
        TRAINING[pretrained] = [
            *("--task", "pushdown_language_modeling", *model_options(kind), "--seed", seed),
            *("--criterion", "pushdown_cross_entropy", "--optimizer", "adam", "--adam-betas", "(0.9, 0.98)"),
            *("--clip-norm", 1, "--no-epoch-checkpoints", "--max-update", UPDATES),
            *(
                ("--lr", "3e-5", "--patience", PATIENCE, *WINDOWS)
                if GPT2
                else ("--lr", "2e-3", "--lr-scheduler", "cosine", "--warmup-updates", 200, "--max-tokens", 2048)
            ),
        ]
        for task, metric in METRICS.items():
            run = f"{task}/updates-{UPDATES}-{TUNED}/{kind}-seed-{seed}"
            RUNS.setdefault(f"{task.removesuffix(DATA_SUFFIX)}:{kind}", []).append(run)
            NEEDED[run] = [f"{pretrained}/trained"]
            parses = []
            if kind == "pushdown":
                NEEDED[run] += [f"{pretrained}/parses-{task}"]
                parses = ["--attachments", f"{pretrained}/parses-{task}"]
            TRAINING[run] = [
                *("--task", "prompt_classification", *model_options(kind), "--seed", seed, *parses),
                *("--finetune-from-model", f"{pretrained}/checkpoint_best.pt"),
                *("--criterion", "classification_cross_entropy", "--scored-words", setting("words", "all")),
                *("--optimizer", "adam", "--lr", RATE, "--max-epoch", EPOCHS),
                *("--batch-size", AT_ONCE, "--update-freq", BATCH // AT_ONCE),
                *("--best-checkpoint-metric", metric, "--maximize-best-checkpoint-metric", "--patience", PATIENCE),
                *("--no-epoch-checkpoints", "--clip-norm", 1),
            ]
            SCORES += [f"{run}/{split}.json" for split in SCORED[task]]
            if f"{task}-nonce" in CORPORA:
                SCORES.append(f"{run}/nonce.json")

TASK = "classification"
RESULT = f"classification/updates-{UPDATES}-{TUNED}{CHOICE}/{'+'.join(METRICS)}.md"


rule all:
    input:
        RESULT,
    localrule: True


include: "common.smk"


rule tables_of_agreement:
    output:
        directory("tables/agreement"),
    params:
        texts=[
            plain_or_gz(AGREEMENT / f"{name}.{kind}")
            for name in ("linzen.subj_agr_filtered", "gulordava.generated.en")
            for kind in ("text", "gold")
            if "agreement" in config
        ],
    localrule: True
    shell:
        "{CHOICES} agreement {output:q} {params.texts:q}"


rule tables_of_blimp:
    output:
        directory("tables/blimp"),
    params:
        paths=sorted(BLIMP.glob("*.jsonl")) if "blimp" in config else [],
    localrule: True
    shell:
        "{CHOICES} blimp {output:q} {params.paths:q}"


rule parse:
    """The parses of a task's prompts by a model that has learned from trees."""
    input:
        "{pretrained}/trained",
        "{task}/prepared",
    output:
        directory("{pretrained}/parses-{task}"),
    log:
        "{pretrained}/parses-{task}.out",
    message:
        "{wildcards.pretrained}: parsing the prompts of {wildcards.task}"
    wildcard_constraints:
        pretrained="trees.*",
    threads: THREADS
    shell:
        "mkdir -p {output:q}; fairseq-stack parse-prompts {wildcards.pretrained:q}/checkpoint_best.pt"
        " --data {wildcards.task}/corpus --beam 10 --attachments {output:q} > {log:q} 2>&1"


def scored(wildcards):
    """The corpus and the split of a result, and the parses of the prompts."""
    task = corpus_of(wildcards.model)
    name, split = (f"{task}-nonce", "valid") if wildcards.result == "nonce" else (task, wildcards.result)
    run = Path(wildcards.model).name
    parses = f"{OF_TREES}/updates-{UPDATES}/{run}/parses-{name}" if run.startswith("pushdown") else None
    return name, split, parses


def arguments_of_scoring(wildcards):
    name, split, parses = scored(wildcards)
    return commands("--data", f"{name}/corpus", "--split", split, *(["--attachments", parses] if parses else []))


def inputs_of_scoring(wildcards):
    name, _, parses = scored(wildcards)
    return [f"{wildcards.model}/trained", f"{name}/prepared", *([parses] if parses else [])]


rule evaluate_classification:
    input:
        inputs_of_scoring,
    output:
        "{model}/{result,valid|test|nonce}.json",
    log:
        "{model}/{result}.out",
    message:
        "{wildcards.model}: scoring {wildcards.result}"
    params:
        arguments=arguments_of_scoring,
    threads: THREADS
    shell:
        "fairseq-stack evaluate-classification {wildcards.model:q}/checkpoint_best.pt {params.arguments}"
        " --json {output:q} > {log:q} 2>&1"
