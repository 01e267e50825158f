#!/usr/bin/env bash
# Make the virtual environment, install everything into it, and say how to use it. Can be run again: what is there
# is kept. Needs Python 3.11, 3.12 or 3.13, a C++ compiler (or Linux on x86-64, with Python 3.11 or 3.12) and pip's package
# index. Settings: see _environment.sh.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_environment.sh"
say "Ready. To use it: . '$VENV/bin/activate'"
