"""Wrong answers as whole notebooks, graded as every submission is: each costs points in its own cell and in no other."""

from pathlib import Path

import nbformat
import pytest

from grading import demo
from grading.assignment import Assignment
from grading.grade import Task, finish, prepare, run
from tests.mutants import Answer, answers

ROOT = Path(__file__).parents[1]
MUTANTS = (
    ("p4", "P4.1", "adds a constant"),
    ("p4", "P4.2", "last two depths"),
    ("p4", "P4.3", "equal numbers are tied"),
    ("p4_numpy_block", "P4.4", "over queries"),  # later cells call it
    ("p4_numpy_block", "P4.6", "merge by reshape alone"),
    ("p4_numpy_block", "P4.8", "unbiased"),
    ("p4_numpy_block", "P4.9", "ReLU"),
    ("p4_numpy_block", "P4.13", "mask ignored"),
    ("p4_backward", "P4.18", "forward difference"),
    ("p4_backward", "P4.20", "plain mean"),
    ("p4_backward", "P4.22", "gamma missing"),
    ("p4_variants", "P4.25", "no biases"),
)


def answer(exercise: str, name: str) -> Answer:
    return next(a for a in answers() if (a.exercise, a.name) == (exercise, name))


def handed_in(assignment: str, mutant: Answer, folder: Path) -> None:
    """The released notebook with every solution but one, in whose place the mutant stands."""
    kinds = {kind: nbformat.read(ROOT / kind / assignment / f"{assignment}.ipynb", 4) for kind in ("release", "source")}
    notebook = demo.answered(kinds["release"], kinds["source"], "")
    grade_id = mutant.exercise.replace(".", "_") + "-code"
    (cell,) = [c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade_id") == grade_id]
    cell.source = mutant.source
    nbformat.write(notebook, folder / f"{assignment}.ipynb")


@pytest.mark.parametrize(("assignment", "exercise", "name"), MUTANTS, ids=[f"{m[1]} {m[2]}" for m in MUTANTS])
def test_a_wrong_answer_costs_points_in_its_own_cell_alone(assignment, exercise, name, tmp_path):
    mutant = answer(exercise, name)
    assert mutant.wrong
    handed_in(assignment, mutant, tmp_path)
    prepared = prepare(Task(Assignment(assignment, ROOT), "mutant", tmp_path, seed=7))
    graded = finish(prepared, run(prepared))
    lost = [verdict.exercise for verdict in graded.verdicts.values() if verdict.points < verdict.max_points]
    assert lost == [exercise], {v.exercise: str(v) for v in graded.verdicts.values()}
    (verdict,) = [v for v in graded.verdicts.values() if v.exercise == exercise]
    assert mutant.diagnosis in str(verdict)
    cells = {cell.metadata.get("nbgrader", {}).get("grade_id"): cell for cell in graded.notebook.cells}
    shown = cells[exercise.replace(".", "_") + "-tests"].outputs
    assert shown[-1].data["text/plain"] == repr(verdict.points)
    assert f"{exercise}: {verdict.points:g} of {verdict.max_points:g} points" in shown[0].text
