"""Classes of any size to measure grading with: problem set P4, solved, no two submissions alike."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from grading import demo  # noqa: E402

SET = "p4"


def build(folder: Path, size: int) -> None:
    """A course in `folder` whose `size` students all solved everything (it imports torch and runs a decoder)."""
    demo.build(folder, students={"solves_everything"})
    solved = folder / "submitted" / "solves_everything"
    notebook = json.loads((solved / SET / f"{SET}.ipynb").read_text(encoding="utf-8"))
    first = next(cell for cell in notebook["cells"] if cell["metadata"].get("nbgrader", {}).get("solution"))
    source = "".join(first["source"])
    for number in range(size):
        first["source"] = f"{source}\n# student {number}"
        hand_in(folder, f"student{number:05d}", json.dumps(notebook))
    (solved / SET / f"{SET}.ipynb").unlink()
    (solved / SET).rmdir()
    solved.rmdir()


def hand_in(folder: Path, student: str, text: str) -> None:
    place = folder / "submitted" / student / SET
    place.mkdir(parents=True)
    (place / f"{SET}.ipynb").write_text(text, encoding="utf-8")


def environment() -> dict[str, str]:
    """Of every command that is timed: one thread a process on both sides, programs found beside this interpreter.

    Both keep the bytecode of what they import, as they do unless told not to: else each start compiles it anew.
    """
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"OMP_NUM_THREADS": "1", "PATH": path, "PYTHONPATH": str(ROOT)}


def private_bytes(process: psutil.Process) -> int:
    """Memory that no other process shares; 0 for a process that has ended."""
    try:
        lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Private_"))


def kernels(process: psutil.Process) -> list[psutil.Process]:
    """Kernels below a grader: children of process 1 of a namespace that is not bubblewrap itself."""
    found = []
    for helper in process.children(recursive=True):
        try:
            parent = helper.parent()
            if parent and parent.name() != "bwrap" and _number_inside(parent) == 1:
                found.append(helper)
        except (psutil.NoSuchProcess, OSError):
            continue
    return found


def _number_inside(process: psutil.Process) -> int:
    """The process's number in the innermost namespace that it is in."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(status.partition("\nNSpid:")[2].partition("\n")[0].split()[-1])


def helpers(process: psutil.Process) -> list[psutil.Process]:
    """The grader's own processes: the coordinator and its workers, without sandboxes and what is in them."""
    own = [process]
    for child in process.children():
        try:
            if child.name() != "bwrap":
                own += helpers(child)
        except psutil.NoSuchProcess:
            continue
    return own


@contextmanager
def sampled(pid: int, look: Callable[[psutil.Process], None], seconds: float) -> Iterator[None]:
    """Call `look` every so many seconds within the block, as long as the process lives."""
    process, over = psutil.Process(pid), threading.Event()

    def loop() -> None:
        while not over.wait(seconds):
            try:
                look(process)
            except (psutil.NoSuchProcess, psutil.AccessDenied, OSError):
                continue

    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')}  {text}", file=sys.stderr, flush=True)
