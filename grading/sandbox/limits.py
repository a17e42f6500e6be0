"""What one sandbox may use: hard limits on its processes and a thread that watches the sum of them."""

from __future__ import annotations

import contextlib
import os
import select
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from grading.sandbox.policy import Policy

TICKS, PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
INODE_BYTES = 1024  # kernel memory of an empty file on a tmpfs, rounded up
SOCKET_BYTES = 1 << 18  # that one may queue (net.core.wmem_default, rounded up); the filter forbids to ask for more
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


class Processor:
    """Processor time of a family, with that of members who ended and were buried by nobody who counts it."""

    def __init__(self) -> None:
        self._last: dict[tuple[int, str], float] = {}  # by process: a number may be given again
        self._ended = 0.0

    def seconds(self, pids: list[int]) -> float:
        """Seconds up to now, less what a process used after it was last looked at."""
        alone, buried = {}, 0.0
        for pid in pids:
            with contextlib.suppress(*GONE):
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                alone[pid, fields[19]] = sum(map(int, fields[11:13])) / TICKS
                buried += sum(map(int, fields[13:15])) / TICKS
        self._ended += sum(used for process, used in self._last.items() if process not in alone)
        self._last = alone
        return sum(alone.values()) + max(self._ended, buried)


def _threads(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[17])


def _resident(pid: int) -> int:
    """Resident bytes, shared pages included (cheap, and never less than the proportional size), and page tables."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE + _tables(pid)


def _tables(pid: int) -> int:
    """Bytes of the tables by which memory is found: they are a process's own and part of no other size."""
    return int(Path(f"/proc/{pid}/status").read_text().partition("\nVmPTE:")[2].partition("kB")[0] or 0) * 1024


def _proportional(pid: int) -> int:
    """Resident bytes with shared pages divided among their users; all of them where we may not look."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except PermissionError:
        return _resident(pid)
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0) + _tables(pid)


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


def _queued(pid: int) -> int:
    """The most that the sockets of the process's network may hold for nobody who reads."""
    with contextlib.suppress(*GONE):
        return int(Path(f"/proc/{pid}/net/sockstat").read_text().split()[2]) * SOCKET_BYTES
    return 0


def excess(policy: Policy, init: int, seconds: float, file_systems: list[int], processor: Processor) -> str | None:
    """The limit that a sandbox has passed, in words, or None."""
    if seconds > policy.wall_seconds:
        return f"ran longer than {policy.wall_seconds:g} s"
    pids = list(family(init))
    if processor.seconds(pids) > policy.cpu_seconds:
        return f"used more than {policy.cpu_seconds} s of processor time"
    if _total(_threads, pids) > 2 * policy.processes:  # the hard limit is exact; this is for kernels without it
        return f"ran more than {policy.processes} processes and threads"
    room = policy.memory_bytes - sum(map(_stored, file_systems)) - _queued(init)
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

    ``output`` is read at a fixed pace, so that a flood there costs its writer time, not us. After a look that took
    long, as at many processes with many mappings, we rest as long.
    """
    poller, tail, stopped, took = select.poll(), b"", False, 0.0
    processor = Processor()
    poller.register(init_pidfd, select.POLLIN)
    os.set_blocking(output, False)
    while True:
        gone = poller.poll(max(INTERVAL_SECONDS, took) * 1000)
        with contextlib.suppress(BlockingIOError):
            tail = (tail + os.read(output, 1 << 16))[-4096:]
        if gone:
            return tail
        started = time.monotonic()
        if not stopped and (reason := excess(policy, init, seconds(), file_systems, processor)):
            stop(reason)
            stopped = True
        took = time.monotonic() - started
