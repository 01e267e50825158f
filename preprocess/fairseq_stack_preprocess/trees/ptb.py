"""The corpus ``ptb``: the Penn Treebank as Dyer et al. (2016) prepared it, for language modelling with or
without trees.

Input: the Wall Street Journal's ``.mrg`` files of LDC99T42, as they are on the disk (section folders) or flat.
Sections 02-21 are train, 24 is valid, 23 is test. Traces, function tags and indices are removed. Words that
occur once in train, and words of valid and test that are not known from train, become classes
(:mod:`.word_classes`). Files: see :mod:`.side_files`; ``.txt`` has the classes, ``.words`` and ``.trees`` the
words themselves.

``slips``: two things in the authors' data that look like accidents but are in every published number. In
section 24, ``wsj_2424.mrg`` also replaces ``wsj_2423.mrg``, and sentence 33,571 of train, which
begins with a dash, is missing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ..errors import PrepareError, require_ranges
from ..layout import SPLITS, TEXT
from ..progress import say
from ..text.binarise import binarise_language
from ..text.manifest import Manifest, options_without, sha256_of
from ..text.output import corpus_folder
from .side_files import (
    Sentence,
    SplitReport,
    TreeFile,
    find_mrg_files,
    read_sentences,
    write_classes_as_text,
    write_split,
)
from .word_classes import Fingerprint, known_words

CORPUS = "ptb"
SECTIONS = {"train": range(2, 22), "valid": (24,), "test": (23,)}

DYER_2016 = Fingerprint(23_832, 950_012, "3b7c9723e77c498c79edc39966fec40bc4e60454d248c0e3535c3eb30844bd7b")
"""The training text of Dyer et al. (2016), slips included.

From the word counts that the authors published (``clusters-train-berk.txt`` of clab/rnng), in which the
sentence that is missing was taken for the word ``NT(NP)``, and ``variable-rate`` counts as known, though
without that sentence it occurs once. 23,832 is also what the parameter counts of DuSell & Chiang (2024) imply.
"""

SLIP_FILE, SLIP_STAND_IN = "wsj_2423", "wsj_2424"
SLIP_SENTENCE = 33_571
SLIP_REASON = f"sentence {SLIP_SENTENCE}, left out as by Dyer et al. (2016)"


@dataclass(frozen=True)
class Options:
    """The options of the corpus.

    Attributes:
        raw: the folder with the ``.mrg`` files, at any depth.
        slips: whether the accidents in the authors' data are reproduced.
        limit: the maximum number of sentences in each split, the first ones; None: all.
        binarise: whether fairseq's binary format is written as well.

    Raises:
        PrepareError: a value is out of range.
    """

    raw: Path
    slips: bool = False
    limit: int | None = None
    binarise: bool = True

    def __post_init__(self) -> None:
        require_ranges(self, limit=(1, None))


def find_files(options: Options) -> dict[str, list[TreeFile]]:
    """The files of each split, sorted by path, with ``slips`` applied.

    Raises:
        PrepareError: ``raw`` is not a folder, has no ``.mrg`` file for one of the splits, one whose section is
            not known, or two of the same name in a section.
    """
    sections = _files_by_section(options.raw)
    splits = {
        split: sorted((file for section in wanted for file in sections.get(section, ())), key=lambda file: file.name)
        for split, wanted in SECTIONS.items()
    }
    for split, files in splits.items():
        if not files:
            wanted, there = _name_sections(SECTIONS[split]), _name_sections(sections)
            raise PrepareError(
                f"--raw {options.raw}: no .mrg file of section {wanted} ({split}); there are sections {there}"
            )
    return {split: _with_slip(files) if options.slips else files for split, files in splits.items()}


def missing_sections(files: Mapping[str, Sequence[TreeFile]]) -> list[int]:
    """The sections of the splits that have no file."""
    there = {_section_of(Path(file.name)) for split in SPLITS for file in files[split]}
    return [section for sections in SECTIONS.values() for section in sections if section not in there]


def _files_by_section(raw: Path) -> dict[int, list[TreeFile]]:
    if not raw.is_dir():
        raise PrepareError(f"--raw {raw} is not a folder")
    paths = find_mrg_files(raw)
    if not paths:
        raise PrepareError(f"--raw {raw} holds no .mrg file")
    sections: dict[int, list[TreeFile]] = {}
    seen: dict[tuple[int, str], Path] = {}
    for path in paths:
        relative = path.relative_to(raw)
        section = _section_of(relative)
        if section is None:
            raise PrepareError(
                f"{path}: expected a name such as wsj_0203.mrg, or a folder named by its section, such as 02"
            )
        other = seen.setdefault((section, _stem(path)), path)
        if other is not path:
            raise PrepareError(f"{other} and {path} are two copies of one file of section {section:02}")
        sections.setdefault(section, []).append(TreeFile(path, relative.as_posix()))
    return sections


def _stem(path: Path) -> str:
    """The file's name without its suffixes."""
    return path.name.lower().split(".")[0]


def _section_of(relative: Path) -> int | None:
    """The section of a file: from the innermost folder with two digits for a name, otherwise from its own name."""
    for folder in reversed(relative.parts[:-1]):
        if re.fullmatch(r"\d\d", folder, flags=re.ASCII):
            return int(folder)
    match = re.fullmatch(r"wsj_(\d\d)\d\d", _stem(relative), flags=re.ASCII)
    return int(match[1]) if match else None


def _name_sections(sections: Iterable[int]) -> str:
    return ", ".join(f"{section:02}" for section in sorted(sections))


def _with_slip(files: list[TreeFile]) -> list[TreeFile]:
    """The files with ``wsj_2424`` instead of ``wsj_2423``, if both exist."""
    stand_in = next((file for file in files if _stem(file.path) == SLIP_STAND_IN), None)
    return [stand_in if stand_in and _stem(file.path) == SLIP_FILE else file for file in files]


def _without_slip_sentence(sentences: Iterable[Sentence], dropped: Counter[str]) -> Iterator[Sentence]:
    for number, sentence in enumerate(sentences, start=1):
        if number == SLIP_SENTENCE:
            dropped[SLIP_REASON] += 1
        else:
            yield sentence


def prepare(options: Options, folder: Path, *, force: bool = False) -> None:
    """Write the corpus into ``folder``, complete or not at all.

    Raises:
        PrepareError: see :func:`find_files`, :func:`.brackets.read_trees` and :func:`.output.corpus_folder`; a
            split has no sentence; or binarising failed.
    """
    files = find_files(options)
    missing = missing_sections(files)
    if missing:
        say(f"{CORPUS}: no file of section {_name_sections(missing)}: this is not the whole treebank")
    with corpus_folder(folder, binarise=options.binarise, force=force) as new:
        text = new / TEXT
        reports = {split: _write(text, split, files[split], options) for split in SPLITS}
        known = known_words(reports["train"].words)
        tokens = {split: write_classes_as_text(text, split, known) for split in SPLITS}
        if options.binarise:
            binarise_language(new)
        _manifest(options, files, reports, tokens).write(new)


def _write(text: Path, split: str, files: Sequence[TreeFile], options: Options) -> SplitReport:
    sentences: Iterator[Sentence] = read_sentences(files)
    dropped = Counter[str]()
    if options.slips and split == "train":
        sentences = _without_slip_sentence(sentences, dropped)
    return write_split(text, split, sentences, corpus=CORPUS, limit=options.limit, dropped=dropped)


def _manifest(
    options: Options,
    files: Mapping[str, Sequence[TreeFile]],
    reports: Mapping[str, SplitReport],
    tokens: Mapping[str, Counter[str]],
) -> Manifest:
    splits = {split: {"files": len(files[split]), **reports[split].counts()} for split in SPLITS}
    for split, counts in tokens.items():
        splits[split]["distinct_tokens"] = len(counts)
        splits[split]["classes"] = sum(n for token, n in counts.items() if token not in reports[split].words)
    fingerprint = Fingerprint.of(tokens["train"])
    inputs = {file.name: file.path for split in SPLITS for file in files[split]}
    return Manifest(
        corpus=CORPUS,
        options=options_without(options, "raw"),
        splits=splits,
        dropped={split: report.dropped for split, report in reports.items()},
        inputs={name: sha256_of(path) for name, path in sorted(inputs.items())},
        more={"fingerprint_of_train": {**asdict(fingerprint), "is_dyer_2016": fingerprint == DYER_2016}},
    )
