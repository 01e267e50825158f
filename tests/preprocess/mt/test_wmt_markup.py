"""WMT's test sets in .sgm: what is read, and sides that do not fit."""

from __future__ import annotations

import html
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies

from fairseq_stack_preprocess.errors import PrepareError
from fairseq_stack_preprocess.mt.wmt_markup import read_sgm, read_sgm_pairs

SGM = """\
<srcset setid="newstest2017" srclang="any">
<doc sysid="ref" docid="abendzeitung.49434" genre="news" origlang="de">
<p>
<seg id="1">Erster &amp; &quot;einziger&quot; Satz</seg>
<seg id="2"> zweiter: 1 &lt; 2, AT&T &#8211; \x85 </seg>
</p>
</doc>
<DOC docid='b'><hl><SEG ID=1>drei</SEG></hl><seg id="2">vier
in zwei Zeilen</seg></DOC>
</srcset>
"""


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


def test_sgm(tmp_path: Path) -> None:
    segments = list(read_sgm(write(tmp_path / "a.sgm", SGM), keep_separators=True))
    assert [(segment.document, segment.number, segment.line) for segment in segments] == [
        ("abendzeitung.49434", "1", 4),
        ("abendzeitung.49434", "2", 5),
        ("b", "1", 8),
        ("b", "2", 8),
    ]
    assert [segment.text for segment in segments] == [
        'Erster & "einziger" Satz',
        " zweiter: 1 < 2, AT&T \u2013 \x85 ",
        "drei",
        "vier in zwei Zeilen",
    ]


@hypothesis.given(
    texts=strategies.lists(strategies.text(strategies.characters(codec="utf-8", exclude_characters="\n\r\0"))),
)
def test_sgm_returns_any_text(texts: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    segments = "".join(f'<seg id="{number}">{html.escape(text)}</seg>\n' for number, text in enumerate(texts))
    path = write(tmp_path_factory.mktemp("sgm") / "a.sgm", f'<doc docid="d">\n{segments}</doc>\n')
    assert [segment.text for segment in read_sgm(path, keep_separators=True)] == texts


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ('<seg id="1">a</seg>\n<seg id="2">b</seg>', '<seg id="1">A</seg>', "{s}, line 3: segment 2 .* missing in {t}"),
        ('<seg id="1">a</seg>', '<seg id="1">A</seg>\n<seg id="2">B</seg>', "{t}, line 3: segment 2 .* missing in {s}"),
        ('<seg id="1">a</seg>', '<seg id="3">A</seg>', "{t}, line 2: segment 3 of document d, but line 2 of {s} has"),
        ('<seg id="1">a', '<seg id="1">A</seg>', "{s}, line 3: the tag </doc> within segment 1 of document d"),
        ('<seg id="1">a <b>x</b></seg>', '<seg id="1">A</seg>', "{s}, line 2: the tag <b> within segment 1"),
    ],
    ids=["no-target", "no-source", "other-number", "no-end", "tag"],
)
def test_sgm_that_does_not_fit(source: str, target: str, message: str, tmp_path: Path) -> None:
    paths = [
        write(tmp_path / name, f'<doc docid="d">\n{text}\n</doc>\n') for name, text in (("s", source), ("t", target))
    ]
    with pytest.raises(PrepareError, match=message.format(s=paths[0], t=paths[1])):
        list(read_sgm_pairs(*paths))


def test_sgm_that_ends_within_a_segment(tmp_path: Path) -> None:
    with pytest.raises(PrepareError, match=r"a\.sgm, line 2: segment 1 of document \? does not end"):
        list(read_sgm(write(tmp_path / "a.sgm", 'x\n<seg id="1">a\nb\n')))


def test_separators_are_refused_unless_they_are_kept(tmp_path: Path) -> None:
    with pytest.raises(PrepareError, match=r"a\.sgm, line 5: U\+0085, which other programs"):
        list(read_sgm(write(tmp_path / "a.sgm", SGM)))
    with pytest.raises(PrepareError, match=r"b\.sgm, line 5: U\+2028, which other programs"):
        list(read_sgm(write(tmp_path / "b.sgm", SGM.replace("\x85", "&#x2028;"))))
