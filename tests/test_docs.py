"""Pages of documentation: their commands and snippets run as they stand, on less data and for fewer epochs, and their
links lead somewhere.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fairseq_stack import cli
from tests.commands.running import Server
from tests.documents import REPOSITORY, Document, Replacement, run_block
from tests.gpt2_folders import save_gpt2, save_tokenizer

SENTENCES = ["der Hund schläft .", "die Katze , die der Hund sieht , schläft .", "die Kinder lesen .", "Anna liest ."]
SIZES = {"train": 10, "valid": 2, "test": 1}
TREE = "(S (NP (DT The) (NN dog)) (VP (VBZ sleeps)) (. .))\n"
ANSWERS = "(S (UH Yes) (. .))\n(S (UH No) (. .))\n"
PAIRS = """\
index\tsentence1\tsentence2\tlabel
0\tThe dog sleeps.\tThe dog sleeps.\tentailment
1\tThe dog sleeps.\tThe cat sleeps.\tnot_entailment
"""
ONE_EPOCH = (re.compile(r"--max-epoch \d+"), "--max-epoch 1")
SMALL_BRACKETS = (
    "--bracket-types 2 --train-size 40 --valid-size 5 --test-size 3 --distance-size 3 --depth-to 15 --depth-strings 1"
)


def save_small_gpt2(folder: Path) -> None:
    save_tokenizer(folder / "gpt2", TREE)
    save_gpt2(folder / "gpt2", n_layer=2, n_positions=128)


@dataclass(frozen=True)
class Pages:
    """Pages whose blocks of shell commands run one after the other, and then their snippets of Python as one program.

    Attributes:
        paths: the pages; later ones use what earlier ones made.
        tiny: what differs from the page: numbers, mostly.
        prints: what is found in the output.
        makes: files that are there in the end.
        files: text files that are there in the beginning.
        left_out: found in the blocks that are not run, since other tests run them or they need a download.
        prepare: makes other files that are there in the beginning, in the folder that it is given.
    """

    paths: tuple[str, ...]
    tiny: tuple[Replacement, ...]
    prints: tuple[str, ...]
    makes: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    left_out: str = "scripts/"
    prepare: Callable[[Path], None] = lambda folder: None


RUN_TOGETHER = [
    Pages(
        ("README.md", "docs/models.md"),
        (
            ONE_EPOCH,
            (re.compile(r"(--arch stack_transformer_\w+)"), r"\1 --decoder-embed-dim 16 --decoder-ffn-embed-dim 16"),
            (
                re.compile(r"(--arch stack_transformer_(nd|tf))"),
                r"--encoder-embed-dim 16 --encoder-ffn-embed-dim 16 \1",
            ),
            (re.compile(r"checkpoint\{6\.\.10\}"), "checkpoint1"),
            (re.compile(r"--limit \d+"), "--limit 50"),
            (re.compile(r"(evaluate-cfl \S+)"), r"\1 --samples 5 --bootstrap 10"),
        ),
        (r"^H-3\t", r"Perplexity: \d+\.\d+", "valid on 'test' subset", r"^tensor\(\[1\.0.*, 2\.5000\]\)$"),
        (
            *(
                "checkpoints/mt/average.pt",
                "checkpoints/mixed/checkpoint_best.pt",
                "checkpoints/hydra/checkpoint_best.pt",
            ),
            *("weights.png", "lengths.png", "training.png"),
        ),
        {
            f"text/{split}.{ending}": "".join(f"{line}\n" for line in lines) * times
            for split, times in SIZES.items()
            for ending, lines in {"de": SENTENCES, "en": SENTENCES, "txt": SENTENCES}.items()
        },
    ),
    Pages(
        ("docs/tutorial.md",),
        (
            (re.compile(r"--train-size \d+ --valid-size \d+"), "--train-size 200 --valid-size 10"),
            (re.compile(r"--test-size \d+"), "--test-size 10"),
            (re.compile(r"--max-epoch [24]\b"), "--max-epoch 1"),
            (re.compile(r"--max-epoch 6\b"), "--max-epoch 2"),
        ),
        (
            *("begin training epoch 1", "begin training epoch 2", '"name": "BLEU"'),
            *(r"^D-0\t", r"Perplexity: \d+\.\d+", r"^tensor\(-\d+\.\d+\) the women"),
        ),
        ("out/hypotheses.en", "checkpoints/mt/checkpoint_last.pt", "weights.png", "lm.png"),
    ),
    Pages(
        ("docs/inspection.md",),
        (
            (re.compile(r"--valid-size \d+"), "--valid-size 10"),
            (re.compile(r'"train": 4000, "valid": 200, "test": 200'), '"train": 50, "valid": 10, "test": 10'),
            ONE_EPOCH,
        ),
        (r"^\d+\.\d%( (push|replace|pop)){21}$", r"^0\.\d{3} .*sees.*$"),
        (
            *(f"{name}.png" for name in ("runs", "operations", "sup", "readings", "tape", "tree", "verb")),
            *("line.svg", "means.tsv", "numbers.json", "transitions.tsv", "parses.txt", "parse.json"),
            *("contents.gv", "0110.gv"),
        ),
    ),
    Pages(
        ("docs/surprisal.md",),
        (
            (
                re.compile(r"--train-size \d+ --valid-size \d+ --test-size \d+"),
                "--train-size 200 --valid-size 10 --test-size 10",
            ),
            ONE_EPOCH,
        ),
        (r"^sentence\tword_id\tword\t", r"^\d+\.\d{3} nats \S+$"),
        ("surprisals.tsv", "surprisals.png"),
        left_out="checkpoints/pushdown|blimp|suites",
    ),
    Pages(("docs/own-models.md",), (), (r"^300, loss 0\.\d\d, 15 letters \d+%",), ()),
    Pages(
        ("docs/transduction.md",),
        ((re.compile(r"--task reversal --seed 1"), "--task reversal --seed 1 --limit 10"), ONE_EPOCH),
        (r"^H-9\t\S+\t[012]( [012])*$", r"task:reversal\|split:test\|strings:10\|", r"^[012]( [012]){5}$"),
        ("reversal.json", "reversal.png", "checkpoints/own/checkpoint_best.pt"),
    ),
    Pages(
        ("docs/questions.md",),
        (
            (re.compile(r"(--task question-formation)"), r"\1 --limit 60"),
            (re.compile(r"--save-interval-updates \d+"), "--save-interval-updates 1"),
            (re.compile(r"--max-epoch \d+"), "--max-update 2"),
        ),
        (r"^\| full sentence ", r"follow a relative pronoun is right for RSt and RSi alone: \d+\.\d\d% of"),
        ("pairs.csv", "reading.png"),
    ),
    Pages(
        ("docs/pushdown.md", "docs/classification.md"),
        (
            (re.compile(r"--max-epoch \d+|--max-update \d+"), "--max-update 2"),
            (re.compile(r"--decoder-embed-dim \d+ --decoder-ffn-embed-dim \d+"), ""),
            (re.compile(r"--stack-layers 4xpushdown"), "--stack-layers pushdown --decoder-embed-dim 16"),
            (re.compile(r"--stack-layers 2xsdpa,nd\S+"), "--stack-layers nd-2-2-3 --decoder-embed-dim 16"),
            (re.compile(r"--train-size \d+"), SMALL_BRACKETS),
        ),
        (
            r"^\| F1 without punctuation +\| +\d+\.\d\d % \|",
            r"^\| closing brackets +\| number \| gold parses \|",
            r"^\| best runs +\| +\d+\.\d\d \|",
            r"^\| F1 \(Yes\) +\| +\d+\.\d\d % \|",
        ),
        ("trees.json", "rte.json", "prompts.csv"),
        {f"{split}.trees": TREE * 8 + ANSWERS * 2 for split in SIZES}
        | {f"RTE/{split}.tsv": PAIRS for split in ("train", "dev")},
    ),
    Pages(
        ("docs/gpt2.md",),
        (
            (re.compile(r"--stack-layers 6x(\S+,)6x(\S+)|--stack-layers 6x(\S+),5xsdpa"), r"--stack-layers \1\2\3"),
            (re.compile(r"--tokens-per-sample \d+"), "--tokens-per-sample 128"),
            (re.compile(r"--max-update \d+"), "--max-update 1"),
            ONE_EPOCH,
        ),
        (
            *(r"^\| beam of 10 +\| +\d+\.\d\d \|", r"^1\t4\t\.\t\d\t\d+\.\d+\t0$"),
            r"^\| F1 \(Yes\) +\| +\d+\.\d\d % \|",
        ),
        ("checkpoints/gpt2/tokenizer.json", "checkpoints/gpt2-nd/checkpoint_best.pt"),
        {f"{split}.trees": TREE * 8 for split in SIZES} | {f"RTE/{split}.tsv": PAIRS for split in ("train", "dev")},
        left_out="hf download",
        prepare=save_small_gpt2,
    ),
]


@pytest.mark.parametrize("pages", RUN_TOGETHER, ids=lambda pages: Path(pages.paths[-1]).stem)
def test_the_commands_and_snippets_run(pages: Pages, tmp_path: Path, server: Server) -> None:
    """One test for pages that build on each other."""
    (tmp_path / "examples").symlink_to(REPOSITORY / "examples")
    for name, text in pages.files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    pages.prepare(tmp_path)
    shell, python = (
        [block for path in pages.paths for block in Document(path).blocks(language)] for language in ("bash", "python")
    )
    printed = ""
    for block in shell:
        if not re.search(pages.left_out, block):
            printed += run_block(block, tmp_path, server, pages.tiny)
        elif block.startswith("fairseq-stack"):
            cli.build_parser().parse_args(shlex.split(block.partition(" > ")[0])[1:])
    if python:
        ending = server.run_program("\n".join(python), tmp_path)
        assert ending.code == 0, ending.errors
        printed += ending.printed
    assert [pattern for pattern in pages.prints if not re.search(pattern, printed, re.MULTILINE)] == []
    assert [name for name in pages.makes if not (tmp_path / name).exists()] == []


def test_shapes_of_trees(tmp_path: Path) -> None:
    """What parsers print is the same tree in each of the shapes of docs/pushdown.md."""
    (shapes,) = Document("docs/pushdown.md").blocks("")
    (tmp_path / "trees").write_text(shapes, encoding="utf-8")
    options = [word for split in SIZES for word in (f"--{split}", str(tmp_path / "trees"))]
    assert cli.main(["prepare", "treebank", str(tmp_path / "out"), *options, "--no-binarise"]) == 0
    assert (tmp_path / "out" / "text" / "train.attach").read_text() == "1 1 3 2\n" * 3
    assert (tmp_path / "out" / "text" / "train.words").read_text() == "The dog sleeps .\n" * 3


DOCUMENTS = [
    Document(str(path.relative_to(REPOSITORY)))
    for pages in ("*.md", "docs/**/*.md", "examples/**/*.md")
    for path in REPOSITORY.glob(pages)
]
# Folders of the repository. What pages name in others is on a reader's machine.
PATH = re.compile(r"(?<![\w./-])((?:fairseq_stack|preprocess|scripts|tests|examples)/[\w./-]*\w)(?![\w*{<])")


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: page.path.name)
def test_links_and_paths(page: Document) -> None:
    assert page.broken_links() == []
    missing = [path for path in PATH.findall(page.text) if not (REPOSITORY / path).exists()]
    assert [path for path in missing if not re.search(r"[A-Z]{4}", path)] == [], "NAME stands for a name"
