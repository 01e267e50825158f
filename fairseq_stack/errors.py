"""Errors that a user can fix, with a message that says how."""

from __future__ import annotations

import sys

USER_ERROR = 2
"""Exit code after a mistake of the user."""

INTERRUPTED = 130
"""Exit code after Ctrl-C, as of a shell."""

INSTALL_FAIRSEQ = (
    "fairseq needs Python 3.11, 3.12 or 3.13"
    if sys.version_info >= (3, 14)
    else (
        'install it with: pip install torch "setuptools<81" wheel cython numpy '
        "&& pip install --no-build-isolation 'fairseq_stack[fairseq]', or, without a compiler, on Linux x86-64 with "
        "Python 3.11 or 3.12: pip install 'fairseq_stack[ve-fairseq]'"
    )
)

HOW_TO_INSTALL = {
    **dict.fromkeys(("fairseq", "fairseq_cli", "hydra", "omegaconf"), INSTALL_FAIRSEQ),
    **{name: f"install it with: pip install {name}" for name in ("sacrebleu", "sacremoses", "sentencepiece")},
    **dict.fromkeys(
        ("safetensors", "tokenizers", "transformers"), "install it with: pip install 'fairseq_stack[huggingface]'"
    ),
    "lm_eval": "install it with: pip install 'fairseq_stack[lm-eval]'",
    "matplotlib": "install it with: pip install 'fairseq_stack[plots]'",
    "nltk": "install it with: pip install 'fairseq_stack[penn]'",
    "yaml": "install it with: pip install PyYAML",
}
"""The packages that the extras in setup.py install and a command may import."""


class UserError(ValueError):
    """A mistake in what a command was given (options, data, a checkpoint), with one line that says what to do.

    fairseq's commands end with this line and exit code 2 (:mod:`fairseq_stack.compat`). For callers from Python it is a
    ValueError like any other.
    """


class MissingPackage(ImportError, UserError):
    """A package of one of the extras is not installed, or has a version that cannot be used."""


def reason_of(error: Exception) -> str:
    """The first line of what an error says, or its class."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def missing_package(package: str) -> MissingPackage:
    """The error that says how to install one of :data:`HOW_TO_INSTALL`."""
    return MissingPackage(f"this needs {package}, which is not installed; {HOW_TO_INSTALL[package]}", name=package)
