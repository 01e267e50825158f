"""Harmless warnings are silent, others are not."""

from __future__ import annotations

import subprocess
import sys
import warnings

import pytest

from fairseq_stack.compat import noise

KEPT = [
    "hydra is on fire",
    "pin_memory",
    "overflow encountered in scalar subtract",
    "invalid value encountered in scalar subtract",
]
SILENT = [
    "hydra.experimental.initialize() is no longer experimental. Use hydra.initialize()",
    "\nThe version_base parameter is not specified.\nPlease specify",
    "In 'config': Usage of deprecated keyword in package header '# @package _group_'.\nSee",
    "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be used.",
    "`torch.cuda.amp.autocast(args...)` is deprecated. Please use `torch.amp.autocast('cuda', args...)` instead.",
    "Support for mismatched key_padding_mask and attn_mask is deprecated. Use same type for both instead.",
]


@pytest.mark.parametrize(("message", "count"), [(text, 0) for text in SILENT] + [(text, 1) for text in KEPT])
def test_filters_go_by_message(message: str, count: int) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        noise.silence_harmless_warnings()
        warnings.warn(message, UserWarning, stacklevel=1)
    assert len(caught) == count


def test_a_command_starts_in_silence() -> None:
    """Warnings of imports and of parsing options, before anything is done."""
    code = "import sys, fairseq_stack.models, fairseq_cli.train as train; sys.argv[1:] = ['--help']; train.cli_main()"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stderr == ""
