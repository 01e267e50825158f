"""Who may import whom: the arrows between the rooms of the packages point one way."""

from __future__ import annotations

import ast
import graphlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
STACK = REPOSITORY / "fairseq_stack"
PREPROCESS = REPOSITORY / "preprocess" / "fairseq_stack_preprocess"
STANDARD_LIBRARY = sys.stdlib_module_names
FIRST_PARTY = ("fairseq_stack", "fairseq_stack_preprocess", "scripts", "tests")
# What of this repository each package and module may import; names without a package are fairseq_stack's.
ALLOWED = {
    "__init__": (),
    "ops": ("ops",),
    "modules": ("ops", "modules"),
    "kinds": ("ops", "modules", "kinds", "errors"),
    "errors": (),
    "files": ("errors",),
    "companions": ("errors", "files"),
    "compat": ("ops", "compat", "companions", "errors", "files"),
    "hub": ("ops", "modules", "hub", "companions", "errors", "files", "fairseq_stack_preprocess"),
    "models": ("hub", "ops", "modules", "kinds", "models", "compat", "errors", "files"),
    "search": ("search", "errors"),
    "optim": ("optim", "compat"),
    "criterions": ("modules", "criterions", "compat"),
    "tasks": ("ops", "models", "search", "tasks", "compat", "errors", "files", "fairseq_stack_preprocess"),
    "evaluation": ("evaluation", "errors", "files", "__version__", "fairseq_stack_preprocess"),
    "plots": ("plots", "errors", "files"),
    "inspection": (
        "ops",
        "modules",
        "hub",
        "evaluation",
        "plots",
        "inspection",
        "errors",
        "fairseq_stack_preprocess",
    ),
    "cli": ("fairseq_stack", "fairseq_stack_preprocess"),  # and nothing imports cli
    "fairseq_stack_preprocess": ("fairseq_stack_preprocess",),
}
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


def violations_of_table(path: Path, source: str) -> set[str]:
    """What of this repository a package imports is in its row of ALLOWED; a new package needs a row."""
    in_stack = path.is_relative_to(STACK)
    importer = path.relative_to(STACK).parts[0].removesuffix(".py") if in_stack else PREPROCESS.name
    allowed = {name if name in FIRST_PARTY else f"fairseq_stack.{name}" for name in ALLOWED[importer]}
    names = {name for name in imported_names(path, source) if any(is_within(name, ours) for ours in FIRST_PARTY)}
    return _not_within(names, allowed)


def violations_of_torch_only(path: Path, source: str) -> set[str]:
    """`ops`, `modules` and `kinds` import only torch from outside; only kernels for GPUs import Triton."""
    kernels = {"triton"} if path.parent.name == "_triton" else set()
    return _not_within(imported_names(path, source), {"torch", "fairseq_stack"} | kernels)


def violations_of_plots(path: Path, source: str) -> set[str]:
    """Figures are drawn from plain data."""
    return _not_within(imported_names(path, source), {"matplotlib", "fairseq_stack"})


def violations_of_reading(path: Path, source: str) -> set[str]:
    """`evaluation` and `inspection` read what was trained, and never train."""
    training = ("fairseq.trainer", "fairseq.optim", "fairseq.tasks", "fairseq_cli", "torch.optim")
    return {name for name in imported_names(path, source) if any(is_within(name, part) for part in training)}


def violations_of_top_level(path: Path, source: str) -> set[str]:
    """What any package may import must not bring fairseq in through the back door."""
    names = imported_names(path, source, at_module_level=True)
    return {name for name in names if is_within(name, "fairseq")}


def violations_of_preprocess(path: Path, source: str) -> set[str]:
    """The package for data needs neither torch nor fairseq until it binarises."""
    names = imported_names(path, source, at_module_level=True)
    return {name for name in names if any(is_within(name, heavy) for heavy in ("torch", "fairseq", "fairseq_cli"))}


def _not_within(names: set[str], allowed: set[str]) -> set[str]:
    allowed = allowed | STANDARD_LIBRARY
    return {name for name in names if not any(is_within(name, package) for package in allowed)}


RULES: list[tuple[Rule, Path]] = [
    (violations_of_table, STACK),
    (violations_of_table, PREPROCESS),
    (violations_of_torch_only, STACK / "ops"),
    (violations_of_torch_only, STACK / "modules"),
    (violations_of_torch_only, STACK / "kinds"),
    (violations_of_plots, STACK / "plots"),
    (violations_of_reading, STACK / "evaluation"),
    (violations_of_reading, STACK / "inspection"),
    (violations_of_preprocess, PREPROCESS),
]
CASES = [
    pytest.param(rule, path, id=f"{rule.__name__}-{path.relative_to(REPOSITORY)}")
    for rule, folder in RULES
    for path in python_files(folder)
] + [
    pytest.param(violations_of_top_level, path, id=f"violations_of_top_level-{path.name}")
    for path in [*sorted(STACK.glob("*.py")), *python_files(STACK / "compat")]
]


def test_there_is_no_circle() -> None:
    """What the table allows has none, and all imports are in the table."""
    arrows = {room: set(allowed) - {room} for room, allowed in ALLOWED.items()}
    arrows["cli"] = ALLOWED.keys() - {"cli"}
    order = list(graphlib.TopologicalSorter(arrows).static_order())
    assert order.index("ops") < order.index("modules") < order.index("models") < order.index("cli") == len(order) - 1


def test_every_room_has_a_row() -> None:
    rooms = {path.parent.name for path in STACK.glob("*/__init__.py")} | {path.stem for path in STACK.glob("*.py")}
    assert rooms | {PREPROCESS.name} == ALLOWED.keys()


@pytest.mark.parametrize(("rule", "path"), CASES)
def test_imports_follow_the_rules(rule: Rule, path: Path) -> None:
    assert not rule(path, path.read_text(encoding="utf-8")), rule.__doc__


@pytest.mark.parametrize(
    ("rule", "path", "source", "caught"),
    [
        (violations_of_torch_only, "ops/x.py", "import fairseq.data", {"fairseq.data"}),
        (violations_of_torch_only, "ops/x.py", "import triton", {"triton"}),
        (violations_of_torch_only, "ops/_triton/x.py", "import triton", set()),
        (violations_of_torch_only, "ops/x.py", "import math, torch.nn", set()),
        (violations_of_torch_only, "modules/x.py", "def f():\n    import numpy", {"numpy"}),
        (violations_of_table, "ops/x.py", "from ..modules import a", {"fairseq_stack.modules.a"}),
        (violations_of_table, "ops/sub/x.py", "from .._arguments import a", set()),
        (violations_of_table, "modules/x.py", "from fairseq_stack import compat", {"fairseq_stack.compat"}),
        (violations_of_table, "modules/x.py", "from fairseq_stack import ops", set()),
        (violations_of_table, "models/x.py", "import fairseq_stack.search", {"fairseq_stack.search"}),
        (violations_of_table, "search/x.py", "from ..models import a", {"fairseq_stack.models.a"}),
        (violations_of_table, "tasks/x.py", "def f():\n    from ..cli import y", {"fairseq_stack.cli.y"}),
        (violations_of_table, "evaluation/x.py", "import scripts.demo", {"scripts.demo"}),
        (violations_of_table, "cli/x.py", "from .. import __version__", set()),
        (violations_of_table, "cli/x.py", "import scripts.demo", {"scripts.demo"}),
        (violations_of_table, "compat/x.py", "from ..models import a", {"fairseq_stack.models.a"}),
        (violations_of_table, PREPROCESS / "x.py", "import fairseq_stack.ops", {"fairseq_stack.ops"}),
        (violations_of_table, "plots/x.py", "from ..evaluation import a", {"fairseq_stack.evaluation.a"}),
        (violations_of_plots, "plots/x.py", "def f():\n    import torch, matplotlib.pyplot", {"torch"}),
        (violations_of_reading, "evaluation/x.py", "import fairseq.data, fairseq.optim.adam", {"fairseq.optim.adam"}),
        (violations_of_reading, "inspection/x.py", "from fairseq import trainer", {"fairseq.trainer"}),
        (violations_of_top_level, "x.py", "import fairseq", {"fairseq"}),
        (violations_of_top_level, "x.py", "def f():\n    import fairseq", set()),
        (violations_of_preprocess, "x.py", "if True:\n    import torch", {"torch"}),
        (violations_of_preprocess, "x.py", "def f():\n    import torch", set()),
    ],
)
def test_rules_catch_what_they_should(rule: Rule, path: str | Path, source: str, caught: set[str]) -> None:
    folder = PREPROCESS if rule is violations_of_preprocess else STACK
    assert rule(folder / path, source) == caught


def modules_of(room: str) -> str:
    return ", ".join(f"fairseq_stack.{room}.{path.stem}" for path in (STACK / room).glob("[!_]*.py"))


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("fairseq_stack", "torch fairseq numpy"),
        ("fairseq_stack.ops", "fairseq"),
        ("fairseq_stack.modules", "fairseq"),
        ("fairseq_stack.compat", "fairseq"),
        (modules_of("evaluation"), "torch fairseq"),
        (modules_of("plots"), "torch fairseq matplotlib"),
        ("fairseq_stack_preprocess", "torch fairseq"),
    ],
)
def test_import_brings_in_nothing_heavy(module: str, absent: str) -> None:
    program = f"import sys, {module}; print(*sorted(sys.modules.keys() & set({absent.split()})))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr
