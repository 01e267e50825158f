"""The scores of models of formal languages.

A workflow that includes common.smk sets EVALUATION, options of fairseq-stack evaluate-cfl, and SAMPLES, how many strings are
drawn from each model.
"""


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
