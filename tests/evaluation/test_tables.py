"""What tables in Markdown and in LaTeX do with text; tests/cli/test_plot_table.py has whole tables."""

from __future__ import annotations

import pytest

from fairseq_stack.evaluation import latex, markdown


@pytest.mark.parametrize(
    ("text", "in_markdown", "in_latex"),
    [
        ("Tf+Nd (d = 28)", "Tf+Nd (d = 28)", "Tf+Nd (d = 28)"),
        ("a_b & 50%", "a_b & 50%", r"a\_b \& 50\%"),
        ("w#w^R", "w#w^R", r"w\#w\textasciicircum{}R"),
        (r"\x{y}$~", r"\\x{y}$~", r"\textbackslash{}x\{y\}\$\textasciitilde{}"),
        ("a|b *c* `d`", r"a\|b \*c\* \`d\`", r"a\textbar{}b *c* `d`"),
        ("<2>", "<2>", r"\textless{}2\textgreater{}"),
    ],
)
def test_names_stay_as_they_are(text: str, in_markdown: str, in_latex: str) -> None:
    assert (markdown.escaped(text), latex.escaped(text)) == (in_markdown, in_latex)


def test_negative_numbers() -> None:
    assert (markdown.number("-0.5"), latex.number("-0.5")) == ("-0.5", "$-$0.5")
