"""The workflows and the Dockerfile agree with the files and the versions that they name."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

REPOSITORY = Path(__file__).resolve().parent.parent
WORKFLOWS = sorted((REPOSITORY / ".github" / "workflows").glob("*.yml"))


def jobs(path: Path) -> dict[str, Any]:
    return dict(yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"])


def all_jobs() -> list[tuple[str, dict[str, Any]]]:
    return [(f"{path.name}: {name}", job) for path in WORKFLOWS for name, job in jobs(path).items()]


def commands() -> list[str]:
    return [step["run"] for _, job in all_jobs() for step in job["steps"] if "run" in step]


def python_versions() -> list[str]:
    """The versions of Python that setup.py names."""
    text = (REPOSITORY / "setup.py").read_text(encoding="utf-8")
    return re.findall(r'"Programming Language :: Python :: (\d+\.\d+)"', text)


def test_every_version_of_python_is_tested() -> None:
    matrices = {name: job["strategy"]["matrix"] for name, job in all_jobs() if "strategy" in job}
    versions = {name: matrix["python"] for name, matrix in matrices.items() if "python" in matrix}
    assert versions == dict.fromkeys(["test.yml: test", "wheels.yml: try"], python_versions())


def test_every_wheel_is_tried_before_any_is_published() -> None:
    packages = jobs(REPOSITORY / ".github" / "workflows" / "wheels.yml")
    assert packages["try"]["strategy"]["matrix"]["runner"] == packages["wheel"]["strategy"]["matrix"]["runner"]
    assert set(packages["publish"]["needs"]) == packages.keys() - {"publish"}
    allowed = [name for name, job in all_jobs() if job.get("permissions", {}).get("id-token")]
    assert allowed == ["docs.yml: publish", "wheels.yml: publish"]


@pytest.mark.parametrize("command", commands())
def test_commands_are_shell_and_their_files_exist(command: str) -> None:
    assert subprocess.run(["bash", "-n", "-c", command]).returncode == 0
    for name in re.findall(r"(?<![\w/])/?(scripts/[\w./]+\.sh)", command):
        assert (REPOSITORY / name).is_file()


def test_docker_image_has_the_python_of_the_constraints_and_what_it_copies() -> None:
    (version,) = re.findall(r"\(Python (\d+\.\d+), Linux\)", (REPOSITORY / "constraints.txt").read_text())
    dockerfile = (REPOSITORY / "Dockerfile").read_text()
    assert set(re.findall(r"^FROM python:(\d+\.\d+)-", dockerfile, flags=re.MULTILINE)) == {version}
    copied = re.findall(r"^!(.+)$", (REPOSITORY / ".dockerignore").read_text(), flags=re.MULTILINE)
    assert "scripts" in copied
    for name in copied:
        assert (REPOSITORY / name).exists(), name
