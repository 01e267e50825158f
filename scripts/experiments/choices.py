"""Two tasks of choosing, as tables in GLUE's form: the number of a verb, and which of two sentences is right.

python scripts/experiments/choices.py agreement OUT SENTENCES.text SENTENCES.gold [NONCE.text NONCE.gold]
python scripts/experiments/choices.py blimp OUT PARADIGM.jsonl...

agreement: what stands before the verb, from the sentences of Linzen et al. (2016) in the format of Gulordava et al.
(2018), whose own sentences are nonce.tsv; one sentence in ten is in valid and one in test. blimp: 60 pairs of each
paradigm are in train, 10 in valid and 10 in test; the right sentence is the first or the second, at random. Files may
end with .gz.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from fairseq_stack_preprocess.text.streams import read_lines

SINGULAR, PLURAL = ("is", "has", "was", "does"), ("are", "have", "were", "do")
OF_PARADIGM = {"train": 60, "valid": 10, "test": 10}


def number_of(verb: str, other: str) -> str:
    """The number of a verb in the present, which has another form in the other number."""
    if verb in SINGULAR or verb in PLURAL:
        return "singular" if verb in SINGULAR else "plural"
    return "singular" if len(verb) > len(other) else "plural"


def agreement(text: str, gold: str) -> Iterator[tuple[str, str]]:
    """What stands before each verb, and the number of the verb.

    ``gold`` has the place of the verb and its right and its wrong form, in its first columns, or in those of Gulordava
    et al. (2018).
    """
    for sentence, line in zip(*(read_lines(Path(path), keep_separators=True) for path in (text, gold)), strict=True):
        cells = line.split("\t")
        place, verb, other = (cells[i] for i in ((0, 1, 2) if len(cells) == 4 else (3, 6, 7)))
        words = sentence.split()
        yield " ".join(words[: int(place)]), number_of(verb, other)


def pairs(path: str, generator: random.Random) -> Iterator[tuple[str, str, str]]:
    """The pairs of a paradigm in a random order, and which sentence is right."""
    drawn = [json.loads(line) for line in read_lines(Path(path), keep_separators=True)]
    generator.shuffle(drawn)
    for pair in drawn:
        right = generator.randrange(2)
        sentences = [pair["sentence_bad"]] * 2
        sentences[right] = pair["sentence_good"]
        yield *sentences, str(right)


def write(path: Path, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Write a table."""
    path.write_text("".join("\t".join(row) + "\n" for row in (columns, *rows)), encoding="utf-8")


def main(task: str, folder: str, *paths: str) -> None:
    """Write the tables of a task."""
    out = Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    if task == "agreement":
        sentences = list(agreement(*paths[:2]))
        train = [sentence for number, sentence in enumerate(sentences) if number % 10 < 8]
        parts = {"train": train, "valid": sentences[8::10], "test": sentences[9::10]}
        if paths[2:]:
            parts["nonce"] = list(agreement(*paths[2:]))
        for name, rows in parts.items():
            write(out / f"{name}.tsv", ("sentence", "number"), rows)
        return
    generator = random.Random(0)
    drawn = [pairs(path, generator) for path in sorted(paths)]
    for split, number in OF_PARADIGM.items():
        columns = ("sentence1", "sentence2", "right")
        write(out / f"{split}.tsv", columns, [row for rows in drawn for row in islice(rows, number)])


if __name__ == "__main__":
    main(*sys.argv[1:])
