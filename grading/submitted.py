"""Who handed in what, without following a link."""

import os
import stat
from pathlib import Path


def submissions(submitted: Path, assignment: str) -> dict[str, Path]:
    """Folder of each student who handed in something, in order; a folder behind a link is none."""
    students = sorted(entry.name for entry in os.scandir(submitted)) if submitted.is_dir() else []
    folders = {student: submitted / student / assignment for student in students}
    return {s: f for s, f in folders.items() if stat.S_ISDIR(mode(f)) and stat.S_ISDIR(mode(f.parent))}


def mode(path: Path) -> int:
    """Of what the path itself is; 0 where there is nothing."""
    try:
        return path.lstat().st_mode
    except OSError:
        return 0
