"""Pages of documentation: their blocks of code, their links, and running their commands as they stand."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from tests.commands.running import REPOSITORY, Server

__all__ = ["REPOSITORY", "Document"]

Replacement = tuple[re.Pattern[str], str]


class Document:
    """A page in Markdown.

    Args:
        path: its path in the repository.
        section: the heading of its only section that matters, of the second level (default: the whole page).
    """

    def __init__(self, path: str, section: str | None = None) -> None:
        self.path = REPOSITORY / path
        self.text = self.path.read_text(encoding="utf-8")
        if section is not None:
            self.text = self.text.split(f"\n## {section}\n")[1].split("\n## ")[0]

    def blocks(self, language: str) -> list[str]:
        """The fenced blocks of this language, in their order."""
        blocks = re.findall(r"^```(\w*)\n(.*?)^```$", self.text, re.MULTILINE | re.DOTALL)
        return [text for name, text in blocks if name == language]

    def broken_links(self) -> list[str]:
        """The links to files that do not exist, and to headings that their page does not have."""
        links = re.findall(r"(?:\]\(|^\[\w+\]: )([^)\s]+)", self.text, re.MULTILINE)
        return [link for link in links if "://" not in link and not self._leads_somewhere(link)]

    def _leads_somewhere(self, link: str) -> bool:
        name, _, heading = link.partition("#")
        target = self.path.parent / name if name else self.path
        if not heading:
            return target.exists()
        return target.is_file() and heading in headings(target.read_text(encoding="utf-8"))


def headings(text: str) -> set[str]:
    """What links to the headings of a page have behind the ``#``, as GitHub makes it."""
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in titles}


def run_block(block: str, folder: Path, server: Server, tiny: Iterable[Replacement] = ()) -> str:
    """Run a block of shell commands as a script that stops at the first error; return what it prints.

    Args:
        block: the commands.
        folder: the current folder.
        server: runs the commands of fairseq and of this project.
        tiny: what to replace in the block, so that it takes less time.
    """
    for pattern, replacement in tiny:
        block = pattern.sub(replacement, block)
    result = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block],
        cwd=folder,
        env=server.environment(),
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, f"{block}\n{result.stdout[-2000:]}\n{result.stderr[-4000:]}"
    return result.stdout + result.stderr
