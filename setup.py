"""Installation of fairseq_stack and of its companion for data, fairseq_stack_preprocess."""

from __future__ import annotations

import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from setuptools import Extension, find_packages, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.modified import newer_group

ROOT = Path(__file__).parent


def read_version() -> str:
    """The version of the package, read without importing it (an import would need its requirements)."""
    text = (ROOT / "fairseq_stack" / "version.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "([^"]+)"$', text, flags=re.MULTILINE)
    if found is None:
        raise RuntimeError('fairseq_stack/version.py has no line __version__ = "..."')
    return found.group(1)


def readme() -> str:
    """The README. Links on the package's page on an index, which GitHub's workflow publishes, have to be absolute."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    repository = os.environ.get("GITHUB_REPOSITORY")
    if repository is None:
        return text
    tag = f"v{read_version()}"
    text = re.sub(r"(!\[[^]]*\]\()(?!https?:)", rf"\1https://raw.githubusercontent.com/{repository}/{tag}/", text)
    return re.sub(r"(\]\(|^\[\w+\]: )(?!https?:)", rf"\1https://github.com/{repository}/blob/{tag}/", text, flags=re.M)


# A shared library that is loaded with ctypes, in C without Python or torch: see fairseq_stack/ops/_native. Without a
# compiler for it the package is installed all the same, and the stacks run in PyTorch.
KERNELS = Path("fairseq_stack/ops/_native")
KERNELS_EXTENSION = Extension(
    "fairseq_stack.ops._native._kernels",
    sources=[str(path.relative_to(ROOT)) for path in sorted((ROOT / KERNELS / "src").glob("*.c"))],
    depends=[str(path.relative_to(ROOT)) for path in sorted((ROOT / KERNELS / "src").glob("*.h"))],
    extra_compile_args=[
        *("-std=c11", "-O3", "-g0", "-pthread"),
        *("-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math", "-Wno-psabi"),
    ],
    extra_link_args=["-pthread", "-lm"],
    optional=True,
)


class BuildKernels(build_ext):
    """Compiles the instruction sets at the same time.

    It names the library without the ABI of a Python version, since it is not an extension module and fits them all.
    """

    def build_extension(self, ext: Extension) -> None:
        # setuptools would compile for an editable installation even if the library in the source folder is up to date.
        library = self.get_ext_filename(ext.name)
        if self.editable_mode and not newer_group([*ext.sources, *ext.depends, __file__], library):
            return
        compile_in_turn = self.compiler.compile

        def compile_at_once(sources: list[str], **options: Any) -> list[str]:
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                compiled = list(pool.map(lambda source: compile_in_turn([source], **options), sources))
            return [path for paths in compiled for path in paths]

        self.compiler.compile = compile_at_once
        super().build_extension(ext)

    def get_ext_filename(self, fullname: str) -> str:
        return str(Path(*fullname.split(".")).with_suffix(".so"))


class PlatformWheel(bdist_wheel):
    """One wheel a platform for all versions of Python, or without the kernels one for all platforms."""

    def get_tag(self) -> tuple[str, str, str]:
        # The content of the wheel decides, since setuptools does not know that the optional library was not built.
        # An editable wheel has no content: its kernels are in the source folder.
        self.root_is_pure = not (Path(self.bdist_dir) / KERNELS / "_kernels.so").exists()
        *_, platform = super().get_tag()
        return "py3", "none", platform


# What the plugin needs next to fairseq. Both distributions of fairseq own the folder "fairseq": install one of them.
PLUGIN = [
    "PyYAML>=6.0",
    "sentencepiece>=0.2",
    "protobuf>=3.20",
    "sacrebleu>=2.3",
    "sacremoses>=0.1",
    "tensorboardX>=2.5",
    "tqdm>=4.60",
]
HUGGINGFACE = ["transformers>=5,<6", "safetensors>=0.4", "sentencepiece>=0.2", "tokenizers>=0.22"]
LM_EVAL = ["lm-eval>=0.4.13"]
PLOTS = ["matplotlib>=3.7"]
# From 9.10 on, Snakemake starts more jobs than it has cores (its issue 3913).
EXPERIMENTS = ["snakemake>=9.1,<9.10", "snakemake-executor-plugin-slurm>=2,<3"]

PENN = ["nltk>=3.8"]

setup(
    name="fairseq_stack",
    version=read_version(),
    description="Sequence models with differentiable stacks, as a fairseq plugin and as PyTorch functions",
    long_description=readme(),
    long_description_content_type="text/markdown",
    author="The fairseq_stack authors",
    license="MIT",
    license_files=["LICENSE"],
    python_requires=">=3.11",
    packages=[
        *find_packages(include=["fairseq_stack", "fairseq_stack.*"]),
        *find_packages("preprocess", include=["fairseq_stack_preprocess", "fairseq_stack_preprocess.*"]),
    ],
    package_dir={
        "fairseq_stack": "fairseq_stack",
        "fairseq_stack_preprocess": "preprocess/fairseq_stack_preprocess",
    },
    package_data={
        "fairseq_stack": ["py.typed", "configs/model/*.yaml", "ops/_native/src/*"],
        "fairseq_stack_preprocess": ["py.typed"],
    },
    ext_modules=[KERNELS_EXTENSION],
    cmdclass={"build_ext": BuildKernels, "bdist_wheel": PlatformWheel},
    install_requires=["torch>=2.6", "numpy>=1.25"],
    extras_require={
        # Hydra 1.3.2, which fairseq requires, cannot parse options on Python 3.14.
        "fairseq": ['fairseq-fixed>=0.12.3.1,<0.12.4; python_version < "3.14"', *PLUGIN],
        "ve-fairseq": ["ve-fairseq==0.12.3", *PLUGIN],
        "huggingface": HUGGINGFACE,
        "lm-eval": LM_EVAL,
        "plots": PLOTS,
        "experiments": EXPERIMENTS,
        "penn": PENN,
        # Without fairseq, which scripts/setup.sh adds: "fairseq" or "ve-fairseq".
        "dev": [
            *HUGGINGFACE,
            *LM_EVAL,
            *PLOTS,
            *EXPERIMENTS,
            *PENN,
            "hypothesis>=6.80",
            "import-linter>=2.16",
            "minicons>=0.3.39",
            "mypy>=1.10",
            "pytest>=8.0",
            "pytest-xdist>=3.5",
            "ruff>=0.6",
        ],
    },
    entry_points={
        "console_scripts": ["fairseq-stack = fairseq_stack.cli:main"],
        "lm_eval.models": ["fairseq-stack = fairseq_stack.harness.language_model:FairseqStackLM"],
    },
    classifiers=[
        "Development Status :: 3 - Alpha",
        "Intended Audience :: Science/Research",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Typing :: Typed",
    ],
)
