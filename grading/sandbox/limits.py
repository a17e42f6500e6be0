"""What one sandbox may use: hard limits on its processes and a thread that watches the sum of them."""

from __future__ import annotations

import contextlib
import os
import select
from collections.abc import Callable, Iterator
from pathlib import Path

from grading.sandbox.policy import Policy

TICKS, PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
INODE_BYTES = 1024  # kernel memory of an empty file on a tmpfs, rounded up
INTERVAL_SECONDS = 0.05
GONE = (FileNotFoundError, ProcessLookupError)  # a process that ended while we looked


def hard_limits(policy: Policy) -> dict[str, int]:
    """Resource limits (by the name after ``RLIMIT_``) that every process of a sandbox sets itself for good."""
    return {
        "CPU": policy.cpu_seconds + 1,  # the watcher comes first and gives the reason
        "DATA": policy.memory_bytes,
        "NPROC": policy.processes,
        "FSIZE": policy.file_bytes,
        "NOFILE": policy.open_files,
        "CORE": 0,
        "MEMLOCK": 1 << 16,
        "MSGQUEUE": 0,
    }


def family(pid: int) -> Iterator[int]:
    """``pid`` and all its descendants: orphans become children of a namespace's first process."""
    yield pid
    with contextlib.suppress(*GONE):
        for thread in os.listdir(f"/proc/{pid}/task"):
            for child in Path(f"/proc/{pid}/task/{thread}/children").read_text().split():
                yield from family(int(child))


def _cpu_seconds(pid: int) -> float:
    """Processor time of a process and of those that it has buried."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / TICKS


def _threads(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[17])


def _resident(pid: int) -> int:
    """Resident bytes, shared pages included: cheap, and never less than the proportional size."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE


def _proportional(pid: int) -> int:
    """Resident bytes with shared pages divided among their users; all of them where we may not look."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except PermissionError:
        return _resident(pid)
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)


def _total(measure: Callable[[int], float], pids: list[int]) -> float:
    total = 0.0
    for pid in pids:
        with contextlib.suppress(*GONE):
            total += measure(pid)
    return total


def _stored(descriptor: int) -> int:
    """Memory that the files of a tmpfs take."""
    status = os.fstatvfs(descriptor)
    return (status.f_blocks - status.f_bfree) * status.f_frsize + (status.f_files - status.f_ffree) * INODE_BYTES


def excess(policy: Policy, init: int, seconds: float, file_systems: list[int]) -> str | None:
    """The limit that a sandbox has passed, in words, or None."""
    if seconds > policy.wall_seconds:
        return f"ran longer than {policy.wall_seconds:g} s"
    pids = list(family(init))
    if _total(_cpu_seconds, pids) > policy.cpu_seconds:
        return f"used more than {policy.cpu_seconds} s of processor time"
    if _total(_threads, pids) > 2 * policy.processes:  # the hard limit is exact; this is for kernels without it
        return f"ran more than {policy.processes} processes and threads"
    room = policy.memory_bytes - sum(map(_stored, file_systems))
    if _total(_resident, pids) > room and _total(_proportional, pids) > room:
        return f"used more than {policy.memory_bytes / 2**20:g} MiB of memory"
    return None


def watch(
    policy: Policy,
    init: int,
    init_pidfd: int,
    file_systems: list[int],
    output: int,
    seconds: Callable[[], float],
    stop: Callable[[str], None],
) -> bytes:
    """Call ``stop(reason)`` once when a limit is passed; return the end of the output when the sandbox is gone.

    ``output`` is read at a fixed pace, so that a flood there costs its writer time, not us.
    """
    poller, tail, stopped = select.poll(), b"", False
    poller.register(init_pidfd, select.POLLIN)
    os.set_blocking(output, False)
    while True:
        gone = poller.poll(INTERVAL_SECONDS * 1000)
        with contextlib.suppress(BlockingIOError):
            tail = (tail + os.read(output, 1 << 16))[-4096:]
        if gone:
            return tail
        if not stopped and (reason := excess(policy, init, seconds(), file_systems)):
            stop(reason)
            stopped = True
