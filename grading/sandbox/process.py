"""One running sandbox as the grader holds it: how it is asked to begin, watched and ended."""

from __future__ import annotations

import base64
import contextlib
import json
import math
import os
import select
import signal
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from grading.sandbox import bubblewrap, inside, limits, seccomp
from grading.sandbox.policy import Policy, SandboxError

START_SECONDS = 60.0
CREDENTIALS = struct.Struct("=iII")  # struct ucred: pid, uid, gid


def start_cold(policy: Policy, kernel_end: socket.socket, output: int) -> subprocess.Popen[bytes]:
    """A new interpreter under bubblewrap that waits for its request on ``kernel_end``."""
    return bubblewrap.start(
        ["kernel", str(kernel_end.fileno())], [kernel_end.fileno()], policy.read_only_paths, policy.file_bytes,
        bubblewrap.KERNEL_CAPABILITIES, filtered=True, output=output,
    )  # fmt: skip


class SandboxedProcess:
    """A kernel and everything that it starts; all of it ends when ``connection`` closes, as it does with us.

    ``begin`` raises SandboxError, with the last line the kernel wrote, if the sandbox did not come up.
    ``stopped_because`` is None unless a limit (or the caller's reason) ended it.
    """

    def __init__(self, policy: Policy, connection: socket.socket, output: int, popen: subprocess.Popen[bytes] | None):
        self.policy, self._connection, self._output, self._popen = policy, connection, output, popen
        self.stopped_because: str | None = None
        self.ended, self._lock = threading.Event(), threading.Lock()
        self.pid = self.init = 0
        self._descriptors: list[int] = [output]
        self._tail = b""
        self._clock = math.inf  # when the time of the policy began to run

    def begin(
        self, connection: Mapping[str, Any], arguments: Sequence[str], listeners: Sequence[socket.socket]
    ) -> None:
        """Hand over the request, take hold of the processes, let the kernel run."""
        try:
            self._send(connection, arguments, listeners)
            self._take_hold()
        except BaseException as error:
            if self._popen:
                self._popen.kill()
            self._close()
            if isinstance(error, OSError):
                raise SandboxError(f"the sandbox cannot be watched: {error}") from None
            raise
        self._clock = time.monotonic() + START_SECONDS
        threading.Thread(target=self._watch, name=f"sandbox-{self.pid}", daemon=True).start()
        with contextlib.suppress(OSError):  # it has just ended, which the watcher will notice
            self._connection.sendall(b"\0")

    def _send(
        self, connection: Mapping[str, Any], arguments: Sequence[str], listeners: Sequence[socket.socket]
    ) -> None:
        files = {name: base64.b64encode(content).decode() for name, content in self.policy.files.items()}
        body = json.dumps({
            "connection": dict(connection), "arguments": list(arguments), "files": files,
            "limits": limits.hard_limits(self.policy), "file_bytes": self.policy.file_bytes,
            "uid": bubblewrap.fresh_user() or 0,
            "filter": base64.b64encode(seccomp.program()).decode(),
        }).encode()  # fmt: skip
        self._connection.settimeout(START_SECONDS)
        self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # _take_hold says why
            socket.send_fds(self._connection, [struct.pack("=Q", len(body))], [end.fileno() for end in listeners])
            self._connection.sendall(body)

    def _take_hold(self) -> None:
        """Handles of the kernel and of process 1 of its namespace, whose end is the end of all in it."""
        try:
            word, ancillary, _, _ = self._connection.recvmsg(1, socket.CMSG_SPACE(CREDENTIALS.size))
        except TimeoutError:
            raise SandboxError(f"the sandbox did not start within {START_SECONDS:g} s") from None
        except ConnectionResetError:
            word = b""
        if not word:
            raise SandboxError(f"the sandbox did not start: {self._last_words()}")
        # the kernel translates the sender's pid to ours; the sender waits for an answer, so it is still there
        self.pid, _, _ = CREDENTIALS.unpack(ancillary[0][2])
        status = Path(f"/proc/{self.pid}/status").read_text()
        self.init = int(status.partition("\nPPid:")[2].split()[0])
        self._descriptors += [os.pidfd_open(self.pid), os.pidfd_open(self.init)]
        self._kernel_pidfd, self._init_pidfd = self._descriptors[-2:]
        self._file_systems = []
        for path in (inside.TEMPORARY, inside.SHARED_MEMORY):  # opened before any stranger's code could move them
            self._file_systems.append(os.open(f"/proc/{self.pid}/root{path}", os.O_PATH | os.O_NOFOLLOW))
        self._descriptors += self._file_systems

    def _last_words(self) -> str:
        with contextlib.suppress(OSError):
            ready, _, _ = select.select([self._output], [], [], 1.0)
            lines = os.read(self._output, 1 << 16).decode(errors="replace").strip().splitlines() if ready else []
            return lines[-1] if lines else "it ended without a word"
        return "it ended without a word"

    def _watch(self) -> None:
        try:
            self._tail = limits.watch(
                self.policy, self.init, self._init_pidfd, self._file_systems, self._output, self.seconds, self.stop
            )
        except OSError as error:
            self.stop(f"could not be watched: {error}")
        finally:
            self.stop()
            self._close()

    def seconds(self) -> float:
        """Time used since the kernel was ready, or since a generous start if nobody says when."""
        return time.monotonic() - self._clock

    def ready(self) -> None:
        """The kernel has answered: from now on its time runs."""
        self._clock = min(self._clock, time.monotonic())

    def _close(self) -> None:
        with self._lock:
            self.ended.set()
            self._connection.close()
            for number in self._descriptors:
                os.close(number)
        if self._popen:
            self._popen.wait()

    def stop(self, reason: str | None = None) -> None:
        """Kill everything in the sandbox; the first reason given is kept."""
        with self._lock:  # a descriptor that was closed may be another sandbox's by now
            if not self.ended.is_set():
                self.stopped_because = self.stopped_because or reason
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(self._init_pidfd, signal.SIGKILL)

    def send_signal(self, number: int) -> None:
        """Signal the kernel process alone (an interrupt)."""
        with self._lock, contextlib.suppress(ProcessLookupError):
            if not self.ended.is_set():
                signal.pidfd_send_signal(self._kernel_pidfd, number)

    @property
    def last_words(self) -> str:
        """The end of what the kernel wrote to its raw standard streams, once it has ended."""
        return self._tail.decode(errors="replace").strip()
