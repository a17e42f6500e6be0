"""`make regrade`: stored answers judged again, nothing run, and whose points changed is said with the reason."""

import json
import shutil
import sqlite3
import stat
import subprocess
import sys

import pytest

from grading.course import configuration
from grading.course import course as nbgrader_course
from grading.nbgrader_classes import SafeAutograde
from tests.grading_class import POINTS, ROOT, copied, environment, grade, gradebook, points, records, released

STUDENT, CELL = "trusts_the_flag", "P4_3-tests"  # who earns 7 of 9 there


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    course = released(tmp_path_factory.mktemp("course"))
    assert grade(course).returncode == 0
    return course


@pytest.fixture
def course(graded, tmp_path):
    return copied(graded, tmp_path / "class")


def regrade(course, *more: str) -> str:
    command = [sys.executable, "-m", "grading", "regrade", "p4", "--root", str(course), *more]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, env=environment())
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def give_full_marks(course) -> None:
    """As a test did that was corrected since."""
    with sqlite3.connect(course / "gradebook.db") as database:
        database.execute(
            "UPDATE grade SET auto_score = 9 WHERE cell_id IN (SELECT id FROM base_cell WHERE name = ?) AND notebook_id IN "
            "(SELECT n.id FROM submitted_notebook n JOIN submitted_assignment a ON n.assignment_id = a.id "
            "WHERE a.student_id = ?)",
            (CELL, STUDENT),
        )
    database.close()
    assert points(gradebook(course))[STUDENT] == POINTS[STUDENT] + 2


def test_nothing_changed_and_nothing_is_said_to_have(course):
    before, written = gradebook(course), {path: path.stat().st_mtime_ns for path in course.glob("autograded/*/*/*")}
    assert regrade(course) == "p4: 5 judged again, points of 0 changed\n"
    assert gradebook(course) == before
    assert {path: path.stat().st_mtime_ns for path in course.glob("autograded/*/*/*")} == written


def test_whose_points_changed_is_said_with_the_reason(course, graded):
    give_full_marks(course)
    change, summary = regrade(course).splitlines()
    assert change.startswith(f"p4 {STUDENT} {CELL}: 9 -> 7 points (") and "own claim is believed" in change
    assert summary == "p4: 5 judged again, points of 1 changed"
    assert gradebook(course) == gradebook(graded)


def test_a_machine_reads_the_same(course):
    give_full_marks(course)
    ((old, new),) = json.loads(regrade(course, "--json"))["changed"]
    assert (old["student"], old["code"][CELL], new["code"][CELL]) == (STUDENT, 9, 7)
    assert "own claim is believed" in new["findings"][CELL]


def test_a_new_wording_is_written_and_changes_no_points(course, graded):
    page = course / "autograded" / STUDENT / "p4" / "p4.ipynb"
    page.write_text(page.read_text().replace("own claim", "word"))
    assert regrade(course) == "p4: 5 judged again, points of 0 changed\n"
    assert page.read_text() == (graded / page.relative_to(course)).read_text()


def test_who_was_not_run_yet_is_named_and_everybody_else_judged(course):
    for record in records(course)[:1]:
        record.unlink()
    command = [sys.executable, "-m", "grading", "regrade", "p4", "--root", str(course)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, env=environment())
    assert done.returncode == 0 and "4 judged again" in done.stdout
    assert "not run yet in this form; make grade" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    "settings, file_mode, shared",
    [
        ("", 0o444, False),
        ("c.CourseDirectory.groupshared = True", 0o664, True),
        ("c.BaseConverter.permissions = 640", 0o640, False),
        ("c.Autograde.permissions = 600", 0o600, False),
        ("c.SafeAutograde.permissions = 400", 0o400, False),
    ],
)
@pytest.mark.parametrize("command", ["ours", "nbgrader"])
def test_what_is_written_has_the_permissions_that_nbgrader_is_told(course, command, settings, file_mode, shared):
    shutil.rmtree(course / "autograded")
    (course / "nbgrader_config.py").write_text(f"c = get_config()\n{settings}\n")
    if command == "ours":
        regrade(course)
    else:
        SafeAutograde(coursedir=nbgrader_course(course, "p4"), config=configuration(course), stored_only=True).start()
    written = list(course.glob("autograded/*/*/*.ipynb"))
    assert len(written) == 5 and {stat.S_IMODE(path.stat().st_mode) for path in written} == {file_mode}
    folders = [path for path in course.glob("autograded/**") if path.is_dir()]
    assert {path.stat().st_mode & 0o2770 == 0o2770 for path in folders} == {shared}


def test_nothing_but_our_grading_can_grade_in_its_command(course):
    code = "from grading.lean import leave_out; leave_out(); import grading.commands; from nbgrader.apps import NbGraderAPI"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stderr.splitlines()[-1].startswith("ModuleNotFoundError: import of nbgrader.apps halted")


def test_the_course_s_own_configuration_serves_both_ways(course):
    shutil.copy(ROOT / "nbgrader_config.py", course)  # whose root is the folder it lies in
    assert regrade(course) == "p4: 5 judged again, points of 0 changed\n"


@pytest.mark.parametrize("kind", ["source", "release"])
@pytest.mark.parametrize("damage", ["missing", "torn", "empty", "no cells", "no text"])
def test_a_notebook_of_the_course_that_cannot_be_read_is_told_in_one_line(course, kind, damage):
    path = course / kind / "p4" / "p4.ipynb"
    content = {
        "torn": path.read_bytes()[:5000],
        "empty": b"{}",
        "no cells": b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {}}',
        "no text": b"\xff\xfe\x00",
    }.get(damage)
    path.unlink() if content is None else path.write_bytes(content)
    command = [sys.executable, "-m", "grading", "regrade", "p4", "--root", str(course)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, env=environment())
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1), done.stderr
    assert f"{kind}/p4/p4.ipynb" in done.stderr
