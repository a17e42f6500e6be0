"""Start worker processes quickly: they are forked from a server that imports, beside us, what all of them need."""

import multiprocessing
import os
import threading
from contextlib import suppress
from multiprocessing import forkserver

METHOD = "forkserver"
IMPORTED = ["distributed", "distributed.nanny", "grading.grade"]


def prepare_to_fork() -> None:
    """Start the server that workers of this process are forked from, without waiting for it."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small arrays here, and a fork is safest with one thread
    multiprocessing.get_context(METHOD).set_forkserver_preload(IMPORTED)
    forkserver.ensure_running()


def warm_up(task) -> None:
    """In a worker: begin to start what the kernels of tasks like this are forked from, before the first one comes."""
    from grading.grade import walls
    from grading.sandbox import SandboxError
    from grading.sandbox.warm import warm_process

    def start() -> None:
        with suppress(SandboxError):  # the first kernel will say so
            warm_process(walls(task))

    if not task.unsafe and task.policy.start == "warm":
        threading.Thread(target=start, daemon=True).start()
