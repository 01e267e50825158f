"""The commands and snippets of docs/surprisal.md: what needs no download runs as it stands, on less data."""

from __future__ import annotations

import csv
import importlib.util
import json
import re
import shlex
from pathlib import Path

from fairseq_stack import cli
from tests.commands.running import Server
from tests.documents import Document, run_block

DOCUMENT = Document("docs/surprisal.md")
TINY = (
    (
        re.compile(r"--train-size \d+ --valid-size \d+ --test-size \d+"),
        "--train-size 200 --valid-size 10 --test-size 10",
    ),
    (re.compile(r"--max-epoch \d+"), "--max-epoch 1"),
)


def test_from_the_text_to_the_plot(tmp_path: Path, server: Server) -> None:
    printed = [run_block(block, tmp_path, server, TINY) for block in DOCUMENT.blocks("bash")[:3]]
    first, *rows = (line.split("\t") for line in printed[1].splitlines() if "\t" in line)
    assert first == ["sentence", "word_id", "word", "n_tokens", "surprisal_bits", "is_unk"]
    assert [row[2] for row in rows] == ["the", "women", "that"]
    assert len((tmp_path / "surprisals.tsv").read_text().splitlines()) == 1 + 2 * 10
    first, *rows = (line.split("\t") for line in printed[2].splitlines() if "\t" in line)
    assert first == ["sentence", "region_id", "region", "n_words", "n_tokens", "surprisal_bits", "is_unk"]
    assert [row[2] for row in rows] == ["the women", "that the cow calls", "thank", "the girl ."]
    empty = [line.split("\t") for line in (tmp_path / "regions.tsv").read_text().splitlines() if "\t\t" in line]
    assert [(row[:4], float(row[5])) for row in empty] == [(["3", "2", "", "0"], 0)]
    *programs, reading = DOCUMENT.blocks("python")
    ending = server.run_program("\n".join(programs), tmp_path)
    assert ending.code == 0, ending.errors
    assert len(re.findall(r"^\d+\.\d{3} nats \S+$", ending.printed, re.MULTILINE)) == 11
    assert (tmp_path / "surprisals.png").stat().st_size > 5000
    check_that_all_words_are_read(reading, tmp_path, server)


def check_that_all_words_are_read(reading: str, folder: Path, server: Server) -> None:
    """Also those that look like something else in a table; without pandas, by what the recipe means."""
    words = ['"', "NA", "'s", "#", "nan", "null", "''", "a"]
    (folder / "sentences.txt").write_text(" ".join(words) + "\n")
    run_block("fairseq-stack surprisal checkpoints/lm sentences.txt > surprisals.tsv", folder, server)
    if importlib.util.find_spec("pandas") is None:
        with open(folder / "surprisals.tsv", encoding="utf-8") as file:
            found = [row["word"] for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)]
    else:
        ending = server.run_program(f"{reading}\nimport json\nprint(json.dumps(list(scores['word'])))", folder)
        assert ending.code == 0, ending.errors
        found = json.loads(ending.printed)
    assert found == words


def test_the_commands_that_need_downloads_are_parsed() -> None:
    blocks = DOCUMENT.blocks("bash")[3:]
    names = []
    for block in blocks:
        program, *words = shlex.split(block.partition(" > ")[0])
        assert program == "fairseq-stack"
        names.append(cli.build_parser().parse_args(words).run.__module__.rpartition(".")[2])
    assert names == ["surprisal", "evaluate_blimp", "evaluate_syntaxgym", "syntax"]
