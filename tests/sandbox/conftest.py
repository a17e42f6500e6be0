"""A kernel under attack: every test runs its code inside, once in a cold and once in a warm sandbox."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Empty

import pytest

from grading.sandbox import Policy, SandboxedKernelManager, available


@dataclasses.dataclass
class Answer:
    """What a cell printed, the error it ended with (``Type: text``) and the pictures it showed."""

    text: str = ""
    error: str | None = None
    pictures: list[str] = dataclasses.field(default_factory=list)


class Box:
    """One sandboxed kernel with a plain way to ask it."""

    def __init__(self, **policy) -> None:
        self.manager = SandboxedKernelManager(policy=Policy(**policy))
        self.runner, self.closed = asyncio.Runner(), False
        self.runner.run(self._start())

    async def _start(self) -> None:
        await self.manager.start_kernel(extra_arguments=["--HistoryManager.hist_file=:memory:"])
        self.client = self.manager.client()
        self.client.start_channels()
        await self.client.wait_for_ready(timeout=60)

    def run(self, code: str, timeout: float = 60) -> Answer:
        """Execute ``code``; an answer with ``error`` "dead" if the kernel ended before it was done."""
        return self.runner.run(self._run(code, timeout))

    async def _run(self, code: str, timeout: float) -> Answer:
        answer = Answer()

        def hook(message: dict) -> None:
            content = message["content"]
            answer.text += content.get("text", "")
            if message["msg_type"] == "error":
                answer.error = f"{content['ename']}: {content['evalue']}"
            if "image/png" in content.get("data", {}):
                answer.pictures.append(content["data"]["image/png"])

        work = asyncio.ensure_future(self.client.execute_interactive(code, allow_stdin=False, output_hook=hook))
        end = asyncio.ensure_future(self.manager.provisioner.wait())
        await asyncio.wait([work, end], timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        if work.done() and isinstance(work.exception(), Empty):  # a message was refused, which ends the kernel
            await asyncio.wait([end], timeout=timeout)
        if not work.done() or work.exception():
            work.cancel()
            answer.error = "dead" if end.done() else "timeout"
        end.cancel()
        return answer

    @property
    def init(self) -> int:
        """Process 1 of the sandbox, as this machine numbers it."""
        return self.manager.provisioner.process.init

    def close(self) -> None:
        """End it; more than once is no harm."""
        if self.closed:
            return
        self.closed = True
        self.client.stop_channels()
        self.runner.run(self.manager.shutdown_kernel(now=True))
        self.runner.close()


@pytest.fixture(scope="session", autouse=True)
def a_sandbox_can_be_made() -> None:
    assert available() is None, available()


@pytest.fixture(scope="module", params=["cold", "warm"])
def start(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def new_box(start: str) -> Iterator[Callable[..., Box]]:
    """Boxes of a test's own, for what may end them."""
    boxes: list[Box] = []

    def make(**policy) -> Box:
        boxes.append(Box(start=start, **policy))
        assert boxes[-1].manager.isolation == start  # no silent fallback: it would be tested twice
        return boxes[-1]

    yield make
    for box in boxes:
        box.close()


@pytest.fixture(scope="module")
def box(start: str) -> Iterator[Box]:
    """One box for all that leaves no trace."""
    shared = Box(start=start)
    assert shared.manager.isolation == start
    yield shared
    shared.close()


def processes_with(mark: str) -> list[int]:
    """Processes of this machine whose command line holds ``mark``."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def in_thread(function: Callable[[], object]) -> None:
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()
