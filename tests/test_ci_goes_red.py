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

COPIED = ["Makefile", "pyproject.toml", "requirements.txt", "constraints.txt", "tools", "tests"]


def beginning_of_a_lesson() -> nbformat.NotebookNode:
    """The first lesson up to its first figure, links aside (they lead out of the copy)."""
    lesson = nbformat.read(ROOT / "course" / "01_single_head_attention.ipynb", as_version=4)
    figures = [number for number, cell in enumerate(lesson.cells) if figure_of(cell)]
    lesson.cells = lesson.cells[: figures[0] + 1]
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


def wrong_plot(lesson):
    axes = figure_of(lesson.cells[-1])["axes"][0]
    drawn = axes.get("images") or axes["lines"]
    name = next(name for name, value in drawn[0].items() if name in ("values", "y"))
    shape, _, values = drawn[0][name].partition(": ")
    drawn[0][name] = f"{shape}: 7{values}"


def wrong_title(lesson):
    figure_of(lesson.cells[-1])["axes"][0]["title"] = "Something else"


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
    (folder / "course").mkdir()
    good = beginning_of_a_lesson()
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
            "TESTS=tests/test_notebooks_lint.py::test_stored_notebook_is_in_order course",
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
