"""One kernel through one notebook: `Shown` for what its cells show, `Asked` for what the probes ask."""

import ast
import atexit
import re
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from itertools import groupby
from queue import Empty
from typing import Any

from jupyter_client.kernelspec import KernelSpecManager
from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from nbformat.v4 import new_output

from grading.exercise import Exercise
from grading.sandbox import Policy, SandboxedKernelManager

# nothing that is put together: a syntax tree takes far more memory than its text
ONE_STRING = re.compile(r"""'(?:[^'\\\n]++|\\.)*+'|"(?:[^"\\\n]++|\\.)*+\"""")
PATIENCE = 5.0  # seconds between an interrupt and giving a kernel up
START_SECONDS = 60.0


@dataclass(frozen=True)
class Limits:
    """How long student code may run, in seconds."""

    cell: float = 20.0
    probe: float = 20.0
    notebook: float = 180.0


class KernelGone(Exception):
    """The kernel cannot be used any more; the message says why."""


class Session(ABC):
    """A kernel that meets the code cells of a notebook one after the other."""

    def __init__(self, notebook: NotebookNode, policy: Policy, unsafe: bool, limits: Limits) -> None:
        self.notebook, self.limits = notebook, limits
        specs = KernelSpecManager(ensure_native_kernel=True)
        self.manager = SandboxedKernelManager(
            kernel_name="python3", kernel_spec_manager=specs, policy=policy, unsafe=unsafe
        )
        self.client: Any = None  # of jupyter_client, while the kernel runs
        self.isolation = ""
        self.died = False  # it ended, and no limit of ours had ended it

    async def run(self) -> None:
        """Meet every cell; once the kernel has gone, only say so of each."""
        deadline = time.monotonic() + self.limits.notebook
        gone = ""
        async with self.kernel():
            self.isolation = self.manager.isolation or ""
            for index, cell in enumerate(self.notebook.cells):
                if cell.cell_type != "code":
                    continue
                if not gone and time.monotonic() > deadline:
                    gone = f"the notebook had already run for {self.limits.notebook:g} s"
                    self.manager.stop(gone)
                try:
                    if gone:
                        raise KernelGone(gone)
                    await self.meet(cell, index)
                except KernelGone as reason:
                    gone = str(reason)
                    self.miss(cell, gone)

    @abstractmethod
    def kernel(self) -> AbstractAsyncContextManager[None]:
        """Start the kernel and its client, and end both."""

    @abstractmethod
    async def meet(self, cell: NotebookNode, index: int) -> None:
        """Do with a cell what this session is for; raises KernelGone."""

    @abstractmethod
    def miss(self, cell: NotebookNode, reason: str) -> None:
        """Do what there is to do with a cell that no kernel is left for."""

    async def expect_life(self) -> None:
        """After an interrupt: end a kernel that does not answer any more, and say so."""
        request = self.client.execute("", silent=True, store_history=False, allow_stdin=False)
        if await self.reply(request, PATIENCE) is None:
            reason = "an endless loop did not react to an interrupt"
            self.manager.stop(reason)
            raise KernelGone(reason)

    async def reply(self, request: str, seconds: float) -> dict[str, Any] | None:
        """The reply to a request on the shell channel, or None where none comes in time; raises KernelGone."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            try:
                reply = await self.client.get_shell_msg(timeout=min(left, 0.5))
            except Empty:
                if not await self.manager.is_alive():
                    raise KernelGone(self.why()) from None
                continue
            if reply.get("parent_header", {}).get("msg_id") == request:
                return reply
        return None

    def why(self) -> str:
        """The limit that ended the kernel. What it wrote last is not told: it could be a secret input."""
        self.died = not self.manager.stopped_because
        return self.manager.stopped_because or "it ended by itself"


class Shown(Session):
    """Runs all cells but the tests and keeps their outputs in the notebook, by nbclient."""

    def __init__(self, notebook: NotebookNode, policy: Policy, unsafe: bool, limits: Limits) -> None:
        super().__init__(notebook, policy, unsafe, limits)
        self.runner = NotebookClient(
            notebook,
            km=self.manager,
            kernel_name="python3",
            timeout=limits.cell,
            iopub_timeout=limits.cell,  # outputs that are still on their way when a cell has ended
            interrupt_on_timeout=True,
            allow_errors=True,
            store_widget_state=False,
            startup_timeout=START_SECONDS,
            shutdown_kernel="immediate",
            ipython_hist_file="",  # there is no history
        )

    @asynccontextmanager
    async def kernel(self) -> AsyncIterator[None]:
        try:
            async with self.runner.async_setup_kernel(cleanup_kc=True):  # else it lives on, the manager being ours
                self.client = self.runner.kc
                yield
        finally:  # nbclient's own, which at exit fails over a kernel that never started
            atexit.unregister(self.runner._cleanup_kernel)

    async def meet(self, cell: NotebookNode, index: int) -> None:
        if _is_test(cell):
            return
        started = time.monotonic()
        try:
            await self.runner.async_execute_cell(cell, index)
        except CellTimeoutError:
            pass  # interrupted: the traceback in the cell's output says where
        except (DeadKernelError, RuntimeError):
            raise KernelGone(self.why()) from None
        finally:
            cell.outputs = _streams_joined(cell.outputs)
        if not await self.manager.is_alive():
            raise KernelGone(self.why())
        if time.monotonic() - started >= self.limits.cell:
            await self.expect_life()

    def miss(self, cell: NotebookNode, reason: str) -> None:
        """It stays without outputs."""


class Asked(Session):
    """Runs all cells and asks each test cell's probe in its place. What cells show here is not even received."""

    def __init__(
        self,
        notebook: NotebookNode,
        policy: Policy,
        unsafe: bool,
        limits: Limits,
        exercises: Mapping[str, Exercise],
        seed: int,
    ) -> None:
        super().__init__(notebook, policy, unsafe, limits)
        self.exercises, self.seed = exercises, seed
        self.answers: dict[str, str] = {}  # exercise id -> encoded answers of its probe
        self.failures: dict[str, str] = {}  # exercise id -> why there is no answer

    @asynccontextmanager
    async def kernel(self) -> AsyncIterator[None]:
        try:
            await self.manager.start_kernel()
            self.client = self.manager.client()
            self.client.start_channels(iopub=False)
            await self.client.wait_for_ready(START_SECONDS)
            yield
        finally:
            if self.manager.has_kernel:
                await self.manager.shutdown_kernel(now=True)
            if self.client:
                self.client.stop_channels()

    async def meet(self, cell: NotebookNode, index: int) -> None:
        if exercise := self._exercise(cell):
            await self._ask(exercise)
        elif not _is_test(cell):
            request = self.client.execute(cell.source, allow_stdin=False, stop_on_error=False)
            if await self.reply(request, self.limits.cell) is None:
                await self.manager.interrupt_kernel()
                await self.expect_life()

    def miss(self, cell: NotebookNode, reason: str) -> None:
        if exercise := self._exercise(cell):
            self.failures[exercise.id] = f"your notebook's process had ended: {reason}"

    def _exercise(self, cell: NotebookNode) -> Exercise | None:
        return self.exercises.get(cell.metadata.get("nbgrader", {}).get("grade_id", ""))

    async def _ask(self, exercise: Exercise) -> None:
        plan = exercise.plan(self.seed)
        probes = "__import__('proof_lm.probes', fromlist=['answer_plan'])"
        question = f"{probes}.answer_plan({plan!r}, ({exercise.name}))"
        try:
            reply = await self._evaluate(question)
        except TimeoutError:
            self.failures[exercise.id] = f"no answer within {self.limits.probe:g} s: an endless loop?"
            return
        if reply.get("status") == "ok":
            text = reply.get("data", {}).get("text/plain", "")
            self.answers[exercise.id] = _literal(text)
        elif missing := [name for name in exercise.names if f"'{name}'" in str(reply.get("evalue"))]:
            self.failures[exercise.id] = f"{missing[0]} is not defined when the notebook has run up to here"
        else:
            self.failures[exercise.id] = "asking for it raised an error"

    async def _evaluate(self, expression: str) -> dict[str, Any]:
        """The kernel's reply to one expression, sent on the shell channel, where nothing printed can pass for it."""
        options = {"silent": True, "store_history": False, "allow_stdin": False}
        request = self.client.execute("", user_expressions={"answer": expression}, **options)
        reply = await self.reply(request, self.limits.probe)
        if reply is None:
            await self.manager.interrupt_kernel()
            await self.expect_life()
            raise TimeoutError
        return reply.get("content", {}).get("user_expressions", {}).get("answer", {})


def _is_test(cell: NotebookNode) -> bool:
    marks = cell.metadata.get("nbgrader", {})
    return bool(marks.get("grade")) and not marks.get("solution")


def _streams_joined(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Texts between other outputs in one piece, stdout first: where a stream is cut, and which comes first, is chance.

    nbclient's `coalesce_streams` would do, but takes quadratic time on a long line.
    """
    joined = []
    for is_stream, run in groupby(outputs, key=lambda output: output.output_type == "stream"):
        if not is_stream:
            joined += run
            continue
        texts: dict[str, list[str]] = {}
        for output in run:
            texts.setdefault(output.name, []).append(output.text)
        joined += [new_output("stream", name=name, text="".join(texts[name])) for name in sorted(texts, reverse=True)]
    return joined


def _literal(text: object) -> str:
    """The string of which `text` is the literal; empty, which no verdict accepts, for anything else."""
    if not isinstance(text, str) or not ONE_STRING.fullmatch(text):
        return ""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return ""
