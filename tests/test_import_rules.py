"""Who may import whom: the arrows between the packages point one way."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
STACK = REPOSITORY / "fairseq_stack"
PREPROCESS = REPOSITORY / "preprocess" / "fairseq_stack_preprocess"
STANDARD_LIBRARY = sys.stdlib_module_names
Rule = Callable[[Path, str], set[str]]


def python_files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


def package_of(path: Path) -> list[str]:
    """The names of the packages that hold a module, which relative imports start from."""
    root = REPOSITORY if path.is_relative_to(STACK) else PREPROCESS.parent
    return list(path.relative_to(root).parent.parts)


def statements(tree: ast.AST, at_module_level: bool) -> Iterator[ast.AST]:
    """All nodes of a module, or only those that run when it is imported."""
    for node in ast.iter_child_nodes(tree):
        yield node
        if not (at_module_level and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)):
            yield from statements(node, at_module_level)


def imported_names(path: Path, source: str, at_module_level: bool = False) -> set[str]:
    """The absolute names that a module imports: of ``from a.b import c`` that is ``a.b.c``."""
    names = set()
    for node in statements(ast.parse(source), at_module_level):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package_of(path)[: 1 - node.level or None] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            names |= {f"{origin}.{alias.name}" for alias in node.names}
    return names


def is_within(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def top_level_modules() -> set[str]:
    """Modules directly in fairseq_stack, such as layer_list; not compat, which is about fairseq."""
    return {f"fairseq_stack.{path.stem}" for path in STACK.glob("*.py")} - {"fairseq_stack.compat"}


def violations_of_ops(path: Path, source: str) -> set[str]:
    """`ops` imports torch and itself."""
    return _not_within(imported_names(path, source), {"torch", "fairseq_stack.ops"})


def violations_of_modules(path: Path, source: str) -> set[str]:
    """`modules` imports torch, `ops`, itself and helpers at the top of the package, but not fairseq."""
    allowed = {"torch", "fairseq_stack.ops", "fairseq_stack.modules", *top_level_modules()}
    return _not_within(imported_names(path, source), allowed)


def violations_of_top_level(path: Path, source: str) -> set[str]:
    """What `modules` may import must not bring fairseq in through the back door."""
    names = imported_names(path, source, at_module_level=True)
    return {name for name in names if is_within(name, "fairseq") or is_within(name, "fairseq_stack.models")}


def violations_of_all(path: Path, source: str) -> set[str]:
    """Nothing imports `cli`, but itself, or `scripts`."""
    forbidden = ["scripts"] if path.is_relative_to(STACK / "cli") else ["scripts", "fairseq_stack.cli"]
    return {name for name in imported_names(path, source) if any(is_within(name, other) for other in forbidden)}


def violations_of_preprocess(path: Path, source: str) -> set[str]:
    """The package for data needs neither torch nor fairseq until it binarises."""
    names = imported_names(path, source, at_module_level=True) - {"fairseq_stack.__version__"}
    heavy = ("torch", "fairseq", "fairseq_cli", "fairseq_stack")
    return {name for name in names if any(is_within(name, package) for package in heavy)}


def _not_within(names: set[str], allowed: set[str]) -> set[str]:
    allowed = allowed | STANDARD_LIBRARY
    return {name for name in names if not any(is_within(name, package) for package in allowed)}


RULES: list[tuple[Rule, Path]] = [
    (violations_of_ops, STACK / "ops"),
    (violations_of_modules, STACK / "modules"),
    (violations_of_all, STACK),
    (violations_of_all, PREPROCESS),
    (violations_of_preprocess, PREPROCESS),
]
CASES = [
    pytest.param(rule, path, id=f"{rule.__name__}-{path.relative_to(REPOSITORY)}")
    for rule, folder in RULES
    for path in python_files(folder)
] + [
    pytest.param(violations_of_top_level, path, id=f"violations_of_top_level-{path.name}")
    for path in sorted(STACK.glob("*.py"))
]


@pytest.mark.parametrize(("rule", "path"), CASES)
def test_imports_follow_the_rules(rule: Rule, path: Path) -> None:
    assert not rule(path, path.read_text(encoding="utf-8")), rule.__doc__


@pytest.mark.parametrize(
    ("rule", "path", "source", "caught"),
    [
        (violations_of_ops, "ops/x.py", "import fairseq.data", {"fairseq.data"}),
        (violations_of_ops, "ops/x.py", "from ..modules import a", {"fairseq_stack.modules.a"}),
        (violations_of_ops, "ops/sub/x.py", "from .._arguments import a", set()),
        (violations_of_ops, "ops/x.py", "import math, torch.nn", set()),
        (violations_of_ops, "ops/x.py", "def f():\n    import numpy", {"numpy"}),
        (violations_of_modules, "modules/x.py", "from fairseq_stack import models", {"fairseq_stack.models"}),
        (violations_of_modules, "modules/x.py", "from fairseq_stack import compat", {"fairseq_stack.compat"}),
        (violations_of_modules, "modules/x.py", "from fairseq_stack import ops", set()),
        (violations_of_top_level, "x.py", "import fairseq", {"fairseq"}),
        (violations_of_top_level, "x.py", "def f():\n    import fairseq", set()),
        (violations_of_all, "models/x.py", "from fairseq_stack import cli", {"fairseq_stack.cli"}),
        (violations_of_all, "cli/x.py", "from fairseq_stack.cli import y", set()),
        (violations_of_all, "cli/x.py", "import scripts.demo", {"scripts.demo"}),
        (violations_of_preprocess, "x.py", "if True:\n    import torch", {"torch"}),
        (violations_of_preprocess, "x.py", "def f():\n    import torch", set()),
    ],
)
def test_rules_catch_what_they_should(rule: Rule, path: str, source: str, caught: set[str]) -> None:
    folder = PREPROCESS if rule is violations_of_preprocess else STACK
    assert rule(folder / path, source) == caught


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("fairseq_stack", "torch fairseq numpy"),
        ("fairseq_stack.ops", "fairseq"),
        ("fairseq_stack.modules", "fairseq"),
        ("fairseq_stack.compat", "fairseq"),
        ("fairseq_stack_preprocess", "torch fairseq"),
    ],
)
def test_import_brings_in_nothing_heavy(module: str, absent: str) -> None:
    program = f"import sys, {module}; print(*sorted(sys.modules.keys() & set({absent.split()})))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr
