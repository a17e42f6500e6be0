"""CI's own command fails on a stored lesson that says something else than its code does."""

import copy
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from tools.lint_notebooks import DIGEST_MIME, ROOT

COPIED = ["Makefile", "pyproject.toml", "requirements.txt", "constraints.txt", "tools"]
LINT = "tests/test_notebooks_lint.py"


def good_lesson() -> nbformat.NotebookNode:
    """The shortest lesson, links aside: they lead out of the copy."""
    lesson = nbformat.read(ROOT / "course" / "00_start_here.ipynb", as_version=4)
    for cell in lesson.cells:
        if cell.cell_type == "markdown":
            cell.source = cell.source.replace("](", "] (")
    return lesson


def figure_of(cell) -> dict | None:
    """The digest of the first figure that the cell shows."""
    data = [output.get("data", {}) for output in cell.get("outputs", [])]
    return next((shown[DIGEST_MIME] for shown in data if DIGEST_MIME in shown), None)


def printing_cell(lesson):
    return next(
        cell
        for cell in lesson.cells
        if cell.cell_type == "code" and cell.outputs and re.search(r"\d", cell.outputs[0].get("text", ""))
    )


def wrong_number(lesson):
    output = printing_cell(lesson).outputs[0]
    output.text = re.sub(r"\d", lambda digit: str((int(digit[0]) + 1) % 10), output.text, count=1)


def first_axes(lesson) -> dict:
    return next(figure for figure in map(figure_of, lesson.cells) if figure)["axes"][0]


def wrong_plot(lesson):
    axes = first_axes(lesson)
    drawn = (axes.get("images") or axes["lines"])[0]
    name = "values" if "values" in drawn else "y"
    drawn[name] = drawn[name].replace(": ", ": 7", 1)


def wrong_title(lesson):
    first_axes(lesson)["title"] = "Something else"


def emptied_output(lesson):
    printing_cell(lesson).outputs = []


def never_run(lesson):
    cell = printing_cell(lesson)
    cell.outputs, cell.execution_count = [], None


def stale_code(lesson):
    cell = printing_cell(lesson)
    cell.source += '\nprint("one more line")'


SPOILS = [wrong_number, wrong_plot, wrong_title, emptied_output, never_run, stale_code]


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> tuple[int, str]:
    """Exit status and output of `make test` over one good lesson and its spoilt copies."""
    folder = tmp_path_factory.mktemp("a copy")
    for name in COPIED:
        copy_one = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        copy_one(ROOT / name, folder / name)
    (folder / ".venv").symlink_to(sys.prefix)
    for name in ("course", "tests"):
        (folder / name).mkdir()
    shutil.copy2(ROOT / LINT, folder / LINT)
    good = good_lesson()
    nbformat.write(good, folder / "course" / "good.ipynb")
    for spoil in SPOILS:
        spoilt = copy.deepcopy(good)
        spoil(spoilt)
        assert spoilt != good
        nbformat.write(spoilt, folder / "course" / f"{spoil.__name__}.ipynb")
    hidden = {"MAKEFLAGS", "MAKELEVEL", "MFLAGS", "PYTEST_XDIST_WORKER", "PYTEST_ADDOPTS"}
    done = subprocess.run(
        [
            "make",
            "--assume-old=.venv/.installed",
            "test",
            f"TESTS={LINT}::test_stored_notebook_is_in_order course",
        ],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if name not in hidden},
        capture_output=True,
        text=True,
        timeout=600,
    )
    return done.returncode, done.stdout + done.stderr


def failed(report: tuple[int, str]) -> set[str]:
    lines = [line for line in report[1].splitlines() if line.startswith("FAILED")]
    return {Path(name).stem for line in lines for name in re.findall(r"course/\w+\.ipynb", line)}


def test_the_command_fails(report):
    assert report[0] != 0, report[1]


@pytest.mark.parametrize("spoil", SPOILS, ids=lambda spoil: spoil.__name__)
def test_a_spoilt_lesson_is_red(report, spoil):
    assert spoil.__name__ in failed(report), report[1]


def test_the_good_lesson_is_green(report):
    assert "good" not in failed(report), report[1]
