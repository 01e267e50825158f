"""Stacks, the delta rule and a looped transformer, at equal parameters, on the languages of DuSell & Chiang (2024).

snakemake --snakefile scripts/experiments/cfl_modern.smk --profile scripts/experiments/profiles/local --directory OUT

Settings (--config NAME=VALUE ...): languages (default: the paper's five), kinds (of cfl_modern.json; default: those of
equal parameters), rates (tried for each kind; 1e-2,3e-3,1e-3), protocol (recipe, or paper; see cfl_2024.smk), seeds (1,2,3),
epochs (at most; 20, or 200 for protocol=paper), limit (strings in a set, for a quick look) and
threads (of a training run, 1).

Each kind has the same number of trials. For each kind and language, the tables show the mean over the seeds at the rate
with the least average on the validation data.
"""

import json

with open(Path(workflow.basedir) / "cfl_modern.json", encoding="utf-8") as file:
    MODELS = {kind: options.split() for kind, options in json.load(file).items()}  # what a kind adds to the options of Tf
THREE_STATES = {
    "nd": ["--stack-layers", "2xsdpa,nd-3-3-5,2xsdpa", "--decoder-ffn-embed-dim", 53],
    "nd-paper": [*MODELS["nd-paper"], "--stack-layers", "2xsdpa,nd-3-3-5,2xsdpa"],
}
ALL_KINDS = ",".join(MODELS)
DEFAULT_KINDS = ",".join(kind for kind in MODELS if not kind.endswith("-paper"))
OWN_SETTINGS = {"protocol", "rates"}
DEFAULT_SEEDS = "1,2,3"
DEFAULT_EPOCHS = 20


include: "cfl.smk"


RESULTS = f"cfl-modern/{PROTOCOL}-epochs-{EPOCHS}{SELECTION}"
EVALUATION, RESTARTS = [], "--mean"
RATES = [f"{float(rate):g}" for rate in setting_list("rates", "1e-2,3e-3,1e-3")]  # 1e-2 alone comes as the number 0.01
shown = shown_by_average


def model(language, kind):
    """The options of a model."""
    of_states = THREE_STATES if kind in THREE_STATES and language in LANGUAGES_OF_THREE_STATES else MODELS
    return ["--arch", "stack_transformer_lm_tf_cfl", *of_states[kind]]


for language in LANGUAGES:
    for kind in KINDS:
        for rate in RATES:
            for seed in SEEDS:
                training = papers_training(rate, seed) if PAPER else recipe("tf", rate, seed)
                folder = f"{corpus(language, seed)}/{PROTOCOL}-epochs-{EPOCHS}-rate-{rate}/{kind}"
                add((kind, rate), language, folder, [*model(language, kind), *training])


rule results:
    input:
        tables_and_figures(RESULTS),
        f"{RESULTS}/table.md",
    localrule: True


rule table:
    input:
        f"{RESULTS}/training.arguments",
    output:
        f"{RESULTS}/table.md",
    message:
        "the table {output}"
    localrule: True
    shell:
        "{XARGS} {input:q} {TABLE} cfl {output:q}"


include: "cfl_results.smk"
