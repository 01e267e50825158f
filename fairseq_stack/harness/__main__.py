"""``python -m fairseq_stack.harness`` is the command ``lm-eval``, which then knows ``--model fairseq-stack``."""

from __future__ import annotations

import sys

from fairseq_stack.errors import UserError


def main() -> int:
    """Run the command and return its exit code; a user's mistake gives one line on standard error."""
    try:
        from lm_eval.__main__ import cli_evaluate

        import fairseq_stack.harness  # noqa: F401  (registers the model)

        cli_evaluate()
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "lm_eval":
            raise
        print('lm-eval is not installed; run: pip install "fairseq_stack[lm-eval]"', file=sys.stderr)
        return 2
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
