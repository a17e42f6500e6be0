"""The students' edition of every problem set: what is in it, what is not, and that it is what source/ gives."""

import ast
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from grading.assignment import Assignment
from grading.exercises import PROBLEM_SETS

ROOT = Path(__file__).parents[1]
SETS = sorted(path.name for path in (ROOT / "source").iterdir() if path.is_dir())
REGION = re.compile(r"### BEGIN (SOLUTION|HIDDEN TESTS|MARK SCHEME)\n(.*?)### END \1", re.DOTALL)
SPEAKING = 18  # characters from which a line is no accident
KEPT_METADATA = {"nbgrader", "deletable", "editable", "tags"}


def read(kind: str, name: str) -> nbformat.NotebookNode:
    return nbformat.read(ROOT / kind / name / f"{name}.ipynb", as_version=4)


def generate(course: Path, name: str) -> bytes:
    arguments = ["generate_assignment", name, f"--course-dir={course}", "--force", "--log-level=ERROR"]
    subprocess.run([sys.executable, "-m", "nbgrader", *arguments], cwd=ROOT, check=True)
    return (course / "release" / name / f"{name}.ipynb").read_bytes()


def test_every_problem_set_has_a_source_and_an_entry():
    assert set(SETS) == set(PROBLEM_SETS)


@pytest.mark.parametrize("name", SETS)
def test_generating_again_gives_the_committed_release_byte_for_byte(name, tmp_path):
    source = tmp_path / "source" / name
    source.mkdir(parents=True)
    for path in (ROOT / "source" / name).iterdir():
        (source / path.name).write_bytes(path.read_bytes())
    committed = (ROOT / "release" / name / f"{name}.ipynb").read_bytes()
    assert generate(tmp_path, name) == committed, f"release/{name} is stale: make release"
    assert generate(tmp_path, name) == committed  # over the gradebook that the first run wrote
    files = {path.name for path in (tmp_path / "release" / name).iterdir()}
    assert files == {path.name for path in (ROOT / "release" / name).iterdir()}


@pytest.mark.parametrize("name", SETS)
def test_no_line_of_a_solution_a_hidden_test_or_a_rubric_is_released(name):
    source = read("source", name)
    regions = [match[2] for cell in source.cells for match in REGION.finditer(cell.source)]
    assert regions, "the source has no region that the release could leak"
    public = "\n".join(REGION.sub("", cell.source) for cell in source.cells)
    secret = {line.strip() for region in regions for line in region.splitlines()}
    secret = {line for line in secret if len(line) >= SPEAKING and line not in public}
    assert len(secret) > len(regions)
    for path in (ROOT / "release" / name).rglob("*"):
        text = path.read_bytes().decode("utf-8")
        leaked = [line for line in secret if line in text or json.dumps(line)[1:-1] in text]
        assert not leaked, f"{path.name} holds {leaked[:3]}"
        assert not re.search(r"(BEGIN|END) (SOLUTION|HIDDEN|MARK)|from grading", text), path.name


@pytest.mark.parametrize("name", SETS)
def test_the_release_has_no_outputs_and_no_other_metadata(name):
    for cell in read("release", name).cells:
        assert set(cell.metadata) <= KEPT_METADATA
        assert not cell.get("attachments")
        if cell.cell_type == "code":
            assert cell.outputs == [] and cell.execution_count is None


@pytest.mark.parametrize("name", SETS)
def test_every_code_cell_of_the_release_compiles_and_every_answer_is_open(name):
    answers = 0
    for cell in read("release", name).cells:
        if cell.cell_type == "code":
            ast.parse(cell.source, filename=cell.id)
        if cell.metadata.get("nbgrader", {}).get("solution"):
            answers += 1
            stub = "raise NotImplementedError" if cell.cell_type == "code" else "*Your answer here.*"
            assert stub in cell.source, cell.id
    assert answers


@pytest.mark.parametrize("name", SETS)
def test_points_and_cells_of_source_fit_the_exercises(name):
    assignment = Assignment(name, ROOT)
    assert assignment.source.cells and assignment.exercises
    for exercise in assignment.exercises.values():
        code = [cell.source for cell in assignment.source.cells if "### BEGIN SOLUTION" in cell.source]
        for written in exercise.names:
            assert any(re.search(rf"^(def|class) {written}\b", text, re.MULTILINE) for text in code), exercise.id


@pytest.mark.parametrize("name", SETS)
def test_test_cells_import_for_themselves_and_read_nothing_else(name):
    assignment = Assignment(name, ROOT)
    cells = {cell.metadata.get("nbgrader", {}).get("grade_id"): cell.source for cell in assignment.source.cells}
    for grade_id, exercise in assignment.exercises.items():
        tree = ast.parse(cells[grade_id])
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
        assert names - imported == set(exercise.names)


def test_solved_notebooks_carry_no_marks_and_are_run(tmp_path):
    (tmp_path / "source").mkdir()
    shutil.copytree(ROOT / "source" / "p4_backward", tmp_path / "source" / "p4_backward")
    generate(tmp_path, "p4_backward")
    arguments = ["generate_solution", "p4_backward", f"--course-dir={tmp_path}", "--force", "--log-level=ERROR"]
    subprocess.run([sys.executable, "-m", "nbgrader", *arguments], cwd=ROOT, check=True)
    text = (tmp_path / "solutions" / "p4_backward" / "p4_backward.ipynb").read_text(encoding="utf-8")
    assert "BEGIN SOLUTION" not in text and "END SOLUTION" not in text
    assert "holds: " in text
