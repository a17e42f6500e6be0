"""nbgrader's own autograde command over our grading: `nbgrader autograde`, the formgrader's button, `make grade`.

Every submission is graded before nbgrader touches it; what nbgrader then converts, records and keeps is the graded
notebook in a folder of our own, so it never follows a student's link, copies a student's file or runs a cell.
"""

import fnmatch
import json
import os
import shutil
import stat
import sys
from pathlib import Path

import nbformat
import nbgrader.apps.api
import nbgrader.apps.autogradeapp
import nbgrader.converters
from nbgrader.api import Gradebook
from nbgrader.converters import Autograde
from nbgrader.converters.base import NbGraderException
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import AssignLatePenalties, CheckCellMetadata, SaveAutoGrades
from nbgrader.utils import parse_utc
from traitlets import Bool, Instance, Int, List

from grading.assignment import Assignment, AssignmentError
from grading.execute import Limits
from grading.grade import Task, finish, prepare, run
from grading.sandbox import Policy, SandboxError
from grading.store import FOLDER, Store

MAX_TIMESTAMP = 100  # bytes

# nbgrader starts alembic by name; it lies beside this interpreter, whether or not its environment is active
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])


class SafeAutograde(Autograde):
    """Autograde that grades behind walls and lets nbgrader do the rest."""

    sanitize_preprocessors = List([])
    autograde_preprocessors = List([SaveAutoGrades, AssignLatePenalties, CheckCellMetadata])

    unsafe_no_sandbox = Bool(
        False, help="Run submissions with the grader's own rights. The grade's record says so."
    ).tag(config=True)
    seed = Int(
        None, allow_none=True, help="Of the secret cases; drawn once and kept in the course's folder when not given."
    ).tag(config=True)
    stored_only = Bool(False, help="Judge what was executed before; execute nothing.").tag(config=True)

    policy = Instance(Policy, ())
    limits = Instance(Limits, ())

    @property
    def _input_directory(self) -> str:
        return f"{FOLDER}/staged" if self._sanitizing else self.coursedir.autograded_directory

    def init_notebooks(self) -> None:
        """Grade and stage every submission that the command names. Raises NbGraderException with one line."""
        root = Path(self.coursedir.root)
        shutil.rmtree(root / FOLDER / "staged", ignore_errors=True)
        try:
            self._expect_in_gradebook()
            staged = [self._stage(root, task) for task in self.tasks()]
        except (AssignmentError, SandboxError) as error:
            self.log.error("%s", error)
            raise NbGraderException(str(error)) from None
        if not any(staged):
            where = f"{self.coursedir.submitted_directory}/{self.coursedir.student_id}/{self.coursedir.assignment_id}"
            message = f"nothing to grade in {where}"
            self.log.error(message)
            raise NbGraderException(message)
        super().init_notebooks()

    def _expect_in_gradebook(self) -> None:
        name = self.coursedir.assignment_id
        with Gradebook(self.coursedir.db_url, self.coursedir.course_id) as gradebook:
            if name not in {known.name for known in gradebook.assignments}:
                raise AssignmentError(f"assignment {name} is not in the gradebook; run make release")

    def tasks(self) -> list[Task]:
        """One task for each submission of the assignment, by student."""
        root = Path(self.coursedir.root)
        assignment = Assignment(self.coursedir.assignment_id, root)
        seed = Store(root).secret_seed() if self.seed is None else self.seed
        found = submissions(root / self.coursedir.submitted_directory, assignment.name)
        pattern = self.coursedir.student_id
        return [
            Task(assignment, student, folder, seed, self.policy, self.limits, self.unsafe_no_sandbox)
            for student, folder in found.items()
            if fnmatch.fnmatchcase(student, pattern)
        ]

    def _stage(self, root: Path, task: Task) -> bool:
        """Write the graded notebook where nbgrader will look for it; False when only a stored one would do."""
        store, prepared = Store(root), prepare(task)
        record = store.get(prepared.key)
        if record is None:
            if self.stored_only:
                self.log.warning("%s: not executed yet in this form; run make grade", task.student)
                return False
            record = run(prepared)
            store.put(prepared.key, record)
        for note in prepared.notes:
            self.log.warning("%s", note)
        folder = root / FOLDER / "staged" / task.student / task.assignment.name
        folder.mkdir(parents=True)
        (folder / f"{task.assignment.name}.ipynb").write_text(nbformat.writes(finish(prepared, record).notebook))
        if timestamp := _timestamp(task.folder):
            (folder / "timestamp.txt").write_text(timestamp)
        return True

    def init_destination(self, assignment_id: str, student_id: str) -> bool:
        """Whether to record this submission: always, unless the very same graded notebook is there already."""
        name = f"{assignment_id}.ipynb"
        old = Path(self._format_dest(assignment_id, student_id)) / name
        new = Path(self._format_source(assignment_id, student_id)) / name
        if old.exists() and _content(old) != _content(new):
            self.log.info("%s: regraded, since the submission or its verdict changed", student_id)
            shutil.rmtree(old.parent)  # nbgrader would skip what it has graded once
        return super().init_destination(assignment_id, student_id)


def course(root: Path, assignment: str, students: str = "*") -> CourseDirectory:
    """nbgrader's description of the course in `root`, for one assignment and the students of a pattern."""
    root = root.resolve()
    directory = CourseDirectory(root=str(root), db_url=f"sqlite:///{root / 'gradebook.db'}", course_id="prooflm")
    directory.assignment_id, directory.student_id = assignment, students
    return directory


def submissions(submitted: Path, assignment: str) -> dict[str, Path]:
    """Folder of each student who handed in something, in order; a folder behind a link is none."""
    students = sorted(entry.name for entry in os.scandir(submitted)) if submitted.is_dir() else []
    folders = {student: submitted / student / assignment for student in students}
    return {s: f for s, f in folders.items() if stat.S_ISDIR(_mode(f)) and stat.S_ISDIR(_mode(f.parent))}


def _content(path: Path) -> list | None:
    """The cells of a notebook we wrote; None when the file is torn."""
    try:
        return json.loads(path.read_bytes())["cells"]
    except (ValueError, KeyError):
        return None


def _mode(path: Path) -> int:
    try:
        return path.lstat().st_mode
    except OSError:
        return 0


def _timestamp(folder: Path) -> str:
    """A submission's own time as nbgrader's collect wrote it; nothing for a link, a flood or a text that is none."""
    path = folder / "timestamp.txt"
    if not stat.S_ISREG(_mode(path)) or path.lstat().st_size > MAX_TIMESTAMP:
        return ""
    text = path.read_text(encoding="utf-8", errors="replace").strip()
    try:
        parse_utc(text)
    except (ValueError, OverflowError):
        return ""
    return text


def install() -> None:
    """Make nbgrader's command, its Python API and so the formgrader use SafeAutograde."""
    for module in (nbgrader.converters, nbgrader.apps.api, nbgrader.apps.autogradeapp):
        module.Autograde = SafeAutograde
