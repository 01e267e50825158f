"""Commands that prepare small corpora, and the files that they read."""

from __future__ import annotations

S = "fairseq-stack"
SMALL = "--train-size 4 --valid-size 4 --test-size 4 --no-binarise"
NESTED = f"{S} prepare nested-translation"
REVERSAL = f"{S} prepare reversal"
TRANSFORMATIONS = f"{S} prepare transformations out {SMALL} --gen-size 4"
CFL_SIZES = (
    "--min-length 2 --max-length 6 --test-min-length 2 --test-max-length 6 --train-size 4 --valid-size 4 "
    "--test-per-length 1 --no-binarise"
)
CFL = f"{S} prepare cfl"
DYCK = f"{CFL} out --task dyck"
GRAMMAR = f"{CFL} out --grammar g {CFL_SIZES}"
MT = f"{S} prepare mt out --source de --target en --train c --valid c --test c --pieces 40 --no-binarise"
TREES = f"{S} prepare treebank out --train t --valid t --test t --no-binarise"
PTB = f"{S} prepare ptb out --raw raw --no-binarise"

PAIRS = {"c.de": "Das ist es.\nUnd das auch.\n", "c.en": "This is it.\nAnd this, too.\n"}
TREE = "(S (NP (DT The) (NN dog)) (VP (VBZ barks)))\n"
PTB_FILES = {f"raw/{section}/wsj_{section}01.mrg": TREE * 3 for section in ("02", "23", "24")}


def grammar(text: str | bytes) -> dict[str, str | bytes]:
    return {"g": text}
