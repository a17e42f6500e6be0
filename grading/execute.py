"""Run a rebuilt notebook in a kernel: once for what its cells show, once for what the probes ask.

Two kernels, since what a probe brings into a process could be stored by it and shown by a later cell.
"""

import ast
import asyncio
import atexit
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
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


@dataclass
class Execution:
    """What running a notebook gave. Plain data, so that it can be stored and judged again."""

    answers: dict[str, str] = field(default_factory=dict)  # exercise id -> encoded answers of its probe
    failures: dict[str, str] = field(default_factory=dict)  # exercise id -> why there is no answer
    isolation: str = ""  # "warm", "cold" or "none"
    seconds: float = 0.0
    died: bool = False  # a kernel ended, and no limit of ours had ended it


class KernelGone(Exception):
    """The kernel cannot be used any more; the message says why."""


def execute(
    notebook: NotebookNode,
    exercises: Mapping[str, Exercise],
    seed: int,
    policy: Policy,
    *,
    unsafe: bool = False,
    limits: Limits = Limits(),
) -> Execution:
    """Fill in the outputs of `notebook`'s cells and collect the probes' answers; never raises for student code.

    `exercises` maps a test cell's grade_id to its exercise; those cells are not run, their probes are. Raises
    SandboxError where no sandbox can be made and `unsafe` is not asked for.
    """
    return asyncio.run(_execute(notebook, exercises, seed, policy, unsafe, limits))


async def _execute(notebook, exercises, seed, policy, unsafe, limits) -> Execution:
    started = time.monotonic()
    result = Execution()
    shown = _Session(notebook, policy, unsafe, limits)
    asked = _Session(_without_outputs(notebook), policy, unsafe, limits)
    await asyncio.gather(shown.run({}, seed, Execution()), asked.run(exercises, seed, result))
    result.isolation = asked.isolation
    result.died = shown.died or asked.died
    result.seconds = time.monotonic() - started
    return result


def _without_outputs(notebook: NotebookNode) -> NotebookNode:
    copy = NotebookNode(metadata=notebook.metadata, nbformat=4, nbformat_minor=5)
    copy.cells = [NotebookNode(dict(cell), outputs=[]) for cell in notebook.cells]
    return copy


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


class _Session:
    """One kernel through one notebook."""

    def __init__(self, notebook: NotebookNode, policy: Policy, unsafe: bool, limits: Limits) -> None:
        self.notebook, self.limits = notebook, limits
        specs = KernelSpecManager(ensure_native_kernel=True)
        self.manager = SandboxedKernelManager(
            kernel_name="python3", kernel_spec_manager=specs, policy=policy, unsafe=unsafe
        )
        self.client = NotebookClient(
            notebook,
            km=self.manager,
            kernel_name="python3",
            timeout=limits.cell,
            interrupt_on_timeout=True,
            allow_errors=True,
            store_widget_state=False,
            startup_timeout=START_SECONDS,
            shutdown_kernel="immediate",
        )
        self.isolation = ""
        self.died = False

    async def run(self, exercises: Mapping[str, Exercise], seed: int, result: Execution) -> None:
        try:
            await self._run(exercises, seed, result)
        finally:  # nbclient's own, which at exit fails over a kernel that never started
            atexit.unregister(self.client._cleanup_kernel)

    async def _run(self, exercises: Mapping[str, Exercise], seed: int, result: Execution) -> None:
        deadline = time.monotonic() + self.limits.notebook
        gone = ""
        async with self.client.async_setup_kernel(cleanup_kc=True):  # else the kernel lives on, the manager being ours
            self.isolation = self.manager.isolation or ""
            for index, cell in enumerate(self.notebook.cells):
                marks = cell.metadata.get("nbgrader", {})
                exercise = exercises.get(marks.get("grade_id", ""))
                is_test = marks.get("grade") and not marks.get("solution")
                if cell.cell_type != "code" or (is_test and exercise is None):
                    continue
                if not gone and time.monotonic() > deadline:
                    gone = f"the notebook had already run for {self.limits.notebook:g} s"
                    await self._stop(gone)
                try:
                    if gone:
                        raise KernelGone(gone)
                    if exercise:
                        await self._ask(exercise, seed, result)
                    else:
                        await self._show(cell, index)
                except KernelGone as reason:
                    gone = str(reason)
                    if exercise:
                        result.failures[exercise.id] = f"your notebook's process had ended: {gone}"

    async def _show(self, cell: NotebookNode, index: int) -> None:
        started = time.monotonic()
        try:
            await self.client.async_execute_cell(cell, index)
        except CellTimeoutError:
            pass  # interrupted: the traceback in the cell's output says where
        except (DeadKernelError, RuntimeError):
            raise KernelGone(self._why()) from None
        finally:
            cell.outputs = _streams_joined(cell.outputs)
        if not await self.manager.is_alive():
            raise KernelGone(self._why())
        if time.monotonic() - started >= self.limits.cell:
            await self._expect_life()

    async def _expect_life(self) -> None:
        """After an interrupt: end a kernel that does not answer any more, and say so."""
        request = self.client.kc.execute("", silent=True, store_history=False, allow_stdin=False)
        if await self._reply(request, PATIENCE) is None:
            await self._stop("an endless loop did not react to an interrupt")
            raise KernelGone("an endless loop did not react to an interrupt")

    async def _ask(self, exercise: Exercise, seed: int, result: Execution) -> None:
        plan = exercise.plan(seed)
        probes = "__import__('proof_lm.probes', fromlist=['answer_plan'])"
        question = f"{probes}.answer_plan({plan!r}, ({exercise.name}))"
        try:
            reply = await self._evaluate(question)
        except TimeoutError:
            result.failures[exercise.id] = f"no answer within {self.limits.probe:g} s: an endless loop?"
            return
        if reply.get("status") == "ok":
            text = reply.get("data", {}).get("text/plain", "")
            result.answers[exercise.id] = _literal(text)
        elif missing := [name for name in exercise.names if f"'{name}'" in str(reply.get("evalue"))]:
            result.failures[exercise.id] = f"{missing[0]} is not defined when the notebook has run up to here"
        else:
            result.failures[exercise.id] = "asking for it raised an error"

    async def _evaluate(self, expression: str) -> dict[str, Any]:
        """The kernel's reply to one expression, sent on the shell channel, where nothing printed can pass for it."""
        client = self.client.kc
        options = {"silent": True, "store_history": False, "allow_stdin": False}
        request = client.execute("", user_expressions={"answer": expression}, **options)
        reply = await self._reply(request, self.limits.probe)
        if reply is None:
            await self.manager.interrupt_kernel()
            await self._expect_life()
            raise TimeoutError
        return reply.get("content", {}).get("user_expressions", {}).get("answer", {})

    async def _reply(self, request: str, seconds: float) -> dict[str, Any] | None:
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            try:
                reply = await self.client.kc.get_shell_msg(timeout=min(left, 0.5))
            except Empty:
                if not await self.manager.is_alive():
                    raise KernelGone(self._why()) from None
                continue
            if reply.get("parent_header", {}).get("msg_id") == request:
                return reply
        return None

    def _why(self) -> str:
        """The limit that ended the kernel. What it wrote last is not told: it could be a secret input."""
        self.died = not self.manager.stopped_because
        return self.manager.stopped_because or "it ended by itself"

    async def _stop(self, reason: str) -> None:
        self.manager.stop(reason)


def _literal(text: object) -> str:
    """The string of which `text` is the literal; empty, which no verdict accepts, for anything else."""
    if not isinstance(text, str) or not ONE_STRING.fullmatch(text):
        return ""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return ""
