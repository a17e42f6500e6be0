"""Kernel manager and client for sandboxed kernels; give the manager to nbclient, it needs to know nothing else."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Mapping, Sequence
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
from grading.sandbox.relay import Meter, TooMuch, listen, relay

NEAR = "-near"  # end of the path of a socket on our side of a relay
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
    """Ends a kernel that sends what is no Jupyter message."""

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
        try:
            message = self.session.deserialize(self.session.feed_identities(frames)[1])
            if has_form(message):
                return None if message["msg_type"].startswith("comm_") else message  # widgets: nobody could use them
        except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError):
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
    """Client that gets no more from a kernel than the policy allows: a relay measures what comes to each socket."""

    shell_channel_class = iopub_channel_class = Type(BoundedChannel)
    _started: Mapping[str, BoundedChannel] = MappingProxyType({})
    _relays: Sequence[asyncio.Task[None]] = ()

    def _context_default(self) -> zmq.asyncio.Context:
        self._created_context = True
        context = zmq.asyncio.Context()
        context.setsockopt(zmq.RCVHWM, RECEIVE_QUEUE)
        return context

    def start_channels(self, shell: bool = True, iopub: bool = True, **others: bool) -> None:
        """Shell and output channel alone: who owns the kernel's process needs no other."""
        names = ["shell"] * shell + ["iopub"] * iopub
        if self.transport == "ipc":
            self._relays = [asyncio.ensure_future(self._relay(name, listen(self._path(name) + NEAR))) for name in names]
        self._started = {name: getattr(self, f"{name}_channel") for name in names}
        for channel in self._started.values():
            channel.manager = self.parent
            channel.start()

    def stop_channels(self) -> None:
        for task in self._relays:
            task.cancel()
        for channel in self._started.values():
            if channel.socket:
                channel.stop()
        if not self.context.closed:
            self.context.destroy(linger=0)

    def _path(self, name: str) -> str:
        return f"{self.ip}-{getattr(self, f'{name}_port')}"

    def _make_url(self, channel: str) -> str:
        return super()._make_url(channel) + (NEAR if self.transport == "ipc" else "")

    async def _relay(self, name: str, listener: socket.socket) -> None:
        policy = self.parent.policy
        try:
            await relay(listener, self._path(name), Meter(policy.message_bytes, policy.output_bytes))
        except TooMuch as error:
            self.parent.stop(str(error))
        except OSError:
            await self.parent.hung_up()
        else:
            await self.parent.hung_up()

    async def wait_for_ready(self, timeout: float | None = None) -> None:
        """Return when every started channel answers; raises RuntimeError if they don't within ``timeout`` s.

        Ends with the idle status of our own question, where the stock client waits for a silence of 0.2 s.
        """
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

    async def hung_up(self) -> None:
        """A channel closed, as it does when the kernel ends; if that was not it, the kernel broke it off."""
        process = getattr(self.provisioner, "process", None)
        if isinstance(process, SandboxedProcess):
            await asyncio.to_thread(process.ended.wait, 1.0)
        self.stop("broke off a channel")

    def _connect_control_socket(self) -> None:
        """None is needed: an interrupt is a signal, an end a kill. Nor would what comes there be measured."""

    def _close_control_socket(self) -> None:
        """There is none."""

    async def _async_request_shutdown(self, restart: bool = False) -> None:
        await self.provisioner.shutdown_requested(restart=restart)

    request_shutdown = _async_request_shutdown

    @property
    def last_words(self) -> str:
        """The end of what an ended kernel wrote to its raw standard streams."""
        process = getattr(self.provisioner, "process", None)
        return getattr(process, "last_words", "") or self.stopped_because or "it left no message"
