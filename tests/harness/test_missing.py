"""The command of the harness where lm-eval is not installed."""

from __future__ import annotations

import subprocess
import sys


def test_one_line_says_how_to_install_it() -> None:
    program = (
        "import sys; sys.modules['lm_eval'] = None; from fairseq_stack.harness.__main__ import main; sys.exit(main())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: this needs lm_eval") and line.endswith("pip install 'fairseq_stack[lm-eval]'")
