"""One kernel through one notebook: `Shown` for what its cells show, `Asked` for what the probes ask.

What a probe brings into a process could be stored by it and shown by a later cell. So a kernel that is shown forks at
each test cell, and the forks are asked when nothing more of it is shown. What a fork could not answer without any
error, a second kernel is asked, which is not shown.
"""

import ast
import asyncio
import atexit
import re
import struct
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from itertools import groupby
from queue import Empty
from typing import Any

from jupyter_client.kernelspec import KernelSpecManager
from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from nbformat.v4 import new_output

from grading.execution import Limits
from grading.exercise import Exercise
from grading.sandbox import Policy, SandboxedKernelManager
from grading.sandbox.inside import ANSWERING

# nothing that is put together: a syntax tree takes far more memory than its text
ONE_STRING = re.compile(r"""'(?:[^'\\\n]++|\\.)*+'|"(?:[^"\\\n]++|\\.)*+\"""")
LENGTH = struct.Struct("=Q")  # before each message of a fork
MAX_ID_BYTES = 64
FORK_SECONDS = 5.0  # for all forks together; who needs more gets it in the second kernel
PATIENCE = 5.0  # seconds between an interrupt and giving a kernel up
START_SECONDS = 60.0


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
                except Exception:  # libraries trust a kernel's messages more than we do
                    gone = "sent a message that is no Jupyter message"
                    self.manager.stop(gone)
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

    async def evaluate(self, expression: str) -> dict[str, Any]:
        """The kernel's reply to one expression, sent on the shell channel, where nothing printed can pass for it."""
        options = {"silent": True, "store_history": False, "allow_stdin": False}
        request = self.client.execute("", user_expressions={"answer": expression}, **options)
        reply = await self.reply(request, self.limits.probe)
        if reply is None:
            await self.manager.interrupt_kernel()
            await self.expect_life()
            raise TimeoutError
        return reply.get("content", {}).get("user_expressions", {}).get("answer", {})

    def why(self) -> str:
        """The limit that ended the kernel. What it wrote last is not told: it could be a secret input."""
        self.died = not self.manager.stopped_because
        return self.manager.stopped_because or "it ended by itself"


class Shown(Session):
    """Runs all cells but the tests and keeps their outputs in the notebook, by nbclient; then asks forks of it."""

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
        self.kept: list[str] = []  # ids of exercises that a fork waits to be asked for
        self.answers: dict[str, str] = {}  # exercise id -> encoded answers, none of them an error
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
                self.client.stop_channels()  # from here on nothing is shown
                if self.kept:
                    await self._ask_forks()
        finally:  # nbclient's own, which at exit fails over a kernel that never started
            atexit.unregister(self.runner._cleanup_kernel)

    async def meet(self, cell: NotebookNode, index: int) -> None:
        if _is_test(cell):
            await self._keep(self.exercises.get(grade_id(cell)))
            return
        started, others = time.monotonic(), asyncio.all_tasks()
        try:
            await self.runner.async_execute_cell(cell, index)
        except CellTimeoutError:
            pass  # interrupted: the traceback in the cell's output says where
        except (DeadKernelError, RuntimeError):
            raise KernelGone(self.why()) from None
        finally:
            for left in asyncio.all_tasks() - others:  # nbclient's, which a message failed
                left.cancel()
            cell.outputs = _streams_joined(cell.outputs)
        if not await self.manager.is_alive():
            raise KernelGone(self.why())
        if time.monotonic() - started >= self.limits.cell:
            await self.expect_life()

    def miss(self, cell: NotebookNode, reason: str) -> None:
        """It stays without outputs."""

    async def _keep(self, exercise: Exercise | None) -> None:
        """Let the kernel fork for an exercise, where it can."""
        if exercise and self.manager.answering:
            keep = "__import__('proof_lm.probes.later', fromlist=['keep']).keep"
            question = f"{keep}({ANSWERING}, {exercise.id!r}, ({exercise.name}))"
            with suppress(TimeoutError):
                if (await self.evaluate(question)).get("status") == "ok":
                    self.kept.append(exercise.id)

    async def _ask_forks(self) -> None:
        """Ask as many forks as there should be, each for the exercise that it names."""
        exercises = {exercise.id: exercise for exercise in self.exercises.values()}
        with suppress(TimeoutError):
            async with asyncio.timeout(min(FORK_SECONDS, self.limits.probe)):
                await asyncio.gather(*(self._ask_one(exercises) for _ in self.kept))

    async def _ask_one(self, exercises: Mapping[str, Exercise]) -> None:
        try:
            reader, writer = await asyncio.open_unix_connection(self.manager.answering)
        except OSError:
            return
        try:
            exercise = exercises[(await _receive(reader, MAX_ID_BYTES)).decode()]
            plan = exercise.plan(self.seed).encode()
            writer.write(LENGTH.pack(len(plan)) + plan)
            answers = (await _receive(reader, self.manager.policy.message_bytes)).decode()
            if without_errors(answers):
                self.answers[exercise.id] = answers
        except (OSError, EOFError, KeyError, ValueError):  # what comes back is a stranger's: the other kernel is asked
            pass
        finally:
            writer.close()


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
        return self.exercises.get(grade_id(cell))

    async def _ask(self, exercise: Exercise) -> None:
        plan = exercise.plan(self.seed)
        probes = "__import__('proof_lm.probes', fromlist=['answer_plan'])"
        question = f"{probes}.answer_plan({plan!r}, ({exercise.name}))"
        try:
            reply = await self.evaluate(question)
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


def grade_id(cell: NotebookNode) -> str:
    """Of nbgrader's metadata; empty where there is none."""
    return cell.metadata.get("nbgrader", {}).get("grade_id", "")


async def _receive(reader: asyncio.StreamReader, most: int) -> bytes:
    """One message; raises EOFError when it is cut off and ValueError when it is longer than `most`."""
    (length,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
    if length > most:
        raise ValueError(f"a message of {length} bytes, at most {most} are read")
    return await reader.readexactly(length)


def without_errors(answers: str) -> bool:
    """Whether no call raised; a text that says so within an answer has its quotes escaped."""
    return answers.count('["error", ') == answers.count('["error", ""]') > 0


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
