"""The formal languages of DuSell & Chiang (2024), Section 6: transformers and LSTMs, with stacks and without.

snakemake --snakefile scripts/experiments/cfl_2024.smk --profile scripts/experiments/profiles/local --directory OUT

Settings (--config NAME=VALUE ...): languages (default: the paper's five; several with commas between them), kinds
(tf,tf-sup,tf-nd,lstm,lstm-sup,lstm-nd; or lstm-ns, the RNS of 2022, or lstm-sup-r and lstm-nd-r, whose output layer
also reads the stack), protocol (recipe, paper or one-turn), seeds (1, or 1..10 for protocol=paper), epochs (at most;
60, or 200 for protocol=paper), rate (a learning rate, or draw), limit (strings in a set, for a quick look), threads (of
a training run, 1), init (instead of the protocol's: one of --stack-init), short (first train for 10 epochs on strings
of at most so many symbols; 0; with protocol=recipe at the recipe's constant rate, not the setting's), supervised
(sentence or prefixes: nondeterministic stacks learn what to do with the short strings from parses, by these
--operation-runs), entropy, height, reading and noise (on the short strings, the weights and the noise of --criterion
stack_incentives, such as 0.1), stack-rate (the learning rate of stacks in proportion to the others), dropout (instead
of the preset's) and keep (yes: the checkpoint of each epoch; no). The best run by validation is shown. Of models with
an automaton, highest-stack.tsv says whether they reverse reversals.

protocol=paper is the paper's training: rates are drawn log-uniformly from 5e-4 to 1e-2. protocol=recipe has no
dropout, fairseq's initialisation, warm-up and linear decay of the rate. For transformers it has batches of 50 strings
(a fifth of the updates in an epoch) and a rate of 1e-2, and for LSTMs, which need more updates, the paper's batches of
10 and 5e-3. On ww^R (unmarked-reversal), LSTM+Nd reached the lower bound with protocol=paper rate=5e-3, for two of
ten seeds, but not with the recipe.

protocol=one-turn is how all ten seeds of LSTM+Nd and of Tf+Nd found the middle of ww^R: short for
init=one-turn short=20 and, for LSTMs, rate=1e-2 epochs=10; for transformers, protocol=paper rate=3e-3 epochs=15.
"""

DEFAULT_KINDS = "tf,tf-sup,tf-nd,lstm,lstm-sup,lstm-nd"
ALL_KINDS = f"{DEFAULT_KINDS},lstm-ns,lstm-sup-r,lstm-nd-r"
INCENTIVES = {
    "entropy": "--entropy-weight",
    "height": "--height-weight",
    "reading": "--reading-weight",
    "noise": "--transition-noise",
}
BEGINNINGS = ["init", "short", "supervised", *INCENTIVES, "stack-rate", "dropout"]
OWN_SETTINGS = {"protocol", "rate", "keep", *BEGINNINGS}
PROTOCOLS = "recipe, paper or one-turn"
DEFAULT_SEEDS = "1,2,3,4,5,6,7,8,9,10" if config.get("protocol") == "paper" else 1
ONE_TURN = {"lstm": ("recipe", 1e-2, 10), "tf": ("paper", 3e-3, 15)}  # protocol, rate and epochs of protocol=one-turn
if config.get("protocol") == "one-turn":
    families = {kind.partition("-")[0] for kind in str(config.get("kinds", DEFAULT_KINDS)).split(",")}
    if len(families) > 1 or not families <= ONE_TURN.keys():
        raise WorkflowError("--config protocol=one-turn: expected kinds of LSTMs alone, or of transformers alone")
    protocol, rate, epochs = ONE_TURN[families.pop()]
    beginning = {"init": "one-turn", "short": 20, "rate": rate, "epochs": epochs}
    config.update({**beginning, **config, "protocol": protocol})


include: "cfl.smk"


SHORT, EPOCHS_OF_SHORT = int(setting("short", 0)), 10
INIT = ["--stack-init", *chosen("init", "fairseq,paper,one-turn")] if "init" in config else []
DROPOUT = ["--dropout", setting("dropout", 0)] if "dropout" in config else []
STACK_RATE = ["--optimizer", "torch_adam", "--stack-lr-scale", config["stack-rate"]] if "stack-rate" in config else []
BEGINNING = selection(*BEGINNINGS)
SUPERVISED = ["--operation-runs", *chosen("supervised", "sentence,prefixes")] if "supervised" in config else []
REWARDED = [x for name, option in INCENTIVES.items() if name in config for x in (option, config[name])]
LOSS = ["--task", "pushdown_language_modeling", "--criterion", "operation_cross_entropy"] if SUPERVISED else []
LOSS += ["--criterion", "stack_incentives"] if REWARDED else []
if LOSS and not (bool(SUPERVISED) != bool(REWARDED) and SHORT and all("-nd" in kind for kind in KINDS)):
    refuse(
        f"supervised, {', '.join(INCENTIVES)}: expected parses or incentives, short=N and kinds of "
        "tf-nd,lstm-nd,lstm-nd-r"
    )
RESULTS = f"cfl-2024/{PROTOCOL}-epochs-{EPOCHS}{selection('rate')}{BEGINNING}{SELECTION}"
EVALUATION, RESTARTS = [], ""

MODELS = {  # the papers' names; presets and their options
    "tf": ("Tf", "stack_transformer_lm_tf_cfl"),
    "tf-sup": ("Tf+Sup", "stack_transformer_lm_sup_cfl"),
    "tf-nd": ("Tf+Nd", "stack_transformer_lm_nd_cfl"),
    "lstm": ("LSTM", "stack_lstm_lm_lstm_cfl"),
    "lstm-sup": ("LSTM+Sup", "stack_lstm_lm_sup_cfl"),
    "lstm-nd": ("LSTM+Nd", "stack_lstm_lm_nd_cfl"),
    "lstm-ns": ("RNS", "stack_lstm_lm_nd_cfl --stack ns-2-3"),
    "lstm-sup-r": ("LSTM+Sup+R", "stack_lstm_lm_sup_cfl"),
    "lstm-nd-r": ("LSTM+Nd+R", "stack_lstm_lm_nd_cfl"),
}
THREE_STATES = {
    "lstm-ns": ["--stack", "ns-3-3"],
    "tf-nd": ["--stack-layers", "2xsdpa,nd-3-3-5,2xsdpa"],
    **dict.fromkeys(("lstm-nd", "lstm-nd-r"), ["--stack", "nd-3-3-5"]),
}


def model(language, kind):
    """The options of a model."""
    more = THREE_STATES.get(kind, []) if language in LANGUAGES_OF_THREE_STATES else []
    more = [*more, "--reading-in-output"] if kind.endswith("-r") else more
    return ["--arch", *MODELS[kind][1].split(), *more]


def rate_of(kind):
    """The learning rate of a kind, or that it is drawn."""
    return str(setting("rate", "draw" if PAPER else RECIPES[family(kind)][0]))


def family(kind):
    return kind.partition("-")[0]


def trained_at(rate, kind, seed):
    """The options of training at a learning rate."""
    return papers_training(rate, seed) if PAPER else recipe(family(kind), rate, seed)


def train_on_short(language, kind, seed, rate, name, begin):
    """Train a model on short strings first, in the folder that is returned."""
    shape = ["--min-length", 1, "--max-length", SHORT, "--test-min-length", 1, "--test-max-length", SHORT]
    shape += ["--attachments"] if SUPERVISED else []
    data = corpus(language, seed, *shape, name=f"{language}-short-{SHORT}{selection('supervised')}")
    folder = f"{data}/{name}"
    rate = rate if PAPER else RECIPES[family(kind)][0]
    constant = [] if PAPER else ["--end-learning-rate", rate]
    loss = [*LOSS, *SUPERVISED, *REWARDED]
    add_training(folder, [*trained_at(rate, kind, seed), *begin, *constant, "--max-epoch", EPOCHS_OF_SHORT, *loss])
    return folder


for language in LANGUAGES:
    for seed in SEEDS:
        for kind in KINDS:
            rate = rate_of(kind)
            name = f"{PROTOCOL}-epochs-{EPOCHS}-rate-{rate}{BEGINNING}/{kind}"
            folder = f"{corpus(language, seed)}/{name}"
            if rate == "draw":
                rate = log_uniform(draw(f"{language} {kind}", seed), 5e-4, 1e-2)
            begin = [*model(language, kind), *INIT, *DROPOUT, *STACK_RATE]
            training = trained_at(rate, kind, seed) + begin
            if SHORT:
                on_short = train_on_short(language, kind, seed, rate, name, begin)
                NEEDED[folder] = [f"{on_short}/trained"]
                training += ["--finetune-from-model", f"{on_short}/checkpoint_best.pt"]
            add(MODELS[kind][0], language, folder, training)


HIGHEST_STACK = python_script("highest_stack.py")
REVERSING = [
    run
    for (name, language), runs in GROUPS.items()
    for run in runs
    if "Nd" in name and language.endswith("-reversal")
]


rule results:
    input:
        tables_and_figures(RESULTS),
        [f"{run}/highest-stack.tsv" for run in REVERSING],
    localrule: True


include: "cfl_results.smk"


rule highest_stack:
    input:
        "{model}/trained",
    output:
        "{model}/highest-stack.tsv",
    message:
        "{wildcards.model}: where the stack is highest"
    params:
        strings=lambda wildcards: f"{corpus_of(wildcards.model)}/corpus/text/valid.txt",
    threads: THREADS
    shell:
        "{HIGHEST_STACK} {params.strings:q} {wildcards.model:q}/checkpoint_best.pt > {output:q}"
