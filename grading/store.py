"""What running submissions gave, by content: a rerun executes only what changed, a regrade executes nothing."""

import hashlib
import json
import os
import secrets
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

FOLDER = ".prooflm"  # in the course's root, ignored by git


def key_of(*parts: Any) -> str:
    """A name for everything that decides what an execution gives. Parts are plain data, text or bytes."""
    digest = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else json.dumps(part, sort_keys=True).encode()
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return digest.hexdigest()


def write_atomically(path: Path, data: bytes) -> None:
    """Write, sync, rename: another process sees the old file or the new one, never a part. OSError as the disk says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".writing-")
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


class Store:
    """Records by key below the course's root. A torn or foreign record counts as none."""

    def __init__(self, root: Path) -> None:
        self.folder = root / FOLDER

    def get(self, key: str) -> dict | None:
        """The record, or None when there is no whole one."""
        try:
            digest, _, body = self._path(key).read_bytes().partition(b"\n")
            if hashlib.sha256(body).hexdigest().encode() == digest:
                return json.loads(body)
        except (OSError, ValueError):
            pass
        return None

    def put(self, key: str, record: Any) -> None:
        """Keep a dictionary or dataclass of plain data under the key."""
        body = json.dumps(record if isinstance(record, dict) else asdict(record)).encode()
        write_atomically(self._path(key), hashlib.sha256(body).hexdigest().encode() + b"\n" + body)

    def secret_seed(self) -> int:
        """The course run's secret: drawn once, readable by the grader alone."""
        path = self.folder / "secret_seed"
        if not path.exists():
            write_atomically(path, str(secrets.randbits(64)).encode())  # mkstemp's mode is 0600
        return int(path.read_text())

    def _path(self, key: str) -> Path:
        return self.folder / "executions" / key[:2] / f"{key}.json"
