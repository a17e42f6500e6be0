"""Imported by the server that workers are forked from: all that they need, and a warm process that they share."""

import importlib
import os
import signal
import threading
from contextlib import suppress

from grading.collector import imports_kept
from grading.workers import FIRST


def _warm(assignment: str) -> None:
    from grading.edition import walls
    from grading.exercises import WITHHELD
    from grading.sandbox import Policy, SandboxError
    from grading.sandbox.warm import begin

    with suppress(SandboxError):  # the first kernel will say so
        begin(walls(Policy(), WITHHELD[assignment]))


signal.signal(signal.SIGINT, signal.SIG_IGN)  # which goes to all of a terminal's processes; the command answers it
if os.environ.get(FIRST):
    _warm(os.environ[FIRST])  # imports torch in a process of its own, beside what follows
with imports_kept():
    for name in ("distributed", "distributed.nanny", "grading.grade", "grading.execute"):
        importlib.import_module(name)
for thread in threading.enumerate():
    if thread.name == "edition":  # a fork is safest without
        thread.join()
