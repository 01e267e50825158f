"""prepare, killed at random moments: nothing is lost, and the same command run again gives the same bytes."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.commands.running import REPOSITORY
from tests.preprocess.corpus_folders import snapshot

KILLS = 4
"""Of each command."""
SIZES = "--train-size 300 --valid-size 20 --test-size 20"
TREE = "(S (NP (DT The) (NN dog)) (VP (VBZ barks)))\n"
COMMANDS = {
    "nested-translation": f"nested-translation {{target}} {SIZES}",
    "cfl": "cfl {target} --task dyck --limit 20 --max-length 50 --test-max-length 42",
    "mt": "mt {target} --source de --target en --train {raw}/c --valid {raw}/c --test {raw}/c --pieces 60 --workers 2",
    "treebank": "treebank {target} --train {raw}/t.mrg --valid {raw}/t.mrg --test {raw}/t.mrg --pieces 40",
}


def start(command: str, target: Path, raw: Path, *more: str) -> subprocess.Popen[bytes]:
    words = [word.format(target=target, raw=raw) for word in command.split()]
    return subprocess.Popen(
        [sys.executable, "-m", "fairseq_stack.cli", "prepare", *words, *more],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(REPOSITORY), str(REPOSITORY / "preprocess")])},
    )


def kept(folder: Path) -> list[dict[str, bytes | str]]:
    """The complete corpora in a folder, wherever a killed run left them."""
    return [snapshot(path.parent) for path in folder.rglob("manifest.json")]


@pytest.mark.hostile
@pytest.mark.parametrize("force", [False, True], ids=["new", "force"])
@pytest.mark.parametrize("name", COMMANDS)
def test_kill_at_random_moments(name: str, force: bool, tmp_path: Path) -> None:
    raw, command, rng = tmp_path / "raw", COMMANDS[name], random.Random(f"{name}{force}")
    raw.mkdir()
    for file, text in {"c.de": "Das ist es.\n", "c.en": "This is it.\n", "t.mrg": TREE}.items():
        (raw / file).write_text(text * 50)
    began = time.monotonic()
    assert start(command, tmp_path / "expected", raw).wait() == 0
    seconds = time.monotonic() - began
    expected = snapshot(tmp_path / "expected")
    place = tmp_path / "place"
    place.mkdir()
    target = place / "out"
    old: dict[str, bytes | str] = {}
    if force:
        assert start("reversal {target} --no-binarise --limit 5", target, raw).wait() == 0
        old = snapshot(target)
    interrupted = 0
    while interrupted < KILLS:
        process = start(command, target, raw, *(["--force"] if force else []))
        try:
            # Most of a run's changes come near its end.
            process.wait(timeout=seconds * rng.choice([rng.random(), rng.uniform(0.8, 1.1)]))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            interrupted += 1
        else:
            seconds *= 0.8  # the machine has become less busy
        if force:
            assert old in kept(place) or expected in kept(place)
        if target.exists():
            assert snapshot(target) in (old, expected)
            if not force:
                shutil.rmtree(target)
    code = start(command, target, raw, *(["--force"] if force else [])).wait()
    assert code == 0 or (code == 2 and not force)  # a run may have been killed when it had done its work
    assert snapshot(target) == expected
    assert [path.name for path in place.iterdir()] == ["out"]
