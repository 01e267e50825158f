"""The scores, tables and figures of the experiments on formal languages.

A workflow sets RESULTS, the folder of the tables and figures; EVALUATION, options of fairseq-stack evaluate-cfl; and
RESTARTS, options of fairseq-stack plot that say what stands for several restarts.
"""


def results(split):
    """Scores of the shown runs as arguments of fairseq-stack plot; those on validation data say which run is the best."""
    splits = dict.fromkeys(["valid", split])
    return [f"{group}={run}/{of}.json" for of in splits for (group, _), runs in shown().items() for run in runs]


def write_arguments(path, arguments):
    """Write words for xargs."""
    Path(path).write_text("".join(f"{shlex.quote(argument)}\n" for argument in arguments), encoding="utf-8")


include: "common.smk"


rule choose:
    input:
        [f"{run}/{split}.json" for run in TRAINING for split in ("valid", "test")],
    output:
        **{name: temp(f"{RESULTS}/{name}.arguments") for name in ("valid", "test", "training")},
    localrule: True
    run:
        write_arguments(output.valid, results("valid"))
        write_arguments(output.test, results("test"))
        write_arguments(
            output.training, [f"{language}:{group}={run}" for (group, language), runs in shown().items() for run in runs]
        )


rule table_cfl:
    input:
        f"{RESULTS}/{{split}}.arguments",
    output:
        f"{RESULTS}/{{split,valid|test}}.{{format,md|tex}}",
    message:
        "the table {output}"
    localrule: True
    shell:
        "xargs --arg-file {input:q} fairseq-stack plot table {RESTARTS} --output {output:q}"


rule figure_by_length:
    input:
        f"{RESULTS}/test.arguments",
    output:
        f"{RESULTS}/lengths.{{format,png|pdf}}",
    message:
        "the figure {output}"
    localrule: True
    shell:
        "xargs --arg-file {input:q} fairseq-stack plot lengths {RESTARTS} --output {output:q}"


rule figure_of_training:
    input:
        f"{RESULTS}/training.arguments",
    output:
        f"{RESULTS}/training.png",
    message:
        "the figure {output}"
    localrule: True
    shell:
        "xargs --arg-file {input:q} fairseq-stack plot training --bound --epochs --output {output:q}"


rule evaluate_cfl:
    input:
        "{model}/trained",
    output:
        "{model}/{split,valid|test}.json",
    log:
        "{model}/{split}.out",
    message:
        "{wildcards.model}: scoring the {wildcards.split} set"
    params:
        command=lambda wildcards: commands(
            *("fairseq-stack", "evaluate-cfl", f"{wildcards.model}/checkpoint_best.pt"),
            *("--data", f"{corpus_of(wildcards.model)}/corpus", "--split", wildcards.split, *EVALUATION),
            *("--samples", SAMPLES if wildcards.split == "test" else 0),
        ),
    threads: THREADS
    shell:
        "{params.command} --json {output:q} > {log:q} 2>&1"
