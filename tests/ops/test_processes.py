"""Forks and threads: no call of the ops waits for threads that a process does not have."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE, STDOUT

import pytest

SECONDS = 60  # without a sign of life: a round takes three of them at most on a machine with nothing else to do

# Two threads that work, also on the small operations here, and results that can be compared.
SETUP = """
import multiprocessing, os, sys, threading
import torch
from torch.utils.data import DataLoader, Dataset
from fairseq_stack import ops
from fairseq_stack.ops import _native

TIMES = int(sys.argv[1])
_native.WORTH_THREADS = 1

def superposition():
    actions = torch.linspace(0, 1, 8 * 9 * 3).reshape(8, 9, 3).requires_grad_()
    values = torch.linspace(-1, 1, 8 * 9 * 4).reshape(8, 9, 4)
    readings = ops.superposition_stack(actions, values)
    readings.sum().backward()
    return [readings.detach(), actions.grad]

def nondeterministic():
    push, replace = (torch.linspace(-1, x, 8 * 9 * 16).reshape(8, 9, 2, 2, 2, 2).requires_grad_() for x in (1, 2))
    pop = torch.linspace(-1, 1, 8 * 9 * 8).reshape(8, 9, 2, 2, 2)
    values = torch.linspace(-1, 1, 8 * 9 * 4).reshape(8, 9, 4)
    readings = ops.nondeterministic_stack(push, replace, pop, values, torch.ones(4))
    readings.sum().backward()
    return [readings.detach(), push.grad, *steps(push, replace, pop, values)]

def steps(push, replace, pop, values, count=3):
    state = ops.NondeterministicStackState.initial(torch.ones(4), batch_size=8, num_states=2, num_symbols=2)
    with torch.no_grad():
        for t in range(count):
            reading, state = state.step(push[:, t], replace[:, t], pop[:, t], values[:, t])
    return [reading]

def results():
    return [x.clone() for x in superposition() + nondeterministic()]

def one_step():
    transitions = torch.zeros(8, 1, 2, 2, 2, 2)
    steps(transitions, transitions, transitions[..., 0], torch.zeros(8, 1, 4), 1)

def product():
    return torch.bmm(torch.ones(8, 4, 10), torch.ones(8, 10, 36))

def check(actual):
    assert all(torch.equal(x, y) for x, y in zip(actual, EXPECTED, strict=True))

def in_child():
    check(results())

def in_threads(count, function=in_child):
    failures = []
    def run():
        try:
            function()
        except BaseException as error:
            failures.append(error)
    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures

class Stacks(Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, index):
        check(results())
        return index

def in_forked_child(function):
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            function()
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0

def rounds():
    for i in range(TIMES):
        yield
        print("round", i, "is over", flush=True)

torch.set_num_threads(1)
EXPECTED = results()
torch.set_num_threads(2)
"""

PROGRAMS = {
    "fork after threads": """
for _ in rounds():
    check(results())
    in_threads(2)
    in_forked_child(in_child)
    check(results())
""",
    # A thread that has ended for Python still holds locks of MKL for a moment.
    "products of PyTorch, fork after threads": """
for _ in rounds():
    for _ in range(20):
        in_threads(2, product)
        in_forked_child(product)
""",
    # As another thread may be anywhere in a kernel when the process forks; a product of PyTorch would hold MKL's locks.
    **{
        f"fork beside {work}": f"""
stop = threading.Event()
def work():
    while not stop.is_set():
        {work}()
beside = threading.Thread(target=work)
beside.start()
try:
    for _ in rounds():
        for _ in range(10):
            in_forked_child({work})
finally:
    stop.set()
    beside.join()
"""
        for work in ("superposition", "one_step")
    },
    "threads after fork": """
for _ in rounds():
    check(results())
    in_forked_child(lambda: in_threads(3))
    in_threads(3)
""",
    # PyTorch's own operations could hang in this one; the compiled kernels do not.
    "more threads in a forked child": """
def child():
    torch.set_num_threads(2)
    for _ in range(2):
        assert torch.equal(superposition()[0], EXPECTED[0])
for _ in rounds():
    check(results())
    in_forked_child(child)
""",
    "operations of PyTorch in a forked child": """
def child():
    assert torch.get_num_threads() == 1
    assert torch.ones(400, 400).exp().sum() > 0
for _ in rounds():
    check(results())
    assert torch.ones(400, 400).exp().sum() > 0
    in_forked_child(child)
""",
    "a forked child of a forked child": """
for _ in rounds():
    check(results())
    in_forked_child(lambda: (in_child(), in_forked_child(in_child)))
""",
    "a forked child that is the first to use the kernels": """
_native.availability.cache_clear()
for _ in rounds():
    assert torch.ones(400, 400).exp().sum() > 0
    in_forked_child(in_child)
""",
    **{
        f"multiprocessing by {method}": f"""
context = multiprocessing.get_context({method!r})
if __name__ == "__main__":
    for _ in rounds():
        check(results())
        child = context.Process(target=in_child)
        child.start()
        child.join()
        assert child.exitcode == 0
"""
        for method in ("fork", "spawn")
    },
    **{
        f"DataLoader by {method}": f"""
if __name__ == "__main__":
    for _ in rounds():
        check(results())
        loader = DataLoader(Stacks(), num_workers=2, multiprocessing_context={method!r})
        assert [int(index) for index in loader] == [0, 1, 2, 3]
"""
        for method in ("fork", "spawn")
    },
}


def run(program: str, times: int, folder: Path) -> None:
    """Run a program in a process of its own, and end it with its children if it hangs."""
    path = folder / "program.py"  # a file, since spawned children import it
    path.write_text(SETUP + program)
    command = [sys.executable, "-W", "ignore", str(path), str(times)]
    output = b""
    with subprocess.Popen(command, stdout=PIPE, stderr=STDOUT, start_new_session=True) as process:
        assert process.stdout is not None
        while select.select([process.stdout], [], [], SECONDS)[0]:
            more = os.read(process.stdout.fileno(), 65536)
            if not more:
                break
            output += more
        else:
            os.killpg(process.pid, signal.SIGKILL)
            pytest.fail(f"hung for {SECONDS} seconds after {output.decode()[-200:]!r}:\n{program}")
    assert process.returncode == 0, output.decode()


@pytest.mark.parametrize("part", ["fork", "spawn"])
def test_processes_and_threads(part: str, tmp_path: Path) -> None:
    """All that fork, in one process, three times; and one that spawns, which takes seconds to begin."""
    if part == "spawn":
        run(PROGRAMS["multiprocessing by spawn"], 1, tmp_path)
    else:
        forks = (program for name, program in PROGRAMS.items() if "spawn" not in name)
        run("".join(f"print({program!r}, flush=True)\n{program}" for program in forks), 3, tmp_path)


@pytest.mark.hostile
@pytest.mark.parametrize("name", PROGRAMS)
def test_processes_and_threads_again_and_again(name: str, tmp_path: Path) -> None:
    run(PROGRAMS[name], 10 if "spawn" in name else 100, tmp_path)
