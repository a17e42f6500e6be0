"""Grade one assignment of a course, whoever asks: `make grade` and nbgrader's own autograde take this path.

Nothing of nbgrader's touches what was handed in: no link is followed, no file copied, no cell run by it. Formats,
gradebook and folders are its own.
"""

import errno
import fnmatch
import json
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbgrader.api import Gradebook
from nbgrader.coursedir import CourseDirectory
from nbgrader.utils import parse_utc
from traitlets import Bool, Dict, Instance, Int, default
from traitlets.config import LoggingConfigurable

from grading.assignment import Assignment, AssignmentError
from grading.execution import Limits
from grading.grade import Graded, Prepared, Task, finish, nothing_ran, prepare, run
from grading.record import GradebookError, Recorder, open_gradebook
from grading.sandbox import Policy, SandboxError
from grading.store import Store, write_atomically
from grading.submitted import mode, submissions

MAX_TIMESTAMP = 100  # bytes
TROUBLE = (AssignmentError, GradebookError, SandboxError, OSError)  # of the course or the machine, told in one line


class Grader(LoggingConfigurable):
    """Grades behind walls, and records each submission at once or not at all."""

    coursedir = Instance(CourseDirectory)
    unsafe_no_sandbox = Bool(
        False, help="Run submissions with the grader's own rights. The grade's record says so."
    ).tag(config=True)
    seed = Int(
        None, allow_none=True, help="Of the secret cases; drawn once and kept in the course's folder when not given."
    ).tag(config=True)
    stored_only = Bool(False, help="Judge what was executed before; execute nothing.").tag(config=True)
    force = Bool(False, help="Record anew what is recorded already.").tag(config=True)
    permissions = Int(help="Of what is written, in octal digits.").tag(config=True)

    policy = Instance(Policy, ())
    limits = Instance(Limits, ())

    lost = Dict(help="Why a student's run has no answers, by student: these get no points, with the reason.")
    graded = Dict(help="What became of each submission, by student: the notes of its intake.")

    @classmethod
    def section_names(cls) -> list[str]:
        """Sections of a configuration that hold here: those of nbgrader's autograde too."""
        return ["BaseConverter", "Autograde", "SafeAutograde", *super().section_names()]

    @default("permissions")
    def _permissions_default(self) -> int:
        return 664 if self.coursedir.groupshared else 444

    @contextmanager
    def recording(self) -> Iterator[Callable[[Prepared], None]]:
        """With the gradebook open, a function that judges a submission and records it; one not run yet it runs.

        A gradebook that could not be written is found at once rather than after hours of running. Raises one of
        TROUBLE for what goes wrong within, on either side.
        """
        root = Path(self.coursedir.root)
        store = Store(root)
        with open_gradebook(self.coursedir) as gradebook:
            recorder = self._recorder(gradebook)
            recorder.try_to_write()

            def record(prepared: Prepared) -> None:
                if graded := self._grade(store, prepared):
                    self._keep(root, prepared.task, graded, recorder)
                    self.graded[graded.student] = graded.notes

            yield record

    def _recorder(self, gradebook: Gradebook) -> Recorder:
        name = self.coursedir.assignment_id
        try:
            recorder = Recorder(gradebook, name)
        except KeyError:
            raise AssignmentError(f"assignment {name} is not in the gradebook; run make release") from None
        if missing := sorted(set(Assignment(name, Path(self.coursedir.root)).exercises) - set(recorder.graded)):
            raise AssignmentError(f"cell {missing[0]} of {name} is not in the gradebook; run make release")
        return recorder

    def tasks(self) -> list[Task]:
        """One task for each submission of the assignment, by student."""
        root = Path(self.coursedir.root)
        assignment = Assignment(self.coursedir.assignment_id, root)
        seed = Store(root).secret_seed() if self.seed is None else self.seed
        found = submissions(root / self.coursedir.submitted_directory, assignment.name)
        return [
            Task(assignment, student, found[student], seed, self.policy, self.limits, self.unsafe_no_sandbox)
            for student in self.students()
        ]

    def students(self) -> list[str]:
        """Who handed in this assignment and is meant by the command."""
        found = submissions(
            Path(self.coursedir.root) / self.coursedir.submitted_directory, self.coursedir.assignment_id
        )
        excluded = self.coursedir.student_id_exclude.split(",")
        return [
            student
            for student in found
            if fnmatch.fnmatchcase(student, self.coursedir.student_id) and student not in excluded
        ]

    def waiting(self) -> tuple[list[str], list[str]]:
        """Students whose submissions would be run, and those whose were before."""
        store, waiting, known = Store(Path(self.coursedir.root)), [], []
        for task in self.tasks():
            (waiting if store.get(prepare(task).key) is None else known).append(task.student)
        return waiting, known

    def _grade(self, store: Store, prepared: Prepared) -> Graded | None:
        """The graded submission; None when only a stored one would do."""
        student, record = prepared.task.student, store.get(prepared.key)
        if record is None and student in self.lost:
            record = nothing_ran(prepared, self.lost[student])
        if record is None:
            if self.stored_only:
                self.log.warning("%s: not executed yet in this form; run make grade", student)
                return None
            record = run(prepared)
            store.put(prepared.key, record)
        for note in prepared.notes:
            self.log.warning("%s", note)
        return finish(prepared, record)

    def _keep(self, root: Path, task: Task, graded: Graded, recorder: Recorder) -> None:
        """Gradebook first, notebook last: only with the notebook in place does a submission count as done."""
        name = task.assignment.name
        folder = Path(self.coursedir.format_path(self.coursedir.autograded_directory, task.student, name))
        path, timestamp = root / folder / f"{name}.ipynb", _timestamp(task.folder)
        text = nbformat.v4.writes(graded.notebook)
        same = (kept := _content(path)) is not None and kept == json.loads(text)["cells"]
        if same and not self.force and recorder.holds(task.student, graded.notebook):
            return
        recorder.record(task.student, graded.notebook, timestamp)
        if recorder.due:
            self._penalise(task.student, graded.notebook)
        for source in self._files_of_source(root, name):
            write_atomically(path.parent / source.name, source.read_bytes())
        if timestamp:
            write_atomically(path.parent / "timestamp.txt", timestamp.encode())
        write_atomically(path, text.encode())
        self._set_permissions(path.parent)

    def _set_permissions(self, folder: Path) -> None:
        """As nbgrader sets them: a group that shares the course may write folders too."""
        for path in folder.iterdir():
            path.chmod(int(str(self.permissions), 8))
        if self.coursedir.groupshared:
            for shared in (folder, *folder.parents[:2]):
                with suppress(PermissionError):  # another of the group made it
                    shared.chmod((shared.stat().st_mode | 0o2770) & 0o2777)

    def _penalise(self, student: str, notebook: NotebookNode) -> None:
        from nbgrader.preprocessors import AssignLatePenalties  # imports nbconvert

        name = self.coursedir.assignment_id
        names = {"student": student, "assignment": name, "notebook": name, "db_url": self.coursedir.db_url}
        AssignLatePenalties(parent=self).preprocess(notebook, {"nbgrader": names})

    def _files_of_source(self, root: Path, name: str) -> list[Path]:
        folder = root / self.coursedir.source_directory / name
        return [path for path in folder.iterdir() if path.is_file() and path.suffix != ".ipynb"]


def told(error: Exception) -> str:
    """One line on one of TROUBLE: what is wrong and what to do."""
    if not isinstance(error, OSError):
        return str(error)
    kept = "; what was run is kept, and the same command goes on from there"
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return f"the disk is full: make room and run the same command again ({error.strerror}: {error.filename}){kept}"
    return f"{error.strerror or error}: {error.filename}{kept}" if error.filename else f"{error}{kept}"


def _content(path: Path) -> list | None:
    """The cells of a notebook we wrote; None when there is none or the file is torn."""
    try:
        return json.loads(path.read_bytes())["cells"]
    except (OSError, ValueError, KeyError):
        return None


def _timestamp(folder: Path) -> str:
    """A submission's own time as nbgrader's collect wrote it; nothing for a link, a flood or a text that is none."""
    path = folder / "timestamp.txt"
    if not stat.S_ISREG(mode(path)) or path.lstat().st_size > MAX_TIMESTAMP:
        return ""
    text = path.read_text(encoding="utf-8", errors="replace").strip()
    try:
        parse_utc(text)
    except (ValueError, OverflowError):
        return ""
    return text
