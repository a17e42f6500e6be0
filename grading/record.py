"""Write graded submissions to nbgrader's gradebook: each in one transaction, and nothing twice.

nbgrader's own way opens the gradebook seven times a submission and commits after each cell; a grader that is killed
between two commits leaves half a grade behind, and the next run takes the submission for done. The rows are the same.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from nbformat import NotebookNode
from nbgrader.api import (
    Assignment,
    BaseCell,
    Comment,
    Grade,
    Gradebook,
    Notebook,
    Student,
    SubmittedAssignment,
    SubmittedNotebook,
)
from nbgrader.coursedir import CourseDirectory
from nbgrader.utils import compute_checksum, determine_grade, is_grade, is_solution, is_task, parse_utc
from sqlalchemy import Boolean, Row, bindparam, insert, or_, select, update
from sqlalchemy.exc import DBAPIError

# nbgrader starts alembic by name; it lies beside this interpreter, whether or not its environment is active
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])

GRADED, ANSWERED = ("GradeCell", "TaskCell"), ("SolutionCell", "TaskCell")  # kinds of cells that get a row each
GRADES, COMMENTS = Grade.__table__, Comment.__table__
# put together once: that takes longer than running them
SET_POINTS = (
    update(GRADES)
    .where(GRADES.c.notebook_id == bindparam("mine"), GRADES.c.cell_id == bindparam("cell"))
    .values(
        auto_score=bindparam("points"),
        needs_manual_grade=or_(bindparam("unread", type_=Boolean), GRADES.c.manual_score.is_not(None)),  # look again
    )
)
SET_COMMENT = (
    update(COMMENTS)
    .where(COMMENTS.c.notebook_id == bindparam("mine"), COMMENTS.c.cell_id == bindparam("cell"))
    .values(auto_comment=bindparam("text"))
)
ROWS = (
    select(SubmittedAssignment.id, SubmittedNotebook.id, Grade.cell_id, Grade.auto_score)
    .join(SubmittedNotebook, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
    .outerjoin(Grade, Grade.notebook_id == SubmittedNotebook.id)
    .where(
        SubmittedNotebook.notebook_id == bindparam("notebook"),
        SubmittedAssignment.student_id == bindparam("student"),
    )
)
REMEDIES = {  # what databases say, and what to do
    "locked": "another program is writing to it; let it finish or close it",
    "readonly": "give yourself the right to write it and its folder",
    "read-only": "give yourself the right to write it",
    "permission denied": "give yourself the right to write it",
    "unable to open": "see whether its folder is there and may be written",
    "full": "the disk is full: make room",
    "disk i/o": "see whether the disk is full or failing",
    "malformed": "restore it from a backup; grades are written again from what was run",
    "not a database": "restore it from a backup; grades are written again from what was run",
    "connect": "see whether the database server runs and db_url is right",
}


class GradebookError(Exception):
    """The gradebook cannot be read or written; the message is one line with the remedy."""


@contextmanager
def open_gradebook(directory: CourseDirectory) -> Iterator[Gradebook]:
    """The course's gradebook. Raises GradebookError for whatever the database refuses within the block."""
    try:
        with Gradebook(directory.db_url, directory.course_id) as gradebook:
            yield gradebook
    except DBAPIError as error:
        said = " ".join(str(error.orig).split())
        remedy = next((what for sign, what in REMEDIES.items() if sign in said.lower()), "see to the database")
        message = f"the gradebook cannot be used ({said}): {remedy}, then run the same command again; nothing is lost"
        raise GradebookError(message) from None


class Recorder:
    """Writes submissions of one assignment, whose one notebook has its name.

    Raises KeyError when the gradebook does not know the assignment.
    """

    def __init__(self, gradebook: Gradebook, name: str) -> None:
        self.db = gradebook.db
        row = self.db.execute(
            select(Assignment.id, Assignment.duedate, Notebook.id)
            .join(Notebook, Notebook.assignment_id == Assignment.id)
            .where(Assignment.name == name, Notebook.name == name)
        ).first()
        if row is None:
            raise KeyError(name)
        self.assignment, self.due, self.notebook = row
        cells = select(BaseCell.id, BaseCell.name, BaseCell.type).where(BaseCell.notebook_id == self.notebook)
        kinds = self.db.execute(cells.order_by(BaseCell.name)).all()
        self.graded = {cell: cell_id for cell_id, cell, kind in kinds if kind in GRADED}
        self.answered = {cell: cell_id for cell_id, cell, kind in kinds if kind in ANSWERED}
        self.db.rollback()  # ends the reading

    def try_to_write(self) -> None:
        """Change nothing, but fail now where recording would fail later."""
        self.db.execute(
            update(Student).where(Student.id == "").values(first_name=None),
            execution_options={"synchronize_session": False},
        )
        self.db.rollback()

    def holds(self, student: str, notebook: NotebookNode) -> bool:
        """Whether the gradebook has just these points for the student, every one of them."""
        recorded = {cell: points for *_, cell, points in self._rows_of(student)}
        self.db.rollback()  # ends the reading
        return recorded == {self.graded[name]: points for name, points in _points(notebook).items()}

    def record(self, student: str, notebook: NotebookNode, timestamp: str) -> None:
        """The submission's rows as nbgrader would write them, all or none. A person's marks stay."""
        try:
            mine = self._expect_submission(student, timestamp)
            points = [
                {"mine": mine, "cell": self.graded[name], "points": value, "unread": value is None}
                for name, value in _points(notebook).items()
            ]
            comments = [
                {"mine": mine, "cell": self.answered[name], "text": text} for name, text in _comments(notebook).items()
            ]
            for statement, rows in ((SET_POINTS, points), (SET_COMMENT, comments)):
                if rows:
                    self.db.execute(statement, rows)
            self.db.commit()
        except BaseException:
            self.db.rollback()
            raise

    def _rows_of(self, student: str) -> Sequence[Row]:
        """(submission, submitted notebook, graded cell, its points) of each grade; others may write meanwhile."""
        return self.db.execute(ROWS, {"notebook": self.notebook, "student": student}).all()

    def _expect_submission(self, student: str, timestamp: str) -> str:
        """Id of the student's submitted notebook, with a row for each cell."""
        when = {"timestamp": parse_utc(timestamp)} if timestamp else {}
        if rows := self._rows_of(student):
            submission, mine, *_ = rows[0]
            if when:
                self.db.execute(
                    update(SubmittedAssignment).where(SubmittedAssignment.id == submission).values(**when),
                    execution_options={"synchronize_session": False},
                )
            self._add_rows(
                Grade, mine, set(self.graded.values()) - {row.cell_id for row in rows}
            )  # of cells released later
            return mine
        submission, mine = _new_id(), _new_id()
        if self.db.execute(select(Student.id).where(Student.id == student)).first() is None:
            self.db.execute(insert(Student.__table__).values(id=student))
        self.db.execute(
            insert(SubmittedAssignment.__table__).values(
                id=submission, assignment_id=self.assignment, student_id=student, **when
            )
        )
        self.db.execute(
            insert(SubmittedNotebook.__table__).values(id=mine, assignment_id=submission, notebook_id=self.notebook)
        )
        self._add_rows(Grade, mine, self.graded.values())
        self._add_rows(Comment, mine, self.answered.values())
        return mine

    def _add_rows(self, kind: type, notebook: str, cells: Iterable[str]) -> None:
        if rows := [{"id": _new_id(), "notebook_id": notebook, "cell_id": cell} for cell in cells]:
            self.db.execute(insert(kind.__table__), rows)


def _points(notebook: NotebookNode) -> dict[str, float | None]:
    """Points by grade_id, as nbgrader reads them from a graded notebook; None where a person decides."""
    return {cell.metadata.nbgrader.grade_id: determine_grade(cell)[0] for cell in notebook.cells if is_grade(cell)}


def _comments(notebook: NotebookNode) -> dict[str, str | None]:
    """nbgrader's remark by grade_id of an answer that was left as released."""
    comments = {}
    for cell in notebook.cells:
        if is_solution(cell) or is_task(cell):
            marks = cell.metadata.nbgrader
            untouched = not is_task(cell) and marks.get("checksum") == compute_checksum(cell)
            comments[marks.grade_id] = "No response." if untouched else None
    return comments


def _new_id() -> str:
    return uuid4().hex
