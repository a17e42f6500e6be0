"""A process that has imported what every submission imports and forks kernels, each into walls of its own."""

from __future__ import annotations

import atexit
import os
import select
import socket
import subprocess
import threading

from grading.sandbox import bubblewrap
from grading.sandbox.policy import Policy, SandboxError

PRELOAD_SECONDS = 120.0


class WarmProcess:
    """One warm process for kernels that see the same paths, which forks of the process that started it may use too.

    It runs under bubblewrap and ends with the process that started it: when its socket closes it returns, and with
    it go the process namespace that holds every kernel. Raises SandboxError if there is no usable bubblewrap.
    """

    def __init__(self, policy: Policy):
        self._owner = os.getpid()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.settimeout(PRELOAD_SECONDS)
        with theirs:
            self._process = bubblewrap.start(
                ["warm", str(theirs.fileno()), *policy.preload], [theirs.fileno()], policy.read_only_paths,
                policy.file_bytes, bubblewrap.WARM_CAPABILITIES, filtered=False, first=False, output=subprocess.DEVNULL,
            )  # fmt: skip

    def expect_ready(self) -> None:
        """Return when all is imported; raises SandboxError, and ends it, if that fails."""
        try:
            word = self._control.recv(4096, socket.MSG_PEEK).decode(errors="replace")  # others look at it too
        except TimeoutError:
            word = f"not ready after {PRELOAD_SECONDS:g} s"
        except OSError:  # another thread has just closed it
            word = ""
        if word != "ready":
            self.close()
            raise SandboxError(f"no warm process: {word or 'it ended while importing'}")

    def fork(self, kernel_end: socket.socket, output: int) -> None:
        """Ask for one kernel, which will read its request from ``kernel_end``; raises SandboxError if gone."""
        try:
            socket.send_fds(self._control, [b"\0"], [kernel_end.fileno(), output])
        except OSError as error:
            raise SandboxError(f"the warm process is gone: {error.strerror}") from None

    @property
    def pid(self) -> int:
        """Of the bubblewrap process that holds it."""
        return self._process.pid

    def alive(self) -> bool:
        if self._control.fileno() < 0:
            return False
        poller = select.poll()
        poller.register(self._control, 0)  # a hang-up is told unasked
        return not poller.poll(0)

    def close(self) -> None:
        """Take no more kernels from it; end it, and every kernel, if it is our own."""
        self._control.close()
        if self._owner == os.getpid():
            self._process.kill()
            self._process.wait()


_lock = threading.Lock()
_running: dict[tuple, WarmProcess] = {}
_refused: dict[tuple, str] = {}


def begin(policy: Policy) -> WarmProcess:
    """The warm process for this policy's paths and modules, started if need be; raises SandboxError if refused."""
    key = (policy.read_only_paths, policy.preload)
    with _lock:
        if key in _refused:
            raise SandboxError(_refused[key])
        if key not in _running or not _running[key].alive():
            _running[key] = WarmProcess(policy)
        return _running[key]


def warm_process(policy: Policy) -> WarmProcess:
    """The same, once it is ready to fork."""
    process = begin(policy)
    try:
        process.expect_ready()
    except SandboxError as error:
        _refused[policy.read_only_paths, policy.preload] = str(error)
        raise
    return process


@atexit.register
def close_all() -> None:
    """End every warm process of this one."""
    with _lock:
        while _running:
            _running.popitem()[1].close()
