"""What MkDocs needs to make a site of pages that are also read on GitHub, and of docstrings with Sphinx's roles."""

from __future__ import annotations

import os.path
import re
from functools import partial
from pathlib import Path
from typing import Any

import griffe
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
# Pages that are not in docs, by their names on the site.
OUTSIDE = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changes.md"}
SOURCES = {name: path for path, name in OUTSIDE.items()}
LINK = re.compile(r"(\]\(|^\[[^\]]+\]: +)(?![a-z]+:|#)([^)#\s]+)", re.MULTILINE)
ROLE = re.compile(r":(?:attr|class|data|func|meth|mod):`(~?)([\w.]+)`")


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add the pages that are not in ``docs``."""
    for path, name in OUTSIDE.items():
        files.append(File.generated(config, name, abs_src_path=str(ROOT / path)))


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, **_: Any) -> str:
    """Let links between files of the repository lead to pages, or to the files where they are published."""
    name = page.file.src_uri
    source = Path(SOURCES.get(name, f"docs/{name}"))
    repository = f"{config.repo_url}/blob/HEAD" if config.repo_url else ROOT.as_uri()

    def target(link: re.Match[str]) -> str:
        path = os.path.normpath(source.parent / link[2])
        if path in OUTSIDE or path.startswith("docs/"):
            path = os.path.relpath(OUTSIDE.get(path, path.removeprefix("docs/")), os.path.dirname(name) or ".")
            return link[1] + path
        return f"{link[1]}{repository}/{path}" if (ROOT / path).exists() else link[0]

    return LINK.sub(target, markdown)


class Roles(griffe.Extension):
    """Turns the roles of Sphinx, such as ``:func:`x```, into references, which need not lead to the site.

    Of the docstrings of packages it keeps the first paragraph: the others are about the code, for developers.
    """

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        for found in objects(pkg):
            if found.docstring:
                text = found.docstring.value
                if isinstance(found, griffe.Module) and found.is_init_module:
                    text = text.partition("\n\n")[0]
                found.docstring.value = ROLE.sub(partial(reference, found), text)


def objects(parent: griffe.Object) -> list[griffe.Object]:
    """The object and all that are defined in it."""
    members = [member for member in parent.members.values() if isinstance(member, griffe.Object)]
    return [parent, *(found for member in members for found in objects(member))]


def reference(place: griffe.Object, role: re.Match[str]) -> str:
    """A role in the docstring of an object as a reference."""
    short, name = role.groups()
    shown = name.rpartition(".")[2] if short else name.lstrip(".")
    return f'<autoref identifier="{path(place, name)}" optional><code>{shown}</code></autoref>'


def path(place: griffe.Object, name: str) -> str:
    """The full name of what a name means in the docstring of an object."""
    if name.startswith("."):
        module = place if isinstance(place, griffe.Module) else place.module
        package = module if module.is_init_module or module.parent is None else module.parent
        return package.path + name
    try:
        return place.resolve(name)
    except griffe.NameResolutionError:
        return name
