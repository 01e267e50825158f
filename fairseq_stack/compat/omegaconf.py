"""``omegaconf``, which holds fairseq's options."""

from __future__ import annotations

from typing import Any

from fairseq_stack.compat.replacing import replaces


@replaces("omegaconf:DictConfig.__getattr__")
def get_option(original: Any, self: Any, key: str) -> Any:
    """Read numbers, lists and groups of options without OmegaConf's checks, which take 1 ms per update.

    fairseq reads about 57 options in an update, and OmegaConf checks each time whether the option is missing, or refers
    to another one. Only text can be a reference, or a sign that an option is missing.

    Unnecessary with a fairseq that keeps its options in plain objects.
    """
    options = vars(self)["_content"]
    node = options.get(key) if isinstance(options, dict) else None
    if node is not None:
        if isinstance(vars(node).get("_content"), (dict, list)):
            return node
        value = vars(node).get("_val", "")
        if not isinstance(value, str):
            return value
    return original(self, key)
