"""From text to fairseq's binary format, by fairseq's own ``fairseq-preprocess``."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from ..errors import PrepareError
from ..layout import DATA_BIN, SPLITS, SUFFIX, TEXT


def require_fairseq() -> None:
    """Raise PrepareError if fairseq is not installed: to be called before work that ends with binarising."""
    if importlib.util.find_spec("fairseq_cli") is None:
        remedy = "pip install --no-build-isolation 'fairseq_stack[fairseq]'"
        raise PrepareError(f"fairseq is not installed ({remedy}); --no-binarise writes text only")


def binarise_translation(
    folder: Path,
    source: str,
    target: str,
    *,
    text: str = TEXT,
    dictionaries: Sequence[Path] = (),
    further: Sequence[str] = (),
    workers: int = 1,
) -> None:
    """Binarise ``<text>/{train,valid,test}.{source,target}`` into ``data-bin``.

    Args:
        folder: where both are.
        source: the source language (likewise ``target``).
        text: the folder with the tokens.
        dictionaries: files in fairseq's format, one for both languages or one for each; empty: a joint dictionary of
            the words of train, frequent ones first.
        further: the names of further splits, which are binarised as well.
        workers: processes; the result does not depend on their number.
    """
    options = ["--source-lang", source, "--target-lang", target]
    options += ["--joined-dictionary"] if len(dictionaries) < 2 else []
    _preprocess(folder, options, dictionaries, suffix="", text=text, further=further, workers=workers)


def binarise_language(
    folder: Path, *, dictionary: Path | None = None, further: Sequence[str] = (), splits: Sequence[str] = SPLITS
) -> None:
    """Binarise ``text/SPLIT.txt`` of the splits into ``data-bin`` for language modelling.

    ``dictionary`` is a file in fairseq's format; None: the dictionary has the words of train, frequent ones first.
    ``further`` are the names of further splits, which are binarised as well.
    """
    dictionaries = [] if dictionary is None else [dictionary]
    _preprocess(folder, ["--only-source"], dictionaries, suffix=f".{SUFFIX}", further=further, splits=splits)


def _preprocess(
    folder: Path,
    options: list[str],
    dictionaries: Sequence[Path],
    *,
    suffix: str,
    text: str = TEXT,
    further: Sequence[str] = (),
    splits: Sequence[str] = SPLITS,
    workers: int = 1,
) -> None:
    """Run fairseq-preprocess, with no made-up words in the dictionary (``--padding-factor 1``)."""
    data_bin = folder / DATA_BIN
    words = [*options, "--destdir", DATA_BIN, "--padding-factor", "1", "--workers", str(workers)]
    for split in splits:
        names = [split, *further] if split == "test" else [split]
        words += [f"--{split}pref", ",".join(f"{text}/{name}{suffix}" for name in names)]
    for flag, dictionary in zip(("--srcdict", "--tgtdict"), dictionaries, strict=False):
        words += [flag, str(dictionary.absolute())]
    result = run_preprocess(words, folder)
    if result.returncode != 0:
        last = (result.stderr.strip() or result.stdout.strip() or "no message").splitlines()[-1]
        raise PrepareError(f"fairseq-preprocess, writing {data_bin}, failed with exit code {result.returncode}: {last}")
    # Its log holds paths and dates: the only file that would differ between two runs.
    (data_bin / "preprocess.log").unlink(missing_ok=True)
    for number, name in enumerate(further, start=1):  # which it calls test1, test2, ...
        for path in list(data_bin.glob(f"test{number}.*")):
            path.rename(path.with_name(path.name.replace(f"test{number}", name, 1)))


def run_preprocess(arguments: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run fairseq-preprocess in a process that ends whenever this one ends.

    It runs in the folder of the corpus, whose name may have commas, at which fairseq cuts lists of files.
    """
    # -P: Python would look for modules in the folder of the script first.
    command = [sys.executable, "-P", str(Path(__file__).with_name("child.py")), str(os.getpid()), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
