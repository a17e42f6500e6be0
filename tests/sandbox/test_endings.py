"""Whatever a kernel starts ends with it, however it ends and however the grader ends."""

import gc
import os
import signal
import subprocess
import sys
import textwrap
import time
import uuid
from pathlib import Path

import pytest

from sandbox.conftest import Box, in_thread, processes_with

KERNELS = 3

DAEMON = """
import os, signal, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", '''
import os, signal, sys, time
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
for number in signal.valid_signals() - {{signal.SIGKILL, signal.SIGSTOP}}:
    signal.signal(number, signal.SIG_IGN)
print("up", flush=True)
time.sleep(600)
''', "{mark}"], stdout=subprocess.PIPE)
print(child.stdout.readline())
"""


def wait_until_gone(mark: str, seconds: float = 10) -> list[int]:
    deadline = time.monotonic() + seconds
    while (left := processes_with(mark)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


@pytest.fixture
def mark() -> str:
    return f"daemon-{uuid.uuid4()}"


def test_daemon_ends_with_shutdown(new_box, mark):
    box = new_box()
    assert "up" in box.run(DAEMON.format(mark=mark)).text
    assert processes_with(mark)
    box.close()
    assert wait_until_gone(mark, 0) == []  # shutdown returns when all is over


def test_daemon_ends_with_its_kernel(new_box, mark):
    box = new_box()
    assert "up" in box.run(DAEMON.format(mark=mark)).text
    assert box.run("import os\nos._exit(3)").error == "dead"
    assert wait_until_gone(mark) == []


@pytest.mark.parametrize(
    "end",
    ["import os\nos.abort()", "import os\nos.kill(os.getpid(), 9)", "import ctypes\nctypes.string_at(0)",
     "import os, signal, time\nos.kill(os.getpid(), signal.SIGTERM)\ntime.sleep(9)"],
    ids=["abort", "kill", "segfault", "terminate"],
)  # fmt: skip
def test_kernel_that_ends_itself_is_noticed(new_box, end):
    box = new_box()
    assert box.run(end).error == "dead"
    assert box.manager.stopped_because is None
    assert not box.runner.run(box.manager.is_alive())


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP, signal.SIGINT])
def test_first_process_cannot_be_ended_from_inside(new_box, number):
    box = new_box()
    box.run(f"import os\nos.kill(1, {int(number)})")
    assert box.run("print('alive')").text == "alive\n"


def test_interrupt_reaches_the_cell(new_box):
    box = new_box()

    async def interrupted() -> str:
        import asyncio

        work = asyncio.ensure_future(box._run("import time\ntime.sleep(60)", 30))
        await asyncio.sleep(0.5)
        await box.manager.interrupt_kernel()
        return (await work).error

    assert box.runner.run(interrupted()).startswith("KeyboardInterrupt")
    assert box.run("print('alive')").text == "alive\n"


def test_restart_gives_an_empty_kernel(new_box):
    box = new_box()
    box.run("value = 1\nopen('left', 'w').close()")
    box.client.stop_channels()
    box.runner.run(box.manager.restart_kernel(now=True))

    async def reconnect() -> None:
        box.client = box.manager.client()
        box.client.start_channels()
        await box.client.wait_for_ready(timeout=30)

    box.runner.run(reconnect())
    assert box.run("import os\nprint('value' in globals(), os.listdir())").text == "False []\n"


GRADER = """
import sys, time
sys.path[:0] = {path!r}
from sandbox.conftest import Box
box = Box(start={start!r})
print(box.run({daemon!r}).text, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_daemon_ends_with_the_grader(start, mark, number):
    root = Path(__file__).parents[2]
    code = textwrap.dedent(GRADER).format(
        path=[str(root), str(root / "tests")], start=start, daemon=DAEMON.format(mark=mark)
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as grader:
        assert "up" in grader.stdout.readline()
        assert processes_with(mark)
        grader.send_signal(number)
    assert wait_until_gone(mark) == []


def test_kernel_outlives_the_thread_that_started_it(start):
    boxes: list[Box] = []
    in_thread(lambda: boxes.append(Box(start=start)))
    time.sleep(0.3)
    try:
        assert boxes[0].run("print('alive')").text == "alive\n"
    finally:
        boxes[0].close()


def test_nothing_of_the_grader_is_left_open(start):
    Box(start=start).close()  # what is made once stays
    gc.collect()  # what earlier tests left is not counted
    before, threads = len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))
    for _ in range(KERNELS):
        box = Box(start=start)
        folder = Path(box.manager.provisioner.folder)
        assert folder.is_dir()
        box.close()
        assert not folder.exists()
    gc.collect()
    # Others in this process (pools, loggers) may open one of their own meanwhile; a leak is one a kernel at least.
    assert len(os.listdir("/proc/self/fd")) < before + KERNELS
    assert len(os.listdir("/proc/self/task")) <= threads + 1
