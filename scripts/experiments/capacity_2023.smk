"""The capacity of stacks, DuSell & Chiang (2023): languages with alphabets of 2 to 200 symbols, LSTMs with 20 hidden units.

snakemake --snakefile scripts/experiments/capacity_2023.smk --profile scripts/experiments/profiles/local --directory OUT

Settings (--config NAME=VALUE ...): languages (marked-reversal,dyck,unmarked-reversal), symbols (sizes of the alphabet; for
dyck, kinds of brackets; 2,40,80,120,160,200), kinds (lstm,sup-3,ns-1-3,ns-2-3,nd-1-1-3,nd-2-1-3,nd-2-3-3), seeds (1..10),
rate (a learning rate; drawn log-uniformly from 5e-4 to 1e-2), epochs (at most; 200), limit (strings in a set, for a
quick look) and threads (of a training run, 1).

The training is the papers'. The best run by validation is shown.
"""

ALL_KINDS = "lstm,sup-3,ns-1-3,ns-2-3,nd-1-1-3,nd-2-1-3,nd-2-3-3"
OWN_SETTINGS = {"symbols", "rate"}
DEFAULT_LANGUAGES = "marked-reversal,dyck,unmarked-reversal"
DEFAULT_SEEDS = "1,2,3,4,5,6,7,8,9,10"
DEFAULT_EPOCHS = 200


include: "cfl.smk"


ALPHABETS = setting_list("symbols", "2,40,80,120,160,200")
FOLDER = f"2023-epochs-{EPOCHS}{selection('rate')}"
RESULTS = f"capacity-2023/{FOLDER}{SELECTION}"
EVALUATION, RESTARTS = [], ""

for language in LANGUAGES:
    if language not in DEFAULT_LANGUAGES.split(","):
        refuse(f"languages={','.join(LANGUAGES)}: expected some of {DEFAULT_LANGUAGES}, got {language!r}")
    flag = "--bracket-types" if language == "dyck" else "--symbol-types"
    for symbols in ALPHABETS:
        for seed in SEEDS:
            for kind in KINDS:
                name = f"{language}-{symbols}"
                rate = setting("rate", log_uniform(draw(f"{name} {kind}", seed), 5e-4, 1e-2))
                stack = "none" if kind == "lstm" else kind
                add(
                    kind,
                    name,
                    f"{corpus(language, seed, flag, symbols, name=name)}/{FOLDER}/{kind}",
                    ["--arch", "stack_lstm_lm_lstm_2020", "--stack", stack, *papers_training(rate, seed)],
                )


rule results:
    input:
        tables_and_figures(RESULTS),
        f"{RESULTS}/alphabets.png",
    localrule: True


rule figure_by_alphabet:
    input:
        f"{RESULTS}/test.arguments",
    output:
        f"{RESULTS}/alphabets.{{format,png|pdf}}",
    message:
        "the figure {output}"
    localrule: True
    shell:
        "{XARGS} {input:q} fairseq-stack plot alphabets {RESTARTS} --output {output:q}"


include: "cfl_results.smk"
