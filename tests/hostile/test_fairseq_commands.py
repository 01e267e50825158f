"""fairseq's commands, given what they cannot work with."""

from __future__ import annotations

from pathlib import Path

from tests.hostile.running import Case, Server, check, parametrize

CASES = [
    Case("train", "fairseq-train {mt_train} --save-dir new", quick=True),
    Case(
        "wrong layer list",
        "fairseq-train {mt_train} --stack-encoder-layers sdpa,spda --save-dir new",
        "--stack-encoder-layers: layer list 'sdpa,spda': ",
    ),
]


@parametrize(CASES)
def test_command(case: Case, server: Server, workspace: dict[str, str], folder: Path) -> None:
    check(case, server, workspace, folder)
