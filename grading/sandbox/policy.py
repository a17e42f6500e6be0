"""What a sandboxed kernel may use: one frozen record, kept with every grade."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Literal

MEBIBYTE = 1 << 20


class SandboxError(RuntimeError):
    """A sandbox could not be made or has ended; the message is one line that says why."""


@dataclass(frozen=True)
class Policy:
    """Limits of one kernel and everything it starts, and what it may see.

    ``start`` is ``"warm"`` (forked from a process that has imported ``preload``; falls back to cold where the
    machine refuses nested namespaces) or ``"cold"`` (a new interpreter). The walls are the same.

    Limits hold for the whole sandbox unless said otherwise:
    ``wall_seconds`` from the first answer to the end, ``cpu_seconds`` of all processes together, ``memory_bytes`` of all
    processes (proportional set size) and files together, ``processes`` (threads count), ``file_bytes`` of one
    file and of each of the two private file systems, ``open_files`` per process, ``output_bytes`` of messages
    accepted from the kernel, ``message_bytes`` of one message.

    ``read_only_paths`` are seen as ``/packages/<name>`` and ``/packages`` is on ``sys.path``; ``files`` (relative
    name to content) are placed in the working folder before the kernel starts.

    Raises ValueError, naming the field, for a limit that is not positive or a file name that leaves the folder.
    """

    start: Literal["warm", "cold"] = "warm"
    wall_seconds: float = 600.0
    cpu_seconds: int = 300
    memory_bytes: int = 2048 * MEBIBYTE
    processes: int = 64
    file_bytes: int = 256 * MEBIBYTE
    open_files: int = 256
    output_bytes: int = 32 * MEBIBYTE
    message_bytes: int = 16 * MEBIBYTE
    read_only_paths: tuple[Path, ...] = ()
    files: Mapping[str, bytes] = field(default_factory=dict, hash=False)
    preload: tuple[str, ...] = ("numpy", "torch", "matplotlib.pyplot")

    def __post_init__(self) -> None:
        if self.start not in ("warm", "cold"):
            raise ValueError(f"start: expected 'warm' or 'cold', got {self.start!r}")
        for name in (
            "wall_seconds",
            "cpu_seconds",
            "memory_bytes",
            "processes",
            "file_bytes",
            "open_files",
            "output_bytes",
            "message_bytes",
        ):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name}: expected a positive number, got {getattr(self, name)!r}")
        for name in self.files:
            path = PurePosixPath(name)
            if path.is_absolute() or ".." in path.parts or not path.name:
                raise ValueError(f"files: expected a name inside the working folder, got {name!r}")
        names = [Path(path).name for path in self.read_only_paths]
        if len(set(names)) < len(names):
            raise ValueError(f"read_only_paths: expected different names, got {names}")
