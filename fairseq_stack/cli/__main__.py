"""``python -m fairseq_stack.cli`` is the command ``fairseq-stack``."""

import sys

from . import main

if __name__ == "__main__":
    sys.exit(main())
