"""Table 1 of Hao et al. (2018): neural stacks and buffered networks on six transduction tasks.

snakemake --snakefile scripts/experiments/hao_2018.smk --profile scripts/experiments/profiles/local --directory OUT

Settings (--config NAME=VALUE ...): rows (of the table, such as reversal-linear; default: all 18; several with commas
between them), trials (of each row; 10), epochs (at most; 100), limit (strings in a set, for a quick look), options
(further options of fairseq-train, such as "--output-reading read-first") and threads (of a training run, 1).

Each trial draws its own training and validation data, and the test set is the authors'. Training stops after 5 epochs
without a better accuracy on the validation data. As in the paper, the parameters after the last epoch are scored.
"""

OWN_SETTINGS, DEFAULT_TRIALS = {"rows", "options"}, 10


include: "hao.smk"


ROWS = chosen("rows", ",".join(TABLE_1))
OPTIONS = shlex.split(str(setting("options", "")))
SUMMARY = python_script("hao_2018.py")


include: "hao_trials.smk"


rule summarise:
    input:
        [f"{run(row, trial)}/{split}.json" for row in ROWS for trial in TRIALS for split in SPLITS],
    output:
        [f"{FOLDER}/table{selection('rows', 'trials')}.{suffix}" for suffix in ("md", "json")],
    default_target: True
    message:
        "the table {output[0]}"
    params:
        runs=shlex.join(f"{row}={','.join(run(row, trial) for trial in TRIALS)}" for row in ROWS),
    localrule: True
    shell:
        "{SUMMARY} {output:q} {params.runs}"
