"""Run a rebuilt notebook in two kernels: one for what its cells show, one for what the probes ask.

Two, since what a probe brings into a process could be stored by it and shown by a later cell.
"""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from nbformat import NotebookNode

from grading.exercise import Exercise
from grading.sandbox import Policy
from grading.session import Asked, Limits, Shown


@dataclass
class Execution:
    """What running a notebook gave. Plain data, so that it can be stored and judged again."""

    answers: dict[str, str] = field(default_factory=dict)  # exercise id -> encoded answers of its probe
    failures: dict[str, str] = field(default_factory=dict)  # exercise id -> why there is no answer
    isolation: str = ""  # "warm", "cold" or "none"
    seconds: float = 0.0
    died: bool = False  # a kernel ended, and no limit of ours had ended it


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
    shown = Shown(notebook, policy, unsafe, limits)
    asked = Asked(notebook, policy, unsafe, limits, exercises, seed)
    started = time.monotonic()
    asyncio.run(_both(shown, asked))
    seconds, died = time.monotonic() - started, shown.died or asked.died
    return Execution(asked.answers, asked.failures, asked.isolation, seconds, died)


async def _both(shown: Shown, asked: Asked) -> None:
    await asyncio.gather(shown.run(), asked.run())
