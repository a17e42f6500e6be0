"""Keep a process as it is at one place of a notebook, to be asked when all of it has been shown."""

import os
import socket
import struct
import sys
from collections.abc import Callable

from proof_lm.probes.run import answer_plan

LENGTH = struct.Struct("=Q")


def keep(listener: int, exercise: str, candidate: Callable) -> None:
    """Fork. The fork waits for a connection on the listening Unix socket, says which exercise it is for, and answers.

    A message is eight bytes of length and as many of text: the exercise's id goes out, a plan comes in, the encoded
    answers go out. This process goes on at once and learns nothing of it.
    """
    if os.fork() != 0:
        return
    try:
        sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115  what a probe prints is nobody's business
        with socket.socket(fileno=listener) as sockets:
            connection, _ = sockets.accept()
        _send(connection, exercise)
        _send(connection, answer_plan(_receive(connection), candidate))
    finally:
        os._exit(0)


def _send(connection: socket.socket, text: str) -> None:
    data = text.encode()
    connection.sendall(LENGTH.pack(len(data)) + data)


def _receive(connection: socket.socket) -> str:
    with connection.makefile("rb") as stream:
        return stream.read(*LENGTH.unpack(stream.read(LENGTH.size))).decode()
