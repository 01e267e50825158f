"""Fixtures and settings for all tests."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
import torch

from fairseq_stack_preprocess.text import binarise
from tests.commands import preprocessing
from tests.commands.running import Server

RUN_PREPROCESS = binarise.run_preprocess
REPOSITORY = Path(__file__).resolve().parent.parent
DATA_VARIABLE = "FAIRSEQ_STACK_REFERENCE_DATA"
REQUIRE_VARIABLE = "FAIRSEQ_STACK_REQUIRE_REFERENCE_DATA"

# Kernels for GPUs are tested everywhere. Triton reads this when it is imported.
if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")

# A shared machine makes deadlines fail at random. In CI the same examples are drawn every time.
hypothesis.settings.register_profile("default", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.register_profile("ci", hypothesis.settings.get_profile("default"), derandomize=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "default")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--hostile", action="store_true", help="also run what is too slow for every run: all hostile input"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    unwanted = set() if config.getoption("--hostile") else {"hostile"}
    if importlib.util.find_spec("triton") is None:
        unwanted.add("triton")  # scripts/test.sh runs them apart
    left_out = [item for item in items if any(map(item.get_closest_marker, unwanted))]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session", autouse=True)
def single_thread() -> None:
    """One thread a process: sums are done in the same order everywhere, and workers do not compete."""
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def fixed_seed() -> None:
    """Every test starts from the same random state."""
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def default_dtype() -> Iterator[None]:
    """A test that changes torch's default dtype does not change it for the next one."""
    dtype = torch.get_default_dtype()
    yield
    torch.set_default_dtype(dtype)


def reference_folder() -> Path:
    """The folder of larger golden files and of corpora, which are not part of the project; it may be missing.

    ``FAIRSEQ_STACK_REFERENCE_DATA`` names it; the default is ``shared`` beside the repository.
    """
    return Path(os.environ.get(DATA_VARIABLE) or REPOSITORY.parent / "shared")


@pytest.fixture(scope="session", autouse=True)
def quick_configurations() -> None:
    """Half of the time of a small command would be hydra's, for tests that import fairseq."""
    if "fairseq" in sys.modules:
        from tests.commands import composing

        composing.install()


@pytest.fixture(scope="session", autouse=True)
def _forked_preprocess() -> Iterator[None]:
    """``fairseq-stack prepare`` binarises in forks of this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(binarise, "run_preprocess", preprocessing.run_in_a_fork)
        yield


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A process that runs commands in a tenth of the time that they take alone."""
    started = Server()
    yield started
    started.close()


@pytest.fixture(scope="session")
def reference_data() -> Path:
    """``reference_folder()``. Without it the test is skipped, or fails where ``FAIRSEQ_STACK_REQUIRE_REFERENCE_DATA``
    is 1.
    """
    folder = reference_folder()
    if not (folder / "golden").is_dir():
        problem = f"no reference data: {folder}/golden is missing; set {DATA_VARIABLE}"
        if os.environ.get(REQUIRE_VARIABLE) == "1":
            pytest.fail(f"{problem} ({REQUIRE_VARIABLE}=1 forbids skipping)")
        pytest.skip(problem)
    return folder
