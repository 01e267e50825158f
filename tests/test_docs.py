"""The links of all pages lead somewhere, and the files that they name exist."""

from __future__ import annotations

import re

import pytest

from tests.documents import REPOSITORY, Document

PAGES = [
    Document(str(path.relative_to(REPOSITORY))) for path in [*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/**/*.md")]
]
# Folders of the repository. What pages name in others is on a reader's machine.
PATH = re.compile(r"(?<![\w./-])((?:fairseq_stack|preprocess|scripts|tests|examples)/[\w./-]*\w)(?![\w*{<])")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path.name)
def test_links_and_paths(page: Document) -> None:
    assert page.broken_links() == []
    missing = [path for path in PATH.findall(page.text) if not (REPOSITORY / path).exists()]
    assert [path for path in missing if not re.search(r"[A-Z]{4}", path)] == [], "NAME stands for a name"
