"""Start worker processes quickly: they are forked from a server that, beside us, imports what all of them need."""

import multiprocessing
import os
from contextlib import suppress
from multiprocessing import forkserver

METHOD = "forkserver"
FIRST = "PROOFLM_FIRST_ASSIGNMENT"  # in the server's environment


def prepare_to_fork(assignment: str = "") -> None:
    """Start the server that workers of this process are forked from, without waiting for it.

    With an assignment it first starts what that one's kernels are forked from, which takes longest.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small arrays here, and a fork is safest with one thread
    os.environ.setdefault("MALLOC_TRIM_THRESHOLD_", "65536")  # what a flood of output took goes back at once
    os.environ[FIRST] = assignment
    multiprocessing.get_context(METHOD).set_forkserver_preload(["grading.preload"])
    forkserver.ensure_running()
    del os.environ[FIRST]


def warm_up(task) -> None:
    """In a worker: begin to start what the kernels of tasks like this are forked from, before the first one comes."""
    from grading.edition import walls
    from grading.sandbox import SandboxError
    from grading.sandbox.warm import begin

    if not task.unsafe and task.policy.start == "warm":
        with suppress(SandboxError):  # the first kernel will say so
            begin(walls(task.policy, task.assignment.withheld))
