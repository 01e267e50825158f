"""What language models of this size know of syntax: perplexity, BLiMP and SyntaxGym, by phenomenon.

The corpora are the Penn Treebank text of Mikolov, with the models of ptb.smk, and trees, whose words are cut into pieces. All
models of a corpus have the same sizes and train for the same number of epochs; pushdown needs trees.

snakemake --snakefile scripts/experiments/syntax.smk --profile scripts/experiments/profiles/local --directory OUT \
    --config data=DATA trees=TREES blimp=BLIMP suites=SUITES

DATA holds ptb.{train,valid,test}.txt; TREES {train,valid,test}.txt, plain or .gz, with a tree in brackets in each line; BLIMP
the paradigms of BLiMP, *.jsonl; SUITES the test suites of SyntaxGym, *.json; all are absolute paths. Further settings: kinds
(tf,sup,nd,pushdown), epochs (of DATA, 2), tree_epochs (8), seeds (1,2), pieces (of trees, 4000), pairs (of each paradigm, 100;
0: all), beam (of pushdown, 10) and threads (of a training run, 1).
"""

OWN_SETTINGS = {
    *("data", "trees", "blimp", "suites", "kinds", "epochs", "tree_epochs", "seeds", "pieces", "pairs", "beam", "threads"),
}
ALL_KINDS = "tf,sup,nd,pushdown"
DEFAULT_SEEDS = "1,2"


include: "settings.smk"
include: "sentences.smk"


TREES = data_folder("trees", "the trees")
BLIMP = data_folder("blimp", "the paradigms of BLiMP")
SUITES = data_folder("suites", "the test suites of SyntaxGym")
PIECES, PAIRS, BEAM = setting("pieces", 4000), setting("pairs", 100), setting("beam", 10)
PARSED = f"trees-{PIECES}"
SCORES = f"pairs-{PAIRS}-beam-{BEAM}"
EPOCHS = {MIKOLOV: int(setting("epochs", 2)), PARSED: int(setting("tree_epochs", 8))}
# What is done to sentences so that they look like the text of the model. A comma, which Mikolov's text lacks, stays as an
# unknown word in suites, some of which are about it.
BLIMP_TEXT = {MIKOLOV: ["--penn", "--lowercase", "--without-punctuation"], PARSED: ["--penn"]}
SUITES_TEXT = {MIKOLOV: ["--penn", "--lowercase"], PARSED: ["--penn"]}


CORPORA = {
    MIKOLOV: ["lm", *split_files(DATA, "ptb.")],
    PARSED: ["treebank", *split_files(TREES), "--pieces", PIECES],
}
RUNS = {
    corpus: {
        kind: [f"{corpus}/epochs-{EPOCHS[corpus]}/{kind}-seed-{seed}" for seed in SEEDS]
        for kind in KINDS
        if kind != "pushdown" or corpus == PARSED
    }
    for corpus in CORPORA
}
RESULTS = {f"{corpus}/epochs-{EPOCHS[corpus]}/{SCORES}": runs for corpus, runs in RUNS.items() if runs}
TRAINING = {
    run: sentence_training(kind, seed, EPOCHS[corpus])
    for corpus, kinds in RUNS.items()
    for kind, runs in kinds.items()
    for seed, run in zip(SEEDS, runs)
}


def beam_of(model, *options):
    """The beam of a model that parses, and other options that only such a model has."""
    return ["--beam", BEAM, *options] if "/pushdown-" in model else []


def text_of(model, split):
    """The words of a split."""
    corpus = corpus_of(model)
    return f"{corpus}/corpus/text/{split}.{'txt' if corpus == MIKOLOV else 'words'}"


def scores(folder, *files):
    """The files with the scores of all models of a table."""
    return [f"{run}/{SCORES}/{file}" for runs in RESULTS[folder].values() for run in runs for file in files]


def named(folder, file):
    """The arguments of fairseq-stack plot: each result with the name of its model."""
    names = {"tf": "Tf", "sup": "Tf+Sup", "nd": "Tf+Nd", "pushdown": "Pushdown"}
    return [f"{names[kind]}={run}/{SCORES}/{file}" for kind, runs in RESULTS[folder].items() for run in runs]


rule syntax:
    input:
        [f"{folder}/syntax{CHOICE}.{ending}" for folder in RESULTS for ending in ("md", "png")],
    localrule: True


include: "common.smk"


wildcard_constraints:
    folder="|".join(RESULTS),


rule table:
    input:
        lambda wildcards: scores(
            wildcards.folder, "surprisals-valid.tsv", "surprisals-test.tsv", "blimp.json", "suites.json"
        ),
    output:
        f"{{folder}}/syntax{CHOICE}.md",
    message:
        "the table {output}"
    params:
        runs=lambda wildcards: table_arguments(
            {kind: [f"{run}/{SCORES}" for run in runs] for kind, runs in RESULTS[wildcards.folder].items()}
        ),
    localrule: True
    shell:
        "{TABLE} syntax {output:q} {params.runs}"


rule figure:
    input:
        lambda wildcards: scores(wildcards.folder, "blimp.json", "suites.json"),
    output:
        f"{{folder}}/syntax{CHOICE}.png",
    message:
        "the figure {output}"
    params:
        command=lambda wildcards: commands(
            *("fairseq-stack", "plot", "syntax", "--output", f"{wildcards.folder}/syntax{CHOICE}.png"),
            *named(wildcards.folder, "blimp.json"),
            *named(wildcards.folder, "suites.json"),
        ),
    localrule: True
    shell:
        "{params.command}"


rule surprisals:
    input:
        "{model}/trained",
    output:
        f"{{model}}/{SCORES}/surprisals-{{split}}.tsv",
    log:
        f"{{model}}/{SCORES}/surprisals-{{split}}.log",
    message:
        "{wildcards.model}: scoring the {wildcards.split} set"
    params:
        # Telescoping surprisals add up to the probability of a sentence with all parses of the beam.
        command=lambda wildcards: commands(
            *("fairseq-stack", "surprisal", wildcards.model, text_of(wildcards.model, wildcards.split)),
            *("--unit", "nats", "--end", *beam_of(wildcards.model, "--telescoping")),
        ),
    threads: THREADS
    shell:
        "{params.command} > {output:q} 2> {log:q}"


rule blimp:
    input:
        "{model}/trained",
    output:
        f"{{model}}/{SCORES}/blimp.json",
    log:
        f"{{model}}/{SCORES}/blimp.out",
    message:
        "{wildcards.model}: BLiMP"
    params:
        command=lambda wildcards: commands(
            *("fairseq-stack", "evaluate-blimp", wildcards.model, "--blimp", BLIMP, "--pairs", PAIRS),
            *(*BLIMP_TEXT[corpus_of(wildcards.model)], *beam_of(wildcards.model)),
        ),
    threads: THREADS
    shell:
        "{params.command} --json {output:q} > {log:q} 2>&1"


rule suites:
    input:
        "{model}/trained",
    output:
        f"{{model}}/{SCORES}/suites.json",
    log:
        f"{{model}}/{SCORES}/suites.out",
    message:
        "{wildcards.model}: SyntaxGym"
    params:
        command=lambda wildcards: commands(
            *("fairseq-stack", "evaluate-syntaxgym", wildcards.model, "--suites", SUITES),
            *(*SUITES_TEXT[corpus_of(wildcards.model)], *beam_of(wildcards.model)),
        ),
    threads: THREADS
    shell:
        "{params.command} --json {output:q} > {log:q} 2>&1"
