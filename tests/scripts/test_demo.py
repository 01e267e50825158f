"""scripts/demo.sh, all of it in its tiny mode."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import sacrebleu

from fairseq_stack.evaluation.cfl_result import CFLResult
from tests.commands.running import REPOSITORY, Server
from tests.documents import Document, run_block

CORPORA = ["nested-translation", "dyck"]
KINDS = ["tf", "sup", "nd"]


def start(*arguments: str, environment: dict[str, str] | None = None) -> subprocess.Popen[str]:
    """Start the demo in the environment that runs the tests, or in another one."""
    if environment is None:
        environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    command = ["bash", str(REPOSITORY / "scripts" / "demo.sh"), "--no-setup", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def demo(server: Server, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the demo to its end, with the commands of a server."""
    process = start(*arguments, environment=server.environment())
    stdout, stderr = process.communicate()
    return subprocess.CompletedProcess(arguments, process.returncode, stdout, stderr)


def processes_on(folder: Path) -> list[str]:
    """The commands that run with ``folder`` among their arguments."""
    commands = subprocess.run(["ps", "-A", "-ww", "-o", "args="], capture_output=True, text=True, check=True).stdout
    return [command for command in commands.splitlines() if str(folder) in command]


def report(output: str) -> str:
    """The tables and the paths of the pictures, without what was said before and how long it took."""
    return output[output.index("Nested translation, German") : output.rindex("==> ")]


def test_the_demo(tmp_path: Path, server: Server) -> None:
    """One test, since each part needs what the parts before it have trained."""
    folder = tmp_path / "demo out"
    done = demo(server, "--tiny", str(folder))
    assert done.returncode == 0, done.stdout + done.stderr
    output = done.stdout + done.stderr
    check_that_it_ends_with_a_table_and_a_picture(folder, output)
    check_that_results_are_those_of_the_models(folder)
    check_that_the_commands_of_its_page_run(folder, server)
    check_that_a_second_run_does_nothing_twice(folder, output, server)


@pytest.mark.hostile
def test_it_stops_with_all_that_it_started(tmp_path: Path, server: Server) -> None:
    """Stopped when it has begun to train; the next run goes on."""
    process = start("--tiny", str(tmp_path / "out"))
    assert process.stderr is not None
    said: list[str] = []
    while not said or (said[-1] and ": training" not in said[-1]):
        said.append(process.stderr.readline())
    process.terminate()
    process.wait()
    left = processes_on(tmp_path / "out")
    process.communicate()
    assert (process.returncode, left) == (143, []), "".join(said)
    assert not list((tmp_path / "out").glob("*/corpus.*"))
    done = demo(server, "--tiny", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr


def check_that_it_ends_with_a_table_and_a_picture(folder: Path, output: str) -> None:
    table = (folder / "table.md").read_text(encoding="utf-8")
    pictures = f"{folder / 'demo.png'} {folder / 'demo-stack.png'}"
    assert report(output) == f"{table}\npictures: {pictures}\n"
    rows = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("|")]
    assert rows == ["model", "-----", *KINDS] * 2


def check_that_results_are_those_of_the_models(folder: Path) -> None:
    lines = (folder / "table.md").read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("|")]
    head, rows = cells[5], cells[7:]
    assert head[4:] == ["10", "12", "14", "16", "samples"]
    for row in rows:
        scores = CFLResult.read(folder / "dyck" / row[0] / "test.json")
        assert row[1:3] == [f"{scores.model.parameters:,}", "4"]
        assert row[4:8] == [f"{score.difference.value:.3f}" for score in scores.by_length]
    for row in cells[2:5]:
        translations = (folder / "nested-translation" / row[0] / "generate-test.txt").read_text(encoding="utf-8")
        references = re.findall(r"^T-\d+\t(.*)$", translations, re.MULTILINE)
        hypotheses = re.findall(r"^H-\d+\t[^\t]*\t(.*)$", translations, re.MULTILINE)
        assert row[5] == f"{sacrebleu.corpus_bleu(hypotheses, [references], tokenize='none', force=True).score:.1f}"


def check_that_the_commands_of_its_page_run(folder: Path, server: Server) -> None:
    _, commands = Document("docs/demo.md").blocks("bash")
    here = (re.compile(r"demo-out(\S+)"), rf"'{folder.name}\1'")
    tiny = (re.compile(r"\{ (.*) \}"), r"( \1 )")  # fewer kinds of brackets
    run_block(commands, folder.parent, server, [here, tiny])
    assert (folder.parent / "run.png").exists()
    assert (folder.parent / "lengths.png").exists()


def check_that_a_second_run_does_nothing_twice(folder: Path, output: str, server: Server) -> None:
    """Not even if the demo was killed when a training run had ended, before it noted that."""
    checkpoints = sorted(folder.rglob("checkpoint*.pt"))
    before = [path.stat().st_mtime_ns for path in checkpoints]
    for name in ("nested-translation/tf/trained", "nested-translation/tf/generate-test.txt", "table.md"):
        (folder / name).unlink()
    again = demo(server, "--tiny", str(folder))
    assert again.returncode == 0, again.stderr
    assert report(again.stdout) == report(output)
    jobs = re.findall(r"^Job \d+: (.*)$", again.stderr + again.stdout, re.MULTILINE)
    tf = "nested-translation/tf"
    assert jobs == [f"{tf}: training", f"{tf}: translating the test set", "the table and the pictures"]
    assert [path.stat().st_mtime_ns for path in checkpoints] == before
    assert len([path for path in checkpoints if path.name == "checkpoint_best.pt"]) == 6


def test_a_failure_shows_the_end_of_its_output(tmp_path: Path, server: Server) -> None:
    folder = tmp_path / "out"
    for name in ("nested-translation/prepared", "dyck/prepared", "dyck/corpus/no-data"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    (folder / "demo-settings").write_text("fairseq_stack demo, tiny\n", encoding="utf-8")
    done = demo(server, "--tiny", str(folder))
    assert done.returncode == 1
    assert "/corpus/data-bin does not exist: expected a folder" in done.stderr
    assert re.search(
        r"^Error: the demo failed with exit code 1, see above; the output of every step", done.stderr, re.M
    )
    assert "pictures:" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--tine"], 2, "unknown option --tine"),
        (["a", "b"], 2, "more than one folder"),
        (["FOREIGN"], 1, "holds other files, or a demo of another size"),
        (["OTHER"], 1, "holds other files, or a demo of another size"),
    ],
    ids=["typo", "two-folders", "foreign-folder", "other-size"],
)
def test_mistakes(tmp_path: Path, arguments: list[str], code: int, message: str, server: Server) -> None:
    files = [tmp_path / "FOREIGN" / "table.md", tmp_path / "OTHER" / "demo-settings"]
    for file in files:
        file.parent.mkdir()
        file.write_text("fairseq_stack demo, tiny\n", encoding="utf-8")
    arguments = [str(tmp_path / word) if word.isupper() else word for word in arguments]
    done = demo(server, *arguments)
    assert done.returncode == code
    assert message in done.stderr
    assert sorted(file for file in tmp_path.rglob("*") if file.is_file()) == files
