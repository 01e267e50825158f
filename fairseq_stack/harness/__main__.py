"""``python -m fairseq_stack.harness`` is the command ``lm-eval``, which then knows ``--model fairseq-stack``."""

from __future__ import annotations

import sys

from fairseq_stack.errors import HOW_TO_INSTALL, USER_ERROR, UserError, missing_package


def main() -> int:
    """Run the command and return its exit code; a user's mistake gives one line on standard error."""
    try:
        from lm_eval.__main__ import cli_evaluate

        import fairseq_stack.harness.language_model  # noqa: F401  (registers the model)

        cli_evaluate()
    except UserError as error:
        return _fail(error)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in HOW_TO_INSTALL:
            raise
        return _fail(missing_package(package))
    return 0


def _fail(error: UserError) -> int:
    print(f"error: {error}", file=sys.stderr)
    return USER_ERROR


if __name__ == "__main__":
    sys.exit(main())
