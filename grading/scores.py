"""What the gradebook and the graded notebooks say of a class, in one table."""

import json
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from nbgrader.api import Assignment, Grade, GradeCell, SubmittedAssignment, SubmittedNotebook
from nbgrader.coursedir import CourseDirectory
from sqlalchemy import select

from grading.record import open_gradebook


@dataclass(frozen=True)
class Score:
    """One student's points in one assignment."""

    student: str
    code: dict[str, float] = field(default_factory=dict)  # by grade_id of the test cell
    code_most: float = 0.0
    needs_reading: bool = False  # prose waits for a person, and some was written
    findings: dict[str, str] = field(default_factory=dict)  # first finding by grade_id, where points were lost

    @property
    def code_points(self) -> float:
        return sum(self.code.values())


def scores(directory: CourseDirectory) -> list[Score]:
    """Every student's score in the course's assignment, by student; empty where it was never graded.

    Raises GradebookError.
    """
    query = (
        select(
            SubmittedAssignment.student_id,
            GradeCell.name,
            GradeCell.cell_type,
            GradeCell.max_score,
            Grade.auto_score,
            Grade.needs_manual_grade,
        )
        .join(SubmittedNotebook, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
        .join(Grade, Grade.notebook_id == SubmittedNotebook.id)
        .join(GradeCell, GradeCell.id == Grade.cell_id)
        .join(Assignment, Assignment.id == SubmittedAssignment.assignment_id)
        .where(Assignment.name == directory.assignment_id)
        .order_by(SubmittedAssignment.student_id, GradeCell.name)
    )
    by_student = defaultdict(list)
    with open_gradebook(directory) as gradebook:
        for student, *grade in gradebook.db.execute(query):
            by_student[student].append(grade)
    return [_score(directory, student, grades) for student, grades in by_student.items()]


def _score(directory: CourseDirectory, student: str, grades: list) -> Score:
    counted = [(name, most, auto) for name, kind, most, auto, _ in grades if kind == "code" and auto is not None]
    code = {name: auto for name, _, auto in counted}
    name = directory.assignment_id
    folder = directory.format_path(directory.autograded_directory, student, name)
    cells = _graded_cells(Path(directory.root) / folder / f"{name}.ipynb")
    empty = {cell["metadata"]["nbgrader"]["grade_id"] for cell in cells if not "".join(cell["source"]).strip()}
    reading = any(waits and cell not in empty for cell, *_, waits in grades)
    return Score(student, code, sum(most for _, most, _ in counted), reading, _findings(cells))


def _graded_cells(path: Path) -> list[dict]:
    """The cells of a graded notebook that earn points; none where there is no notebook."""
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    except (OSError, ValueError, KeyError):
        return []
    return [cell for cell in cells if cell["metadata"].get("nbgrader", {}).get("grade")]


def _findings(cells: list[dict]) -> dict[str, str]:
    """What each test cell that lost points was first told: the likely mistake, else what was found."""
    told = {}
    for cell in cells:
        marks = cell["metadata"]["nbgrader"]
        if not marks.get("solution") and cell["cell_type"] == "code":
            text = "".join("".join(output.get("text", "")) for output in cell["outputs"])
            parts = [line.partition(":") for line in reversed(text.splitlines())]  # so that the first finding stays
            lines = {key.strip(): value.strip() for key, _, value in parts}
            if reason := lines.get("likely") or lines.get("found"):
                told[marks["grade_id"]] = reason
    return told
