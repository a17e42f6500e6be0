"""What the gradebook and the graded notebooks say of a class, in one table."""

import json
from dataclasses import dataclass, field
from pathlib import Path

from nbgrader.api import Gradebook


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


def scores(root: Path, assignment: str) -> list[Score]:
    """Every student's score, by student; empty where the assignment was never graded."""
    if not (root / "gradebook.db").exists():
        return []
    with Gradebook(f"sqlite:///{root / 'gradebook.db'}") as gradebook:
        if assignment not in {known.name for known in gradebook.assignments}:
            return []
        found = [_score(root, assignment, submission) for submission in gradebook.assignment_submissions(assignment)]
    return sorted(found, key=lambda score: score.student)


def _score(root: Path, assignment: str, submission) -> Score:
    grades = [grade for notebook in submission.notebooks for grade in notebook.grades]
    code = {g.name: g.auto_score for g in grades if g.auto_score is not None and g.cell.cell_type == "code"}
    most = sum(g.max_score_gradecell for g in grades if g.name in code)
    student = submission.student.id
    findings = _findings(root / "autograded" / student / assignment / f"{assignment}.ipynb")
    return Score(student, code, most, any(g.needs_manual_grade for g in grades), findings)


def _findings(path: Path) -> dict[str, str]:
    """What each test cell that lost points was first told: the likely mistake, else what was found."""
    if not path.exists():
        return {}
    told = {}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        marks = cell["metadata"].get("nbgrader", {})
        if marks.get("grade") and not marks.get("solution") and cell["cell_type"] == "code":
            text = "".join("".join(output.get("text", "")) for output in cell["outputs"])
            parts = [line.partition(":") for line in reversed(text.splitlines())]  # so that the first finding stays
            lines = {key.strip(): value.strip() for key, _, value in parts}
            if reason := lines.get("likely") or lines.get("found"):
                told[marks["grade_id"]] = reason
    return told
