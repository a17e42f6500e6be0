"""A jupyter_client kernel provisioner: the kernel starts in a sandbox, everything else stays Jupyter's."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.provisioning import KernelProvisionerBase

from grading.sandbox.policy import Policy, SandboxError
from grading.sandbox.process import SandboxedProcess, start_cold
from grading.sandbox.relay import listen
from grading.sandbox.warm import warm_process

CHANNELS = ("shell_port", "iopub_port", "stdin_port", "hb_port", "control_port")
log = logging.getLogger(__name__)


def default_policy() -> Policy:
    """For a manager that brings no policy (nbval, nbconvert): this installation's proof_lm, usual limits."""
    spec = find_spec("proof_lm")
    folders = spec.submodule_search_locations if spec else None
    return Policy(read_only_paths=(Path(folders[0]),) if folders else ())


class SandboxProvisioner(KernelProvisionerBase):
    """Starts ``python3`` kernels under the policy of the manager (attribute ``policy``) that uses it.

    The channels are Unix sockets in a folder of the grader that the sandbox never sees: we listen, the kernel
    gets the listening descriptors. ``cwd`` and ``env`` of the caller are not passed on. Ending is always at
    once: there is nothing in a sandbox to be saved.
    """

    process: SandboxedProcess | None = None
    isolation: str | None = None  # "warm" or "cold", once started
    folder: str | None = None  # of the channels

    @property
    def policy(self) -> Policy:
        return getattr(self.parent, "policy", None) or default_policy()

    @property
    def answering(self) -> str:
        """Path of the Unix socket on which forks of the kernel listen, in a folder that the sandbox does not see."""
        return os.path.join(self.folder or "", "answering")

    @property
    def stopped_because(self) -> str | None:
        """The limit that ended the kernel, in words."""
        return self.process.stopped_because if self.process else None

    @property
    def has_process(self) -> bool:
        return self.process is not None

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        kwargs["env"] = {}
        extra = kwargs.pop("extra_arguments", [])
        manager = self.parent
        if (self.kernel_spec.language or "").lower() != "python":
            raise SandboxError(f"only Python kernels run in the sandbox, not {self.kernel_spec.language!r}")
        if not self.folder:
            self.folder = tempfile.mkdtemp(prefix="prooflm-kernel-")
        manager.transport, manager.ip = "ipc", os.path.join(self.folder, "channel")
        for number, channel in enumerate(CHANNELS, start=1):
            setattr(manager, channel, number)
        manager.connection_file = os.path.join(self.folder, "connection.json")
        manager.write_connection_file()
        self.connection_info = manager.get_connection_info()
        return await super().pre_launch(cmd=list(extra), **kwargs)

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        """Start the kernel; ``cmd`` holds IPython options. Raises SandboxError where no sandbox can be made."""
        try:
            self.process = await asyncio.to_thread(self._launch, cmd)
        except BaseException:
            self._remove_folder()
            raise
        return self.connection_info

    def _launch(self, arguments: list[str]) -> SandboxedProcess:
        with contextlib.ExitStack() as stack:
            paths = [f"{self.connection_info['ip']}-{number}" for number in range(1, len(CHANNELS) + 1)]
            paths.append(self.answering)
            listeners = [stack.enter_context(listen(path)) for path in paths]
            ours, theirs = socket.socketpair()
            output, output_end = os.pipe()
            try:
                popen = self._start(theirs, output_end)
            except BaseException:
                ours.close()
                os.close(output)
                raise
            finally:  # before we listen: the last holder of an end must be the other side
                theirs.close()
                os.close(output_end)
            process = SandboxedProcess(self.policy, ours, output, popen)
            connection = {**self.connection_info, "key": self.connection_info["key"].decode(), "ip": "/kernel"}
            process.begin(connection, arguments, listeners)
            return process

    def _start(self, kernel_end: socket.socket, output: int) -> subprocess.Popen[bytes] | None:
        """A sandbox that waits for its request: forked (None: it is no child of ours) or new."""
        if self.policy.start == "warm":
            try:
                warm_process(self.policy).fork(kernel_end, output)
                self.isolation = "warm"
                return None
            except SandboxError as refusal:
                log.warning("starting a cold kernel: %s", refusal)
        self.isolation = "cold"
        return start_cold(self.policy, kernel_end, output)

    async def poll(self) -> int | None:
        """None while the kernel lives; a namespace's end has no exit status to speak of, so -9."""
        return -signal.SIGKILL if self.process is None or self.process.ended.is_set() else None

    async def wait(self) -> int | None:
        if self.process:
            await asyncio.to_thread(self.process.ended.wait)
        return await self.poll()

    async def send_signal(self, signum: int) -> None:
        if self.process:
            self.process.send_signal(signum)

    async def kill(self, restart: bool = False) -> None:
        if self.process:
            self.process.stop()
            await asyncio.to_thread(self.process.ended.wait)

    async def terminate(self, restart: bool = False) -> None:
        await self.kill(restart)

    async def shutdown_requested(self, restart: bool = False) -> None:
        await self.kill(restart)

    async def cleanup(self, restart: bool = False) -> None:
        await self.kill(restart)
        if not restart:
            self._remove_folder()

    def _remove_folder(self) -> None:
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = None
