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
    needs_reading: bool = False  # prose waits for a person
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
    findings = _findings(Path(directory.root) / folder / f"{name}.ipynb")
    return Score(student, code, sum(most for _, most, _ in counted), any(waits for *_, waits in grades), findings)


def _findings(path: Path) -> dict[str, str]:
    """What each test cell that lost points was first told: the likely mistake, else what was found."""
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    except (OSError, ValueError, KeyError):
        return {}
    told = {}
    for cell in cells:
        marks = cell["metadata"].get("nbgrader", {})
        if marks.get("grade") and not marks.get("solution") and cell["cell_type"] == "code":
            text = "".join("".join(output.get("text", "")) for output in cell["outputs"])
            parts = [line.partition(":") for line in reversed(text.splitlines())]  # so that the first finding stays
            lines = {key.strip(): value.strip() for key, _, value in parts}
            if reason := lines.get("likely") or lines.get("found"):
                told[marks["grade_id"]] = reason
    return told
