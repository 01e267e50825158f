"""Write sentences with relative clauses, and their trees, to {train,valid,test}.trees in the current folder."""

import random

NOUNS = {"s": ["dog", "girl", "farmer", "senator"], "p": ["dogs", "girls", "farmers", "senators"]}
VERBS = {"s": ["sees", "thanks", "hears"], "p": ["see", "thank", "hear"]}
ENDINGS = {"s": ["sleeps", "laughs"], "p": ["sleep", "laugh"]}


def phrase(number, depth):
    noun = f"(NP (DT the) (NN {random.choice(NOUNS[number])}))"
    kind = random.random()
    if depth == 0 or kind < 0.4:
        return noun
    other = random.choice("sp")
    if kind < 0.6:
        return f"(NP {noun} (PP (IN near) {phrase(other, depth - 1)}))"
    verb = f"(VB {random.choice(VERBS[other if kind < 0.8 else number])})"
    clause = f"(S {phrase(other, depth - 1)} {verb})" if kind < 0.8 else f"(VP {verb} {phrase(other, depth - 1)})"
    return f"(NP {noun} (SBAR (WDT that) {clause}))"


def sentence():
    number = random.choice("sp")
    verb = f"(VP (VB {random.choice(VERBS[number])}) {phrase(random.choice('sp'), 1)})"
    if random.random() < 0.5:
        verb = f"(VP (VB {random.choice(ENDINGS[number])}))"
    return f"(S {phrase(number, 2)} {verb} (. .))"


random.seed(1)
for name, size in {"train": 4000, "valid": 200, "test": 200}.items():
    with open(f"{name}.trees", "w") as file:
        file.writelines(f"{sentence()}\n" for _ in range(size))
