"""The tables and figures of the experiments on formal languages.

A workflow sets RESULTS, the folder of the tables and figures; RESTARTS, options of fairseq-stack plot that say what stands
for several restarts; and what evaluate_cfl.smk needs.
"""


def results(split):
    """Scores of the shown runs as arguments of fairseq-stack plot; those on validation data say which run is the best."""
    splits = dict.fromkeys(["valid", split])
    return [f"{group}={run}/{of}.json" for of in splits for (group, _), runs in shown().items() for run in runs]


def write_arguments(path, arguments):
    """Write words for xargs."""
    Path(path).write_text("".join(f"{shlex.quote(argument)}\n" for argument in arguments), encoding="utf-8")


include: "common.smk"
include: "evaluate_cfl.smk"


rule choose:
    input:
        [f"{run}/{split}.json" for runs in GROUPS.values() for run in runs for split in ("valid", "test")],
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
        f"{RESULTS}/{{split,valid|test}}.md",
    message:
        "the table {output}"
    localrule: True
    shell:
        "{XARGS} {input:q} fairseq-stack plot table {RESTARTS} --output {output:q}"


rule figure_by_length:
    input:
        f"{RESULTS}/test.arguments",
    output:
        f"{RESULTS}/lengths.{{format,png|pdf}}",
    message:
        "the figure {output}"
    localrule: True
    shell:
        "{XARGS} {input:q} fairseq-stack plot lengths {RESTARTS} --output {output:q}"


rule figure_of_training:
    input:
        f"{RESULTS}/training.arguments",
    output:
        f"{RESULTS}/training.png",
    message:
        "the figure {output}"
    localrule: True
    shell:
        "{XARGS} {input:q} fairseq-stack plot training --bound --epochs --output {output:q}"
