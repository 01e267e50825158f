"""docs/development.md, the map: what it names exists, and what has to be in it is there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest

from fairseq_stack import modules
from tests.documents import REPOSITORY, Document
from tests.preprocess.test_rooms import MODULES, room
from tests.test_architecture import ALLOWED, PREPROCESS, STACK

DOCUMENT = Document("docs/development.md")
# An equation of the paper is a number, one of docs/algorithm.md a letter in parentheses.
NUMBERS = r"\d+(?:-\d+)?"
NUMBERS_IN_CODE = re.compile(rf"\bEqs?\.\s({NUMBERS}(?:(?:, | and ){NUMBERS})*)")
LETTERS = re.compile(r"(?<![\w)\]])\(([a-z])\)(?:-\(([a-z])\))?")


@dataclass(frozen=True)
class Place:
    """A file or a folder, or a name in a file."""

    path: Path
    name: str | None = None

    def __str__(self) -> str:
        return f"{self.path.relative_to(REPOSITORY)}: {self.name}"

    def text(self) -> str | None:
        """What stands there, comments and docstrings included; None if there is no such place."""
        if self.name is None:
            return "" if self.path.exists() else None
        if not self.path.is_file():
            return None
        source = self.path.read_text(encoding="utf-8")
        return text_in_c(source, self.name) if self.path.suffix == ".h" else text_in_python(source, self.name)


def text_in_python(source: str, name: str) -> str | None:
    """The source of a function, a class or a constant; of a method, with the docstring of its class."""
    body, docstring = ast.parse(source).body, ""
    *classes, last = name.split(".")
    for outer in classes:
        found = [node for node in body if isinstance(node, ast.ClassDef) and node.name == outer]
        if not found:
            return None
        body, docstring = found[0].body, ast.get_docstring(found[0]) or ""
    for node in reversed(body):  # of overloads, the implementation is the last
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        names = {target.id for target in targets if isinstance(target, ast.Name)}
        if last in {*names, getattr(node, "name", None)}:
            return f"{docstring}\n{ast.get_source_segment(source, node)}"
    return None


def text_in_c(source: str, name: str) -> str | None:
    """The source of a function, with the comment before it."""
    comment = r"(?:/\*(?:(?!\*/).)*\*/\n)?"
    found = re.search(rf"{comment}#define {name} NAME\({name}\)\n.*?^\}}", source, re.MULTILINE | re.DOTALL)
    return found and found[0]


def letters(text: str) -> set[str]:
    return {chr(code) for a, b in LETTERS.findall(text) for code in range(ord(a), ord(b or a) + 1)}


def numbers(text: str) -> set[str]:
    pairs = re.findall(r"\b(\d+)(?:-(\d+))?\b", text)
    return {str(number) for a, b in pairs for number in range(int(a), int(b or a) + 1)}


def equations_of_row(cell: str) -> set[str]:
    """The equations that the first cell of a row, such as ``24, (a)``, stands for."""
    return numbers(cell) | letters(cell) if re.match(r"[\d(]", cell) else set()


def numbers_in_code(text: str) -> set[str]:
    """The numbers of equations in comments and docstrings, which may go on in the next line."""
    unwrapped = re.sub(r"\n[\s*#]*", " ", text)
    return set().union(*map(numbers, NUMBERS_IN_CODE.findall(unwrapped)))


class Table(NamedTuple):
    """A table of the map."""

    head: list[str]
    rows: list[list[str]]

    def places(self, row: list[str]) -> Iterator[Place]:
        """The places in the columns whose head names a folder or a file."""
        for head, cell in zip(self.head, row, strict=True):
            base = re.search(r"in `([^`]+)`$", head)
            if base is not None:
                yield from places_in_cell(cell, REPOSITORY / base[1])


def places_in_cell(cell: str, base: Path) -> Iterator[Place]:
    file = base
    for span in re.findall(r"`([^`]+)`", cell):
        path, colon, name = span.rpartition(": ")
        if colon or "/" in span:
            path = path or span
            file = next((root / path for root in (base, REPOSITORY) if (root / path).exists()), base / path)
        yield Place(file, name if colon or "/" not in span else None)


def tables() -> Iterator[Table]:
    for block in re.findall(r"(?:^\|.*\n)+", DOCUMENT.text, re.MULTILINE):
        head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines())
        yield Table(head, rows)


def places_in_prose() -> Iterator[Place]:
    """Everything between backquotes that is a path, or a path and a name in the file."""
    for span in re.findall(r"`([^`]+)`", DOCUMENT.text):
        path, _, name = span.partition(": ")
        if re.fullmatch(r"[\w./]+", path) and ("/" in path or name) and path.split("/")[0] in TOP:
            yield Place(REPOSITORY / path.partition("NAME")[0], name or None)


TOP = {path.name for path in REPOSITORY.iterdir()}
ROWS = [(table, row) for table in tables() for row in table.rows]
PLACES = {*places_in_prose(), *(place for table, row in ROWS for place in table.places(row))}


@pytest.mark.parametrize("place", sorted(PLACES, key=str), ids=str)
def test_every_place_exists(place: Place) -> None:
    assert place.text() is not None


def test_there_are_places() -> None:
    assert len(PLACES) > 100
    assert not {place for place in PLACES if place.name is not None and place.path.suffix not in (".py", ".h")}
    assert Place(STACK / "ops/nondeterministic/reference.py", "_no_such_function").text() is None
    assert Place(STACK / "ops/_native/src/vector.h", "no_such_function").text() is None
    assert Place(STACK / "no_such_file.py", "name").text() is None


def test_the_links_lead_somewhere() -> None:
    assert DOCUMENT.broken_links() == []


def rooms_in_table(head: Path) -> dict[str, list[str]]:
    name = f"`{head.relative_to(REPOSITORY)}/`"
    return {row[0].strip("`").removesuffix(".py"): row for table, row in ROWS if table.head[0] == name}


def test_each_room_has_a_row_with_what_it_may_import() -> None:
    rows = rooms_in_table(STACK)
    assert rows.keys() == ALLOWED.keys() - {PREPROCESS.name}
    everything, above = {STACK.name, PREPROCESS.name}, {PREPROCESS.name, "__version__"}
    for name, (_, _, imports) in rows.items():
        allowed = everything if imports == "everything" else set(re.findall(r"`(\w+)`", imports))
        assert allowed == set(ALLOWED[name]) - {name}, name
        assert allowed <= above or allowed == everything, name
        above.add(name)


def test_each_room_of_the_package_for_data_has_a_row() -> None:
    assert rooms_in_table(PREPROCESS).keys() == {room(name) for name in MODULES} - {"__init__"}


@pytest.mark.parametrize("parent", ["scripts", "tests"])
def test_each_folder_of_scripts_and_tests_is_named_or_mirrors_a_room(parent: str) -> None:
    folders = {path.parent for path in (REPOSITORY / parent).glob("*/*.*")}
    mirrors = {*ALLOWED, "preprocess"}
    assert {folder for folder in folders if folder.name not in mirrors} <= {place.path for place in PLACES}


@pytest.mark.parametrize(
    ("table", "row"), [pytest.param(*case, id=case[1][0]) for case in ROWS if equations_of_row(case[1][0])]
)
def test_each_place_names_its_equation(table: Table, row: list[str]) -> None:
    """In a comment or a docstring, so that the map cannot be wrong about the place."""
    wanted = equations_of_row(row[0])
    found: set[str] = set()
    for place in table.places(row):
        if place.name is not None:
            text = place.text() or ""
            named = numbers_in_code(text) | letters(text)
            assert wanted & named, place
            found |= named
    assert wanted <= found


def equations_by_file() -> dict[Path, set[str]]:
    """The equations of the rows that have a place in a file."""
    found: dict[Path, set[str]] = {}
    for table, row in ROWS:
        for place in table.places(row):
            found[place.path] = found.get(place.path, set()) | equations_of_row(row[0])
    return found


@pytest.mark.parametrize("path", sorted(STACK.glob("ops/*/reference.py")), ids=lambda path: path.parent.name)
def test_each_equation_of_a_reference_has_a_row(path: Path) -> None:
    """A reference whose paper does not number its equations has rows without numbers."""
    on_the_map = equations_by_file()
    assert path in on_the_map
    assert numbers_in_code(path.read_text(encoding="utf-8")) <= on_the_map[path]


@pytest.mark.parametrize("folder", ["ops", "modules", "models", "search"])
def test_each_equation_has_a_row(folder: str) -> None:
    on_the_map = {equation for _, row in ROWS for equation in equations_of_row(row[0])}
    for path in [*STACK.glob(f"{folder}/**/*.py"), *STACK.glob(f"{folder}/**/*.h")]:
        assert numbers_in_code(path.read_text(encoding="utf-8")) <= on_the_map, path


def test_each_letter_of_the_algorithm_has_a_row() -> None:
    tags = set(re.findall(r"\\tag\{(\w)\}", Document("docs/algorithm.md").text))
    in_proofs = {"f"}
    assert tags - in_proofs == {equation for _, row in ROWS for equation in letters(row[0])}


def test_each_module_is_on_the_map() -> None:
    assert set(modules.__all__) <= {place.name.partition(".")[0] for place in PLACES if place.name is not None}


def test_each_appendix_is_on_the_map() -> None:
    for package in (STACK, PREPROCESS):
        for path in package.rglob("*.py"):
            for name in re.findall(r"Appendix ([A-G](?:\.\d)?)", path.read_text(encoding="utf-8")):
                assert re.search(rf"Appendi(x|ces)[^|]* {re.escape(name)}\b", DOCUMENT.text), f"{path}: {name}"
