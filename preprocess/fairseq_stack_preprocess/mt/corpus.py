"""The corpus ``mt``: parallel text for translation, filtered, sampled, and cut into BPE pieces.

What happens, in this order, which is that of DuSell & Chiang (2024), Appendix G.1: every line is normalised
(NFKC, if asked for also Moses' punctuation); pairs are dropped (:class:`.pair_filters.PairFilter`); the
training pairs are sampled; a BPE model is trained on both sides of the training text, or one on each; each
side is cut into the pieces that are frequent on that side of the training text; fairseq-preprocess makes the
dictionary and the binary files.

Files: ``text/{train,valid,test}.{source,target}``, the text before BPE, of which ``text/test.<target>`` is the
reference for sacrebleu; ``pieces/`` with the same names; ``sentencepiece.<language>.model``, which cuts text of
that language, restricted as above; ``sentencepiece.<language>.vocabulary``, how often each piece occurs in the
training text when nothing is restricted; ``data-bin/``.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any

from ..errors import PrepareError, require_at_least, require_at_most
from ..text.binarise import DATA_BIN, TEXT, binarise_translation
from ..text.manifest import Manifest, sha256_of
from ..text.output import corpus_folder, create_text
from ..text.progress import progress, say
from ..text.sentence_pieces import MOST_PIECES, Encoder, made_blank, restricted, train_model, write_vocabulary
from ..text.splits import SPLITS
from ..text.streams import read_lines
from .pair_filters import NOT_SAMPLED, PairFilter, sample_by_index, sample_by_reservoir
from .parallel_text import PairedFiles, Transform, find_files, read_pairs
from .wmt_markup import Pair

CORPUS = "mt"
PIECES = "pieces"

NORMALIZATIONS = ("nfkc", "nfc", "none")
SAMPLE_RULES = ("reservoir", "authors")

LANGUAGE = re.compile(r"[A-Za-z]\w*(-\w+)*")


@dataclass(frozen=True)
class Options:
    """What shapes the corpus.

    Attributes:
        source: the source language, which the names of files end in (likewise ``target``).
        train: prefixes of the training text, one after the other (see :mod:`.parallel_text`).
        valid: prefix of the validation text (likewise ``test``).
        normalization: ``nfkc``, ``nfc`` or ``none``.
        moses: whether Moses' punctuation normalisation (of sacremoses) comes next.
        max_ratio: training pairs whose lengths in characters have a greater ratio are dropped.
        max_chars: pairs with a side of more characters are dropped.
        drop_lone_periods: whether pairs with a side "." are dropped.
        filter_all: whether empty, overlong and lone-period pairs are dropped from valid and test as well, which
            otherwise stay as they are; train never keeps a pair with an empty side.
        sample: number of training pairs to keep; None for all.
        sample_rule: ``reservoir``, or ``authors``: ``random.Random(seed).sample``, in the order drawn.
        seed: of the sample.
        pieces: how many BPE pieces there may be.
        piece_threshold: a side uses only pieces that occur at least so often on that side of train, and single
            characters; 0 for every piece of the model.
        hard_limit: whether too little text for so many pieces is an error.
        piece_normalization: SentencePiece's normalization rule.
        joint: whether both languages share the BPE model and the dictionary.
        strip_cr: whether CR LF is read as LF.
        keep_separators: whether U+0085, U+2028 and the like (:data:`.streams.SEPARATORS`) stay in the text and
            become blanks in pieces, instead of being an error.
        limit: read this many pairs of each split only; None for all.
        binarise: whether fairseq's binary format is written as well.

    Raises:
        PrepareError: a value is out of range.
    """

    source: str
    target: str
    train: tuple[Path, ...]
    valid: Path
    test: Path
    normalization: str = "nfkc"
    moses: bool = False
    max_ratio: float | None = None
    max_chars: int | None = None
    drop_lone_periods: bool = False
    filter_all: bool = False
    sample: int | None = None
    sample_rule: str = "reservoir"
    seed: int = 0
    pieces: int = 8000
    piece_threshold: int = 0
    hard_limit: bool = False
    piece_normalization: str = "identity"
    joint: bool = True
    strip_cr: bool = False
    keep_separators: bool = False
    limit: int | None = None
    binarise: bool = True

    def __post_init__(self) -> None:
        for flag, language in (("--source", self.source), ("--target", self.target)):
            if not LANGUAGE.fullmatch(language):
                raise PrepareError(f"{flag}: expected letters, digits, _ and - such as de or pt-BR, got {language!r}")
        if self.source == self.target:
            raise PrepareError(f"--source and --target are both {self.source}")
        if not self.train:
            raise PrepareError("--train: expected at least one prefix")
        if self.max_ratio is not None and not self.max_ratio >= 1:
            raise PrepareError(f"--max-ratio must be at least 1, got {self.max_ratio:g}")
        for flag, value in (("--max-chars", self.max_chars), ("--sample", self.sample), ("--limit", self.limit)):
            require_at_least(flag, value, 1)
        require_at_least("--seed", self.seed, 0)
        require_at_least("--pieces", self.pieces, 2)
        require_at_most("--pieces", self.pieces, MOST_PIECES)
        require_at_least("--piece-threshold", self.piece_threshold, 0)
        for name, choices in (("normalization", NORMALIZATIONS), ("sample_rule", SAMPLE_RULES)):
            if getattr(self, name) not in choices:
                flag = name.replace("_", "-")
                raise PrepareError(f"--{flag}: expected one of {', '.join(choices)}, got {getattr(self, name)!r}")

    def languages(self) -> tuple[str, str]:
        """Source and target."""
        return self.source, self.target

    def prefixes(self) -> dict[str, tuple[Path, ...]]:
        """The prefixes of each split."""
        return {"train": self.train, "valid": (self.valid,), "test": (self.test,)}

    def filter_of(self, split: str) -> PairFilter:
        """What is dropped from a split."""
        if split == "train":
            return PairFilter(True, self.drop_lone_periods, self.max_ratio, self.max_chars)
        if self.filter_all:
            return PairFilter(True, self.drop_lone_periods, None, self.max_chars)
        return PairFilter()


@dataclass
class SplitReport:
    """What happened to the pairs of a split."""

    read: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    pairs: int = 0
    pieces: dict[str, int] = field(default_factory=dict)
    made_blank: Counter[str] = field(default_factory=Counter)

    def counts(self) -> dict[str, Any]:
        """For the manifest."""
        pieces = {f"{language}_pieces": count for language, count in self.pieces.items()}
        blank = {"white_space_made_blank": dict(sorted(self.made_blank.items()))} if self.made_blank else {}
        return {"pairs_read": self.read, "pairs": self.pairs, **pieces, **blank}


def prepare(options: Options, target: Path, *, force: bool = False, workers: int = 1) -> None:
    """Write the corpus into the folder ``target``, complete or not at all.

    Args:
        options: what shapes it.
        target: the folder.
        force: whether an older corpus there is replaced.
        workers: processes that fairseq-preprocess uses.

    Raises:
        PrepareError: the text is not as it should be (see :mod:`.parallel_text`), all of a split is dropped,
            SentencePiece or fairseq fails, or see :func:`.output.corpus_folder`.
    """
    files = find_splits(options)
    with corpus_folder(target, binarise=options.binarise, force=force) as folder:
        inputs = _describe_inputs(files)
        reports = {split: write_text(split, files[split], options, folder) for split in SPLITS}
        vocabulary = write_pieces(options, folder, reports)
        if options.binarise:
            say(f"{CORPUS}: fairseq-preprocess")
            binarise_translation(folder, *options.languages(), text=PIECES, joined=options.joint, workers=workers)
            vocabulary |= {
                f"{language}_dictionary": _dictionary_size(folder, language) for language in options.languages()
            }
        Manifest(
            corpus=CORPUS,
            options=_without_folders(options),
            splits={split: report.counts() for split, report in reports.items()},
            dropped={split: report.dropped for split, report in reports.items()},
            inputs=inputs,
            binarised=options.binarise,
            packages=("sentencepiece", *(("sacremoses",) if options.moses else ())),
            more={"unicode": unicodedata.unidata_version, "vocabulary": vocabulary},
        ).write(folder)


def languages_for_fairseq(options: Options) -> str | None:
    """The options that fairseq's commands need for these languages; None if they infer them from the file names.

    They take the languages from a name such as ``train.de-en.de.idx`` only if there is one hyphen.
    """
    if "-" in options.source + options.target:
        return f"--source-lang {options.source} --target-lang {options.target}"
    return None


def find_splits(options: Options) -> dict[str, list[PairedFiles]]:
    """The files of each split.

    Raises:
        PrepareError: a prefix has no files, or one side only.
    """
    found = {}
    for split, prefixes in options.prefixes().items():
        try:
            found[split] = [find_files(prefix, *options.languages()) for prefix in prefixes]
        except PrepareError as error:
            raise PrepareError(f"--{split}: {error}") from error
    return found


def _describe_inputs(files: dict[str, list[PairedFiles]]) -> dict[str, str]:
    """The sha256 of each input; the number of a prefix is in its name only where there are several."""
    described: dict[str, str] = {}
    for split, corpora in files.items():
        for number, corpus in enumerate(corpora, start=1):
            place = split if len(corpora) == 1 else f"{split}/{number}"
            described |= {f"{place}/{path.name}": sha256_of(path) for path in corpus.paths()}
    return described


def _without_folders(options: Options) -> dict[str, Any]:
    """The options with the names of prefixes only: the manifest does not say where on this machine they are."""
    names = {"train": [path.name for path in options.train], "valid": options.valid.name, "test": options.test.name}
    return {**asdict(options), **names}


def transforms(options: Options) -> tuple[Transform, Transform]:
    """How source and target text are normalised."""

    def for_language(language: str) -> Transform:
        punctuation = _moses(language) if options.moses else None

        def transform(text: str) -> str:
            # A line feed neither combines nor decomposes: a block is normalised as each of its lines would be.
            if options.normalization == "nfkc":
                text = unicodedata.normalize("NFKC", text)
            elif options.normalization == "nfc":
                text = unicodedata.normalize("NFC", text)
            return text if punctuation is None else "\n".join(map(punctuation, text.split("\n")))

        return transform

    return for_language(options.source), for_language(options.target)


def _moses(language: str) -> Transform:
    from sacremoses import MosesPunctNormalizer

    normalizer = MosesPunctNormalizer(lang=language.partition("-")[0])

    def normalize(line: str) -> str:
        return str(normalizer.normalize(line))

    return normalize


def pairs_of(split: str, files: Iterable[PairedFiles], options: Options, report: SplitReport) -> Iterator[Pair]:
    """Yield the pairs of a split that pass the filters, and note in ``report`` what was read and dropped."""
    change = transforms(options)
    corpora = (
        read_pairs(
            corpus, *options.languages(), change, strip_cr=options.strip_cr, keep_separators=options.keep_separators
        )
        for corpus in files
    )
    pairs = islice(chain.from_iterable(corpora), options.limit)

    def counted() -> Iterator[Pair]:
        for pair in progress(pairs, label=f"{CORPUS}: {split}", total=None):
            report.read += 1
            yield pair

    yield from options.filter_of(split).kept(counted(), report.dropped)


def write_text(split: str, files: list[PairedFiles], options: Options, folder: Path) -> SplitReport:
    """Write the text of a split, sampled if it is to be, and return what happened to it.

    Raises:
        PrepareError: no pair is left.
    """
    report = SplitReport()

    def pairs() -> Iterator[Pair]:
        report.read = 0
        report.dropped.clear()
        return pairs_of(split, files, options, report)

    chosen: Iterable[Pair]
    if split == "train" and options.sample is not None:
        if options.sample_rule == "authors":
            chosen, count = sample_by_index(pairs, options.sample, options.seed)
        else:
            chosen, count = sample_by_reservoir(pairs(), options.sample, options.seed)
        report.dropped[NOT_SAMPLED] = count - len(chosen)
        if count < options.sample:
            say(f"{CORPUS}: {split} has {count} pairs only, of which --sample {options.sample} keeps all")
    else:
        chosen = pairs()
    report.pairs = _write_pairs(chosen, [_side(folder / TEXT, split, language) for language in options.languages()])
    if not report.pairs:
        reasons = ", ".join(f"{reason}: {count}" for reason, count in sorted(report.dropped.items()))
        raise PrepareError(f"--{split}: none of the {report.read} pairs read is left ({reasons})")
    return report


def _write_pairs(pairs: Iterable[Pair], paths: list[Path]) -> int:
    """Write each side into a file of its own and return the number of pairs."""
    count = 0
    source_path, target_path = paths
    with create_text(source_path) as source_file, create_text(target_path) as target_file:
        for source, target in pairs:
            source_file.write(f"{source}\n")
            target_file.write(f"{target}\n")
            count += 1
    return count


def _side(folder: Path, split: str, language: str) -> Path:
    return folder / f"{split}.{language}"


def _lines(path: Path) -> Iterator[str]:
    """The lines of a text that this module wrote, as SentencePiece is given them."""
    return made_blank(read_lines(path, keep_separators=True))


def write_pieces(options: Options, folder: Path, reports: dict[str, SplitReport]) -> dict[str, int]:
    """Train BPE on the training text, write models, vocabularies and the pieces of every split.

    Returns:
        For each language the number of different pieces in its training text.
    """
    (folder / PIECES).mkdir()
    models = _train_models(options, folder)
    used = {}
    for language in options.languages():
        say(f"{CORPUS}: pieces of {language}")
        encoder = Encoder(_restrict(models[language], options, folder, language))
        for split, report in reports.items():
            path = _side(folder / PIECES, split, language)
            counts = _encode(encoder, _side(folder / TEXT, split, language), path, report)
            report.pieces[language] = counts.total()
            if split == "train":
                used[f"{language}_distinct_pieces"] = len(counts)
    return used


def _train_models(options: Options, folder: Path) -> dict[str, bytes]:
    """The model of each language, as trained; it is one and the same for both if they share it."""
    sides = [options.languages()] if options.joint else [(language,) for language in options.languages()]
    models: dict[str, bytes] = {}
    for languages in sides:
        say(f"{CORPUS}: training BPE on {' and '.join(languages)}")
        model = train_model(
            chain.from_iterable(_lines(_side(folder / TEXT, "train", language)) for language in languages),
            pieces=options.pieces,
            hard_limit=options.hard_limit,
            normalization=options.piece_normalization,
        )
        models |= dict.fromkeys(languages, model)
    return models


def _restrict(model: bytes, options: Options, folder: Path, language: str) -> bytes:
    """Write the vocabulary of a language, and its model restricted to frequent pieces, which is returned."""
    vocabulary = Encoder(model).vocabulary(_lines(_side(folder / TEXT, "train", language)))
    write_vocabulary(vocabulary, folder / f"sentencepiece.{language}.vocabulary")
    if options.piece_threshold:
        model = restricted(model, lambda piece: vocabulary[piece] >= options.piece_threshold)
    (folder / f"sentencepiece.{language}.model").write_bytes(model)
    return model


def _encode(encoder: Encoder, text: Path, path: Path, report: SplitReport) -> Counter[str]:
    """Write the pieces of a text and return how often each occurs."""
    used: Counter[str] = Counter()
    with create_text(path) as file:
        for pieces in encoder.encode(made_blank(read_lines(text, keep_separators=True), report.made_blank)):
            used.update(pieces)
            file.write(" ".join(pieces) + "\n")
    return used


def _dictionary_size(folder: Path, language: str) -> int:
    """The number of symbols of fairseq's dictionary, its four special ones included."""
    with open(folder / DATA_BIN / f"dict.{language}.txt", encoding="utf-8", newline="\n") as file:
        return sum(1 for _ in file) + 4
