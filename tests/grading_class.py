"""A small class in a folder of its own, graded by the command an instructor types; shared by the tests of grading."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from nbgrader.api import Gradebook

from grading import demo
from grading.store import FOLDER

ROOT = Path(__file__).parents[1]
POINTS = {"solves_everything": 25, "swaps_the_order": 19, "trusts_the_flag": 23, "file_cut_off": 0, "untouched": 0}


def released(folder: Path) -> Path:
    """The demo's course with some of its students, a known seed, and nothing run."""
    demo.build(folder, students=POINTS)
    (folder / FOLDER).mkdir()
    (folder / FOLDER / "secret_seed").write_text("5")
    return folder


def copied(course: Path, folder: Path) -> Path:
    return shutil.copytree(course, folder, dirs_exist_ok=True)


def command(course: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "grading", "grade", "p4", "--root", str(course), "--workers", "2", *more]


def start(course: Path, *more: str) -> subprocess.Popen:
    return subprocess.Popen(
        command(course, *more), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    )


def grade(course: Path, *more: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        command(course, *more), cwd=ROOT, capture_output=True, text=True, timeout=300, env=environment()
    )


def environment() -> dict[str, str]:
    return os.environ | {"OMP_NUM_THREADS": "1"}


def records(course: Path) -> list[Path]:
    """What running the class has left in the store."""
    return sorted((course / FOLDER / "executions").glob("*/*.json"))


def wait_for(happened: Callable[[], object], process: subprocess.Popen) -> None:
    """Return once something happened; fails when the process ends before."""
    while not happened():
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)


def rows(db_url: str) -> dict[tuple[str, str], tuple]:
    """Every grade and remark in the gradebook by student and cell, as a person would see them."""
    with Gradebook(db_url) as gradebook:
        notebooks = [s.notebooks[0] for s in gradebook.assignment_submissions("p4")]
        grades = {
            (notebook.student.id, grade.name): (grade.auto_score, grade.manual_score, grade.needs_manual_grade)
            for notebook in notebooks
            for grade in notebook.grades
        }
        comments = {
            (notebook.student.id, f"{comment.name} (remark)"): (comment.auto_comment,)
            for notebook in notebooks
            for comment in notebook.comments
        }
    return grades | comments


def gradebook(course: Path) -> dict[tuple[str, str], tuple]:
    return rows(f"sqlite:///{course / 'gradebook.db'}")


def points(table: dict[tuple[str, str], tuple]) -> dict[str, float]:
    """Code points by student."""
    found = dict.fromkeys((student for student, _ in table), 0.0)
    for (student, cell), values in table.items():
        if cell.endswith("-tests"):
            found[student] += values[0]
    return found
