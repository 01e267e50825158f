"""Measure the stacks, decoding, and training steps: ``python scripts/benchmark.py --help``, and docs/benchmarks.md."""

from __future__ import annotations

import sys

from benchmark.command import main  # the folder next to this file

if __name__ == "__main__":
    sys.exit(main())
