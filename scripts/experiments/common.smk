"""What the workflows share: the rules that prepare a corpus, train a model, translate and score with it.

Before a workflow includes this file, it fills the tables CORPORA and TRAINING; NEEDED if there are files that a corpus
or a model needs; GENERATION and TARGET if it translates; SCORING if it scores; and, if its result is a table of
table.py, TASK, RUNS (by kinds of models), SCORES (the files that it needs) and RESULT (its file). All paths are relative
to the folder of results (snakemake --directory). What is complete there is not done again, and interrupted training
continues: the output of `train` is not a checkpoint, which Snakemake would delete before it starts a rule again, but a
file that marks the end.
"""

import os
import shlex
from pathlib import Path

import fairseq_stack

USER_DIR = Path(fairseq_stack.__file__).parent
NEEDED = globals().get("NEEDED", {})
GENERATION, SCORING = globals().get("GENERATION", []), globals().get("SCORING", [])
THREADS = int(config.get("threads", 1))

os.environ["OMP_NUM_THREADS"] = str(THREADS)

# In every training: validation and progress as lines that evaluation.training_log reads.
LOGGING = ["--no-progress-bar", "--log-format", "json", "--log-interval", "100", "--num-workers", "0"]


def commands(*words):
    """A command line; each word is quoted for the shell."""
    return shlex.join(map(str, words))


def corpus_of(model):
    """The folder of the corpus that a model is trained on: beside it, or in a folder above it."""
    return next(str(folder) for folder in Path(model).parents if str(folder) in CORPORA)


def data_of(model):
    """What fairseq's commands read."""
    return f"{corpus_of(model)}/corpus/data-bin"


wildcard_constraints:
    corpus="|".join(CORPORA),
    model="|".join(TRAINING),


if "RESULT" in globals():

    rule table:
        input:
            SCORES,
        output:
            RESULT,
        message:
            "the table {output}"
        params:
            runs=table_arguments(RUNS),
        localrule: True
        shell:
            "{TABLE} {TASK} {output:q} {params.runs}"


rule prepare:
    input:
        lambda wildcards: NEEDED.get(wildcards.corpus, []),
    output:
        touch("{corpus}/prepared"),
    log:
        "{corpus}/prepare.out",
    message:
        "{wildcards.corpus}: preparing the corpus"
    params:
        command=lambda wildcards: commands("fairseq-stack", "prepare", *CORPORA[wildcards.corpus]),
    shell:
        "{params.command} {wildcards.corpus:q}/corpus --force > {log:q} 2>&1"


rule train:
    input:
        lambda wildcards: f"{corpus_of(wildcards.model)}/prepared",
        lambda wildcards: NEEDED.get(wildcards.model, []),
    output:
        touch("{model}/trained"),
    log:
        "{model}/train.out",
    benchmark:
        "{model}/train.resources.tsv"
    message:
        "{wildcards.model}: training"
    params:
        command=lambda wildcards: commands(
            *("fairseq-train", data_of(wildcards.model), "--user-dir", USER_DIR, *TRAINING[wildcards.model]),
            *("--save-dir", wildcards.model, "--log-file", f"{wildcards.model}/train.log", *LOGGING),
        ),
    threads: THREADS
    shell:
        "{params.command} > {log:q} 2>&1"


rule translate:
    input:
        "{model}/trained",
    output:
        "{model}/generate-test.txt",
    log:
        "{model}/translate.out",
    message:
        "{wildcards.model}: translating the test set"
    params:
        command=lambda wildcards: commands(
            *("fairseq-generate", data_of(wildcards.model), "--user-dir", USER_DIR, "--gen-subset", "test"),
            *("--path", f"{wildcards.model}/checkpoint_best.pt", *GENERATION, "--no-progress-bar"),
            *("--results-path", wildcards.model),
        ),
    threads: THREADS
    shell:
        "{params.command} > {log:q} 2>&1"


rule score:
    input:
        "{model}/trained",
    output:
        "{model}/score-{split}.out",
    log:
        "{model}/score-{split}.log",
    message:
        "{wildcards.model}: scoring the {wildcards.split} set"
    params:
        command=lambda wildcards: commands(
            *("fairseq-eval-lm", data_of(wildcards.model), "--user-dir", USER_DIR, "--gen-subset", wildcards.split),
            *("--path", f"{wildcards.model}/checkpoint_best.pt", "--sample-break-mode", "eos", *SCORING),
            "--no-progress-bar",
        ),
    threads: THREADS
    shell:
        "{params.command} 2>&1 | tee {output:q} > {log:q}"


rule evaluate:
    input:
        "{model}/generate-test.txt",
    output:
        hypotheses="{model}/hypotheses",
        scores="{model}/scores.json",
    message:
        "{wildcards.model}: BLEU and chrF"
    params:
        references=lambda wildcards: f"{corpus_of(wildcards.model)}/corpus/text/test.{TARGET}",
    shell:
        "grep '^H-' {input:q} | sed 's/^H-//' | sort -n | cut -f3 > {output.hypotheses:q}; "
        "sacrebleu {params.references:q} -i {output.hypotheses:q} -m bleu chrf --width 2 > {output.scores:q}"
