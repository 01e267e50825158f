"""The wheel is complete, and the versions agree wherever they are written."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import fairseq_stack

REPOSITORY = Path(__file__).resolve().parent.parent
PACKAGES = {
    "fairseq_stack": REPOSITORY / "fairseq_stack",
    "fairseq_stack_preprocess": REPOSITORY / "preprocess" / "fairseq_stack_preprocess",
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel of a machine without a C compiler, built from a copy, since a build leaves folders behind."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    ignored = shutil.ignore_patterns("__pycache__", "*.pyc", "*.so")
    for name in ("fairseq_stack", "preprocess"):
        shutil.copytree(REPOSITORY / name, source / name, ignore=ignored)
    for name in ("setup.py", "pyproject.toml", "LICENSE", "README.md"):
        if (REPOSITORY / name).exists():
            shutil.copy(REPOSITORY / name, source)
    command = [sys.executable, "setup.py", "-q", "bdist_wheel", "--dist-dir", str(folder)]
    no_compiler = os.environ | {"CC": "no-such-compiler"}
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, env=no_compiler)
    assert done.returncode == 0, done.stderr
    assert 'building extension "fairseq_stack.ops._native._kernels" failed' in done.stderr
    (path,) = folder.glob("*.whl")
    return zipfile.ZipFile(path)


def metadata(wheel: zipfile.ZipFile, name: str) -> str:
    (path,) = (path for path in wheel.namelist() if path.endswith(f".dist-info/{name}"))
    return wheel.read(path).decode()


@pytest.mark.parametrize("package", PACKAGES)
def test_wheel_holds_every_module(wheel: zipfile.ZipFile, package: str) -> None:
    folder = PACKAGES[package]
    expected = {f"{package}/{path.relative_to(folder).as_posix()}" for path in folder.rglob("*") if _belongs(path)}
    assert f"{package}/py.typed" in expected
    assert expected == {name for name in wheel.namelist() if name.startswith(f"{package}/")}


def _belongs(path: Path) -> bool:
    return path.is_file() and path.suffix not in (".pyc", ".so")


def test_wheel_holds_nothing_else(wheel: zipfile.ZipFile) -> None:
    others = {name.split("/")[0] for name in wheel.namelist()} - PACKAGES.keys()
    assert len(others) == 1
    assert others.pop().endswith(".dist-info")


def test_command_and_licence_are_in_the_metadata(wheel: zipfile.ZipFile) -> None:
    assert "fairseq-stack = fairseq_stack.cli:main" in metadata(wheel, "entry_points.txt")
    lines = metadata(wheel, "METADATA").splitlines()
    assert f"Version: {fairseq_stack.__version__}" in lines
    assert "Requires-Python: >=3.11" in lines
    assert any(name.endswith("LICENSE") for name in wheel.namelist())


def test_constraints_pin_every_requirement(wheel: zipfile.ZipFile) -> None:
    requirements = re.findall(r"^Requires-Dist: ([\w-]+)", metadata(wheel, "METADATA"), flags=re.MULTILINE)
    lines = (REPOSITORY / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", pin) for pin in pins), "exact versions without local tags"
    assert set(requirements) <= {pin.split("==")[0] for pin in pins}
    assert len(requirements) > 7


def test_citation_has_the_version() -> None:
    citation = (REPOSITORY / "CITATION.cff").read_text()
    assert f"\nversion: {fairseq_stack.__version__}\n" in citation
