"""Kernel manager and client for sandboxed kernels; give the manager to nbclient, it needs to know nothing else."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from queue import Empty
from types import MappingProxyType
from typing import Any

import zmq.asyncio
from jupyter_client.asynchronous import AsyncKernelClient
from jupyter_client.channels import AsyncZMQSocketChannel
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning import LocalProvisioner
from traitlets import Bool, Instance, Type

from grading.sandbox.policy import Policy
from grading.sandbox.process import SandboxedProcess
from grading.sandbox.provisioner import SandboxProvisioner

RECEIVE_QUEUE = 16  # messages held for us, each perhaps of message_bytes, before the kernel has to wait
FORMS = {  # what readers of a message rely on
    "stream": {"name": str, "text": str},
    "display_data": {"data": dict, "metadata": dict},
    "execute_result": {"data": dict, "metadata": dict},
    "update_display_data": {"data": dict, "metadata": dict, "transient": dict},
    "error": {"ename": str, "evalue": str, "traceback": list},
    "status": {"execution_state": str},
    "clear_output": {"wait": bool},
    "execute_reply": {"status": str},
}


class BoundedChannel(AsyncZMQSocketChannel):
    """Counts what comes in and ends a kernel that sends more than the policy allows, or no Jupyter message."""

    received = 0
    manager: SandboxedKernelManager

    async def get_msg(self, timeout: float | None = None) -> dict[str, Any]:
        """The next message; raises queue.Empty if none comes within ``timeout`` seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = None if deadline is None else max(0, int(1000 * (deadline - time.monotonic())))
            if not await self.socket.poll(left):
                raise Empty
            if message := self._accept(await self.socket.recv_multipart()):
                return message

    def _accept(self, frames: list[bytes]) -> dict[str, Any] | None:
        """The message in ``frames``, or None if they end the kernel."""
        self.received += sum(map(len, frames))
        if self.received > self.manager.policy.output_bytes:
            self.manager.stop(f"sent more than {self.manager.policy.output_bytes / 2**20:g} MiB of output")
            return None
        try:
            message = self.session.deserialize(self.session.feed_identities(frames)[1])
            if has_form(message):
                return None if message["msg_type"].startswith("comm_") else message  # widgets: nobody could use them
        except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError):
            pass
        self.manager.stop("sent a message that is no Jupyter message")
        return None


def has_form(message: dict[str, Any]) -> bool:
    """Whether a signed message has the fields that its kind has; whoever reads it need not ask."""
    parts = [message[name] for name in ("header", "parent_header", "metadata", "content")]
    if not all(isinstance(part, dict) for part in parts) or not isinstance(message["msg_type"], str):
        return False
    content = message["content"]
    given = content.get("user_expressions", {})
    replies = [given, *(given.values() if isinstance(given, dict) else ())]
    replies += [reply.get("data", {}) for reply in replies[1:] if isinstance(reply, dict)]
    return (
        all(isinstance(content.get(name), kind) for name, kind in FORMS.get(message["msg_type"], {}).items())
        and isinstance(content.get("transient", {}), dict)
        and all(isinstance(reply, dict) for reply in replies)
    )


class BoundedClient(AsyncKernelClient):
    """Client whose sockets refuse a message over the policy's message_bytes before it takes memory.

    All that is ever heard of such a message is that libzmq hangs up, so that ends the kernel.
    """

    shell_channel_class = iopub_channel_class = Type(BoundedChannel)
    guard: asyncio.Task[None] | None = None
    _started: Mapping[str, BoundedChannel] = MappingProxyType({})

    def _context_default(self) -> zmq.asyncio.Context:
        self._created_context = True
        context = zmq.asyncio.Context()
        context.setsockopt(zmq.MAXMSGSIZE, self.parent.policy.message_bytes)
        context.setsockopt(zmq.RCVHWM, RECEIVE_QUEUE)
        return context

    def start_channels(self, shell: bool = True, iopub: bool = True, **others: bool) -> None:
        """Shell and output channel alone: who owns the kernel's process needs no other."""
        self._started = {"shell": self.shell_channel} if shell else {}
        self._started |= {"iopub": self.iopub_channel} if iopub else {}
        for channel in self._started.values():
            channel.manager = self.parent
            channel.start()

    def stop_channels(self) -> None:
        if self.guard:
            self.guard.cancel()
        for channel in self._started.values():
            if channel.socket:
                channel.socket.disable_monitor()
                channel.stop()
        if not self.context.closed:
            self.context.destroy(linger=0)

    async def _watch_channels(self) -> None:
        """Wait until the other side of a channel hangs up."""
        poller = zmq.asyncio.Poller()
        for channel in self._started.values():
            poller.register(channel.socket.get_monitor_socket(zmq.EVENT_DISCONNECTED), zmq.POLLIN)
        await poller.poll()
        size = f"{self.parent.policy.message_bytes / 2**20:g} MiB"
        await self.parent.hung_up(f"broke off a channel, as by a message of more than {size}")

    async def wait_for_ready(self, timeout: float | None = None) -> None:
        """Return when every started channel answers; raises RuntimeError if they don't within ``timeout`` s.

        Ends with the idle status of our own question, where the stock client waits for a silence of 0.2 s.
        """
        self.guard = self.guard or asyncio.ensure_future(self._watch_channels())
        deadline = time.monotonic() + (timeout or float("inf"))
        while time.monotonic() < deadline:
            request = self.kernel_info()
            try:
                while (reply := await self.get_shell_msg(timeout=1))["parent_header"].get("msg_id") != request:
                    pass
                self._handle_kernel_info_reply(reply)
                while "iopub" in self._started:
                    status = await self.get_iopub_msg(timeout=0.2)
                    if (
                        status["parent_header"].get("msg_id") == request
                        and status["content"].get("execution_state") == "idle"
                    ):
                        break
                self.parent.ready_now()
                return
            except Empty:
                if not await self.is_alive():
                    raise RuntimeError(f"the kernel ended before it answered: {self.parent.last_words}") from None
        raise RuntimeError(f"the kernel did not answer within {timeout:g} s")


class SandboxedKernelManager(AsyncKernelManager):
    """Manager of one kernel under ``policy``; ``unsafe`` starts an ordinary kernel instead, with no walls at all.

    Where no sandbox can be made, start_kernel raises SandboxError with the reason; it never falls back to unsafe.
    """

    policy = Instance(Policy, ())
    unsafe = Bool(False, help="run stranger's code with the grader's own rights; record `isolation` with the grade")
    client_class = "grading.sandbox.manager.BoundedClient"
    client_factory = Type(BoundedClient)

    async def _async_pre_start_kernel(self, **kwargs: Any) -> tuple[list[str], dict[str, Any]]:
        if self.provisioner is None:
            kind = LocalProvisioner if self.unsafe else SandboxProvisioner
            self.provisioner = kind(kernel_id=self.kernel_id, kernel_spec=self.kernel_spec, parent=self)
        return await super()._async_pre_start_kernel(**kwargs)

    @property
    def isolation(self) -> str | None:
        """``"warm"``, ``"cold"`` or ``"none"`` once started; belongs in the grade's record."""
        return "none" if self.unsafe else getattr(self.provisioner, "isolation", None)

    @property
    def answering(self) -> str | None:
        """Path of the socket on which forks of the kernel answer; None for a kernel without walls."""
        return getattr(self.provisioner, "answering", None)

    @property
    def stopped_because(self) -> str | None:
        """The limit that ended the kernel, in words; None if none did."""
        return getattr(self.provisioner, "stopped_because", None)

    def stop(self, reason: str) -> None:
        """End the kernel now and keep the reason."""
        process = getattr(self.provisioner, "process", None)
        if isinstance(process, SandboxedProcess):
            process.stop(reason)
        elif process:
            process.kill()

    def ready_now(self) -> None:
        """The kernel has answered: its wall_seconds run from here."""
        process = getattr(self.provisioner, "process", None)
        if isinstance(process, SandboxedProcess):
            process.ready()

    async def hung_up(self, reason: str) -> None:
        """A channel closed: because the kernel ends, or else for ``reason``."""
        process = getattr(self.provisioner, "process", None)
        if isinstance(process, SandboxedProcess):
            await asyncio.to_thread(process.ended.wait, 1.0)
        self.stop(reason)

    @property
    def last_words(self) -> str:
        """The end of what an ended kernel wrote to its raw standard streams."""
        process = getattr(self.provisioner, "process", None)
        return getattr(process, "last_words", "") or self.stopped_because or "it left no message"
