"""Run a rebuilt notebook: for what its cells show, and for what the probes ask."""

import asyncio
import time
from collections.abc import Mapping

from nbformat import NotebookNode

from grading.execution import Execution, Limits
from grading.exercise import Exercise
from grading.sandbox import Policy
from grading.session import Asked, Shown


def execute(
    notebook: NotebookNode,
    exercises: Mapping[str, Exercise],
    seed: int,
    policy: Policy,
    *,
    unsafe: bool = False,
    limits: Limits,
) -> Execution:
    """Fill in the outputs of `notebook`'s cells and collect the probes' answers; never raises for student code.

    `exercises` maps a test cell's grade_id to its exercise; those cells are not run, their probes are. Raises
    SandboxError where no sandbox can be made and `unsafe` is not asked for.
    """
    return asyncio.run(_execute(notebook, exercises, seed, policy, unsafe, limits))


async def _execute(notebook, exercises, seed, policy, unsafe, limits) -> Execution:
    started = time.monotonic()
    shown = Shown(notebook, policy, unsafe, limits, exercises, seed)
    await shown.run()
    result = Execution(shown.answers, isolation=shown.isolation, died=shown.died)
    if left := {key: exercise for key, exercise in exercises.items() if exercise.id not in shown.answers}:
        asked = Asked(notebook, policy, unsafe, limits, left, seed)
        await asked.run()
        result.answers |= asked.answers
        result.failures = asked.failures
        result.died = shown.died or asked.died
    result.seconds = time.monotonic() - started
    return result
