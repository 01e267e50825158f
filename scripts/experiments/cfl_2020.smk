"""The formal languages of DuSell & Chiang (2020), Section 5: LSTMs with 20 hidden units, with stacks and without.

snakemake --snakefile scripts/experiments/cfl_2020.smk --profile scripts/experiments/profiles/local --directory OUT

Settings (--config NAME=VALUE ...): languages (default: the paper's five; several with commas between them), kinds
(lstm,strat,sup,ns), rates (learning rates; 0.01,0.005,0.001,0.0005), sizes (of the vectors of strat and sup; 2,20,40),
seeds (1..5), epochs (at most; 200), limit (strings in a set, for a quick look) and
threads (of a training run, 1).

As in the paper, neither the loss nor the scores count the end of a string. The paper shows, for each kind of model and each
language, the rate and the size with the lowest average on the validation set, and averages over its five restarts.
"""

ALL_KINDS = "lstm,strat,sup,ns"
OWN_SETTINGS = {"rates", "sizes"}
DEFAULT_SEEDS = "1,2,3,4,5"
DEFAULT_EPOCHS = 200


include: "cfl.smk"


RATES = setting_list("rates", "0.01,0.005,0.001,0.0005")
SIZES = setting_list("sizes", "2,20,40")
FOLDER = f"2020-epochs-{EPOCHS}"
RESULTS = f"cfl-2020/{FOLDER}{SELECTION}"
EVALUATION, SAMPLES, RESTARTS = ["--without-eos"], 0, "--mean"  # its models do not predict ends
AUTOMATA = {"padded-reversal": "ns-3-2", "hardest-cfl": "ns-3-3"}  # the others: two states, two symbols


def stacks(language, kind):
    """The stacks that are tried."""
    if kind == "ns":
        return [AUTOMATA.get(language, "ns-2-2")]
    return ["none"] if kind == "lstm" else [f"{kind}-{size}" for size in SIZES]


for language in LANGUAGES:
    for seed in SEEDS:
        for kind in KINDS:
            for stack in stacks(language, kind):
                for rate in RATES:
                    add(
                        (kind, f"{stack} {rate}"),
                        language,
                        f"{corpus(language, seed)}/{FOLDER}/{kind}-{stack}-rate-{rate}",
                        [
                            *("--arch", f"stack_lstm_lm_{kind}_2020", "--stack", stack, "--without-eos"),
                            *papers_training(rate, seed),
                        ],
                    )


shown = shown_by_average


rule results:
    input:
        tables_and_figures(RESULTS),
    localrule: True


include: "cfl_results.smk"
