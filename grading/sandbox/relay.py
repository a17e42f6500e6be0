"""Between a kernel's socket and libzmq: what comes is measured before it takes memory.

libzmq bounds a frame and the number of whole messages, but not the frames of a message that never ends, of which the
shortest takes far more than its bytes.
"""

import asyncio
import os
import socket
from contextlib import suppress

GREETING = 64  # bytes that open a ZMTP 3 connection (rfc.zeromq.org/spec/23)
MORE, LONG = 1, 2  # flags of a frame
FRAME_BYTES = 64  # that libzmq takes for any frame
CHUNK = 1 << 16


class TooMuch(Exception):
    """A kernel has sent more than it may; the message says what, to follow "it"."""


class Meter:
    """Follows a ZMTP stream frame by frame."""

    def __init__(self, message_bytes: int, total_bytes: int) -> None:
        self._most_a_message, self._most = message_bytes, total_bytes
        self._message = self._total = 0
        self._skip, self._head = GREETING, b""

    def feed(self, data: bytes) -> None:
        """Measure what came; raises TooMuch as soon as a frame's head announces too much."""
        at = 0
        while at < len(data):
            if self._skip:
                step = min(self._skip, len(data) - at)
                self._skip, at = self._skip - step, at + step
                continue
            self._head, at = self._head + data[at : at + 1], at + 1
            if len(self._head) == (9 if self._head[0] & LONG else 2):
                self._begin(self._head[0], int.from_bytes(self._head[1:], "big"))

    def _begin(self, flags: int, length: int) -> None:
        self._message += length + FRAME_BYTES
        self._total += length + FRAME_BYTES
        if self._message > self._most_a_message:
            raise TooMuch(f"sent a message of more than {self._most_a_message / 2**20:g} MiB")
        if self._total > self._most:
            raise TooMuch(f"sent more than {self._most / 2**20:g} MiB of output")
        self._skip, self._head = length, b""
        if not flags & MORE:
            self._message = 0


def listen(path: str) -> socket.socket:
    """A Unix socket that listens at `path`, in place of what an earlier kernel left there."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with suppress(FileNotFoundError):
        os.unlink(path)
    listener.bind(path)
    listener.listen(16)
    listener.setblocking(False)  # libzmq accepts until there is nobody left
    return listener


async def relay(listener: socket.socket, path: str, meter: Meter) -> None:
    """Take one connection and pass it on to the kernel's socket at `path` until either side hangs up.

    Raises TooMuch.
    """
    loop = asyncio.get_running_loop()
    with listener, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as kernel:
        kernel.setblocking(False)
        near, _ = await loop.sock_accept(listener)
        with near:
            await loop.sock_connect(kernel, path)
            there, back = asyncio.ensure_future(_pass(near, kernel)), asyncio.ensure_future(_pass(kernel, near, meter))
            try:
                await asyncio.wait([there, back], return_when=asyncio.FIRST_COMPLETED)
                if back.done() and isinstance(error := back.exception(), TooMuch):
                    raise error
            finally:
                for one in (there, back):
                    one.cancel()
                await asyncio.gather(there, back, return_exceptions=True)  # they use the sockets until then


async def _pass(source: socket.socket, target: socket.socket, meter: Meter | None = None) -> None:
    loop = asyncio.get_running_loop()
    while data := await loop.sock_recv(source, CHUNK):
        if meter:
            meter.feed(data)
        await loop.sock_sendall(target, data)
