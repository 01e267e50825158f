"""The source distribution and the wheels have everything in them, and the versions agree wherever they are written."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

import fairseq_stack
from fairseq_stack.ops import _native

REPOSITORY = Path(__file__).resolve().parent.parent
PACKAGES = {
    "fairseq_stack": REPOSITORY / "fairseq_stack",
    "fairseq_stack_preprocess": REPOSITORY / "preprocess" / "fairseq_stack_preprocess",
}


# Creates what a compiler or a linker would be asked for, in place of a minute of compiling.
COMPILER = """\
#!/bin/sh
while [ "$1" != -o ]; do shift; done
echo kernels >"$2"
"""


def setup(source: Path, *arguments: str, compiler: Path | None = None) -> str:
    """Run setup.py with a stub of a compiler, or without any, and return what it says."""
    name = str(compiler or "no-such-compiler")
    environment = os.environ | {"CC": name, "LDSHARED": f"{name} -shared"}
    command = [sys.executable, "setup.py", "-q", *arguments]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stderr


def repository_files() -> list[str]:
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("this is not a git checkout")
    return sorted(name for name in listed.stdout.split("\0") if name and (REPOSITORY / name).exists())


def test_links_of_the_package_page_are_absolute() -> None:
    command = [sys.executable, "setup.py", "-q", "--long-description"]
    environment = os.environ | {"GITHUB_REPOSITORY": "somebody/fairseq_stack"}
    page = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, env=environment, check=True).stdout
    links = re.findall(r"(?:\]\(|^\[\w+\]: )([^)\s]+)", page, re.MULTILINE)
    assert "https://github.com/somebody/fairseq_stack/blob/v" in page
    assert [link for link in links if not link.startswith("https://")] == []


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution, unpacked; built from a copy, since a build leaves folders behind."""
    folder = tmp_path_factory.mktemp("sdist")
    for name in repository_files():
        (folder / "copy" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPOSITORY / name, folder / "copy" / name)
    setup(folder / "copy", "sdist", "--formats=tar", "--dist-dir", str(folder))
    (path,) = folder.glob("*.tar")
    with tarfile.open(path) as archive:
        if hasattr(tarfile, "data_filter"):
            archive.extractall(folder, filter="data")
        else:  # Python before 3.11.4
            archive.extractall(folder)
    return folder / path.stem


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel that a machine without a C compiler builds from the source distribution."""
    folder = tmp_path_factory.mktemp("wheel")
    said = setup(sdist, "bdist_wheel", "--dist-dir", str(folder))
    assert 'building extension "fairseq_stack.ops._native._kernels" failed' in said
    (path,) = folder.glob("*.whl")
    return zipfile.ZipFile(path)


@pytest.fixture(scope="module")
def platform_wheel(sdist: Path, wheel: zipfile.ZipFile, tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel that a machine with a compiler builds in the same folder afterwards, with a stub of the kernels."""
    folder = tmp_path_factory.mktemp("platform_wheel")
    compiler = folder / "cc"
    compiler.write_text(COMPILER)
    compiler.chmod(0o755)
    setup(sdist, "bdist_wheel", "--dist-dir", str(folder), compiler=compiler)
    (path,) = folder.glob("*.whl")
    return zipfile.ZipFile(path)


def metadata(wheel: zipfile.ZipFile, name: str) -> str:
    (path,) = (path for path in wheel.namelist() if path.endswith(f".dist-info/{name}"))
    return wheel.read(path).decode()


def test_source_distribution_is_the_repository(sdist: Path) -> None:
    generated = {"PKG-INFO", "setup.cfg"}
    names = {path.relative_to(sdist).as_posix() for path in sdist.rglob("*") if path.is_file()}
    packed = {name for name in names - generated if not name.startswith(("build/", "fairseq_stack.egg-info/"))}
    assert packed == set(repository_files())


def test_wheel_without_kernels_is_for_all_platforms(wheel: zipfile.ZipFile) -> None:
    assert Path(str(wheel.filename)).name == f"fairseq_stack-{fairseq_stack.__version__}-py3-none-any.whl"
    assert "Root-Is-Purelib: true\n" in metadata(wheel, "WHEEL")


def test_wheel_with_kernels_is_for_one_platform_and_all_versions_of_python(
    wheel: zipfile.ZipFile, platform_wheel: zipfile.ZipFile
) -> None:
    platform = re.sub(r"[-.]", "_", sysconfig.get_platform())
    if not platform.startswith("macosx"):  # whose tag has the version of the linker's target
        expected = f"fairseq_stack-{fairseq_stack.__version__}-py3-none-{platform}.whl"
        assert Path(str(platform_wheel.filename)).name == expected
    assert "Root-Is-Purelib: false\n" in metadata(platform_wheel, "WHEEL")
    library = f"fairseq_stack/ops/_native/{_native.LIBRARY.name}"
    assert set(platform_wheel.namelist()) - set(wheel.namelist()) == {library}
    assert platform_wheel.read(library) == b"kernels\n"


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
    assert metadata(wheel, "licenses/LICENSE") == (REPOSITORY / "LICENSE").read_text()


def test_constraints_pin_every_requirement(wheel: zipfile.ZipFile) -> None:
    requirements = re.findall(r"^Requires-Dist: ([\w-]+)", metadata(wheel, "METADATA"), flags=re.MULTILINE)
    lines = (REPOSITORY / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", pin) for pin in pins), "exact versions without local tags"
    assert set(requirements) <= {pin.split("==")[0] for pin in pins}
    assert len(requirements) > 7
