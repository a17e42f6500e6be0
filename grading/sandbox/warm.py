"""A process that has imported what every submission imports and forks kernels, each into walls of its own."""

from __future__ import annotations

import atexit
import os
import socket
import subprocess
import threading

from grading.sandbox import bubblewrap
from grading.sandbox.policy import Policy, SandboxError

PRELOAD_SECONDS = 120.0


class WarmProcess:
    """One warm process for kernels that see the same paths; raises SandboxError if it cannot be.

    It runs under bubblewrap and ends with the grader: when its socket closes it returns, and with it go the
    process namespace that holds every fork.
    """

    def __init__(self, policy: Policy):
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = bubblewrap.start(
                ["warm", str(theirs.fileno()), *policy.preload], [theirs.fileno()], policy.read_only_paths,
                policy.file_bytes, bubblewrap.WARM_CAPABILITIES, filtered=False, first=False, output=subprocess.DEVNULL,
            )  # fmt: skip
        self._control.settimeout(PRELOAD_SECONDS)
        try:
            word = self._control.recv(4096).decode(errors="replace")
        except TimeoutError:
            word = f"not ready after {PRELOAD_SECONDS:g} s"
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
        return self._process.poll() is None

    def close(self) -> None:
        """End it and every kernel forked from it."""
        self._control.close()
        self._process.kill()
        self._process.wait()


_lock = threading.Lock()
_running: dict[tuple, WarmProcess] = {}
_refused: dict[tuple, str] = {}


def warm_process(policy: Policy) -> WarmProcess:
    """The warm process for this policy's paths and modules, started if need be; raises SandboxError if refused."""
    key = (os.getpid(), policy.read_only_paths, policy.preload)
    with _lock:
        if key in _refused:
            raise SandboxError(_refused[key])
        process = _running.get(key)
        if process is None or not process.alive():
            try:
                _running[key] = process = WarmProcess(policy)
            except SandboxError as error:
                _refused[key] = str(error)
                raise
        return process


@atexit.register
def close_all() -> None:
    """End every warm process of this one."""
    with _lock:
        for key in [key for key in _running if key[0] == os.getpid()]:  # a fork of us has no say
            _running.pop(key).close()
