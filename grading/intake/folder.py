"""Read a student's folder: regular files only, within caps, archives unpacked in memory."""

import bz2
import gzip
import io
import lzma
import os
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from grading.intake.notes import Note

NAME_BYTES = 255  # of one part of a path, as file systems have it
ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
IGNORED_FOLDERS = frozenset({".ipynb_checkpoints", "__pycache__", ".git", "__MACOSX"})
IGNORED_FILES = frozenset({".DS_Store", "Thumbs.db", "timestamp.txt"})


@dataclass(frozen=True)
class Caps:
    """The most that is read of one submission; what lies beyond is left out with a note."""

    file_bytes: int = 20 * 2**20
    total_bytes: int = 100 * 2**20  # unpacked
    files: int = 200
    depth: int = 8  # folders below the submission's own


class _Reader:
    """Collects files under the caps, and a note for each that is left out."""

    def __init__(self, student: str, caps: Caps) -> None:
        self.student, self.caps = student, caps
        self.files: dict[str, bytes] = {}
        self.folders: set[PurePosixPath] = set()
        self.notes: list[Note] = []
        self.total = self.read = 0  # bytes kept, and those read in vain too
        self.unpacked = 0  # bytes that came out of compressed archives

    def leave_out(self, name: str, problem: str, remedy: str = "it was left out") -> None:
        if len(self.notes) < self.caps.files:  # a folder of a million links gets no million lines
            self.notes.append(Note(self.student, name, problem, remedy))

    def add(self, name: str, stream: io.BufferedIOBase) -> None:
        if name in self.files:
            return self.leave_out(name, "the name occurs twice", "the first was used")
        if len(self.files) >= self.caps.files:
            return self.leave_out(name, f"more than {self.caps.files} files")
        path = PurePosixPath(name)
        if self.folders.intersection([path]) or any(str(parent) in self.files for parent in path.parents):
            return self.leave_out(name, "the name is that of a file and of a folder", "the first was used")
        room = min(self.caps.file_bytes, self.caps.total_bytes - self.total, 4 * self.caps.total_bytes - self.read)
        data = stream.read(room + 1)  # sizes that a header claims are not believed
        self.read += min(len(data), room)
        if len(data) > room:
            return self.leave_out(name, f"larger than the {room} bytes that may still be read")
        self.files[name] = data
        self.total += len(data)
        self.folders.update(path.parents)


def read_folder(folder: Path, student: str, caps: Caps | None = None) -> tuple[dict[str, bytes], list[Note]]:
    """Files below `folder` by relative POSIX path, and notes on what was left out. Follows no link.

    Archives are unpacked beside where they lie. Raises nothing for a bad submission.
    """
    reader = _Reader(student, caps or Caps())
    if not stat.S_ISDIR(_mode(folder)):
        reader.leave_out(folder.name, "the submission is not a folder", "ask for it again as a plain folder")
        return {}, reader.notes
    for path in _walk(folder, reader):
        name = path.relative_to(folder).as_posix()
        if reason := _unsafe_name(name):
            reader.leave_out(name, reason)
        elif not stat.S_ISREG(_mode(path)):
            reader.leave_out(name, "not a regular file (a link, pipe, socket or device)", "it was not opened")
        else:
            _read_file(path, name, reader)
    return reader.files, reader.notes


def _mode(path: Path) -> int:
    try:
        return path.lstat().st_mode
    except OSError:
        return 0


def _walk(folder: Path, reader: _Reader, depth: int = 0) -> Iterator[Path]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        return reader.leave_out(folder.name, f"the folder cannot be read ({error.strerror})")
    for entry in entries:
        path = Path(entry.path)
        if not entry.is_dir(follow_symlinks=False):
            if entry.name not in IGNORED_FILES:
                yield path
        elif depth >= reader.caps.depth:
            reader.leave_out(entry.name, f"folders nested deeper than {reader.caps.depth}")
        elif entry.name not in IGNORED_FOLDERS:
            yield from _walk(path, reader, depth + 1)


def _unsafe_name(name: str) -> str:
    parts = PurePosixPath(name).parts
    if any(len(part.encode(errors="replace")) > NAME_BYTES for part in parts) or len(name) > 8 * NAME_BYTES:
        return "a name that is too long"
    if name.startswith("/") or "\\" in name or ".." in parts or not parts or ":" in parts[0]:
        return "a path that leads out of the submission"
    return "" if name.isprintable() else "a name with control or undecodable characters"


def _read_file(path: Path, name: str, reader: _Reader) -> None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        return reader.leave_out(name, f"the file cannot be read ({error.strerror})")
    with open(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return reader.leave_out(name, "not a regular file", "it was not opened")
        if not name.lower().endswith(ARCHIVES):
            return reader.add(name, stream)
        if os.fstat(descriptor).st_size > reader.caps.total_bytes:
            return reader.leave_out(name, "the archive is larger than a submission may be")
        if name.lower().endswith(".zip") and _members(stream) > 10 * reader.caps.files:
            return reader.leave_out(name, "the archive has too many members")
        _unpack(stream, name, reader)


def _members(stream: io.BufferedReader) -> int:
    """Members that a zip archive lists, counted before a list of them takes memory."""
    count, end = 0, b""
    while chunk := stream.read(1 << 20):
        count += (end + chunk).count(b"PK\x01\x02")
        end = chunk[-3:]
    stream.seek(0)
    return count


def _unpack(stream: io.BufferedReader, name: str, reader: _Reader) -> None:
    """Add an archive's regular members, without its top folder when that only repeats the archive's name."""
    try:
        if name.lower().endswith(".zip"):
            _unpack_zip(stream, name, reader)
        else:
            _unpack_tar(stream, name, reader)
    except Exception:  # these libraries fail in many ways on a hostile archive
        reader.leave_out(
            name, "the archive is broken, encrypted or of an unknown kind", "ask for plain files"
        )


class _Unpacking(io.RawIOBase):
    """A decompressed stream that ends with an error once it gave more than all of a submission may be."""

    def __init__(self, stream: io.BufferedReader, reader: _Reader) -> None:
        magic = stream.peek(6)
        kinds = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open}
        self.stream = next((opened(stream) for start, opened in kinds.items() if magic.startswith(start)), stream)
        self.reader = reader

    def read(self, size: int = -1) -> bytes:
        left = 2 * self.reader.caps.total_bytes - self.reader.unpacked
        if not 0 <= size <= left:
            raise ValueError("the archive is larger than a submission may be")
        data = self.stream.read(size)
        self.reader.unpacked += len(data)
        return data


def _unpack_zip(stream: io.BufferedReader, name: str, reader: _Reader) -> None:
    with zipfile.ZipFile(stream) as archive:
        for seen, member in enumerate(archive.infolist()):
            mode = member.external_attr >> 16
            kind_is_regular = not stat.S_IFMT(mode) or stat.S_ISREG(mode)
            if member.is_dir() or _is_clutter(member.filename):
                continue
            if not _may_add(member.filename, kind_is_regular, name, reader) or seen > 10 * reader.caps.files:
                continue
            with archive.open(member) as content:
                reader.add(_place(name, member.filename), content)


def _unpack_tar(stream: io.BufferedReader, name: str, reader: _Reader) -> None:
    with tarfile.open(fileobj=_Unpacking(stream, reader), mode="r|") as archive:
        for seen, member in enumerate(archive):
            if seen > 10 * reader.caps.files:
                return reader.leave_out(name, "the archive has too many members", "the first ones were read")
            if member.isdir() or _is_clutter(member.name):
                continue
            if _may_add(member.name, member.isreg(), name, reader):
                reader.add(_place(name, member.name), archive.extractfile(member))


def _is_clutter(member: str) -> bool:
    parts = PurePosixPath(member).parts
    return bool(IGNORED_FOLDERS.intersection(parts) or IGNORED_FILES.intersection(parts[-1:]))


def _may_add(member: str, regular: bool, archive: str, reader: _Reader) -> bool:
    reason = _unsafe_name(member.removeprefix("./")) or ("" if regular else "not a regular file")
    if reason:
        reader.leave_out(f"{archive}/{member}", reason)
    return not reason


def _place(archive: str, member: str) -> str:
    """Where a member goes: beside the archive, so that a zipped folder reads like the folder."""
    member = member.removeprefix("./")
    stem = PurePosixPath(archive).name.split(".")[0]
    return (PurePosixPath(archive).parent / member.removeprefix(f"{stem}/")).as_posix()
