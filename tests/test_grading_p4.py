"""Problem set P4 through real nbgrader: released, handed in, graded behind walls, recorded, handed back."""

import subprocess
import sys
from pathlib import Path

import pytest
from nbgrader.api import Gradebook
from nbgrader.coursedir import CourseDirectory

from grading import demo
from grading.exercises import exercises
from grading.scores import scores

ROOT = Path(__file__).parents[1]
FULL = {f"P4_{n}-tests": exercise.points for n, exercise in enumerate(exercises("p4").values(), start=1)}
STUDENTS = {  # points by test cell
    "untouched": dict.fromkeys(FULL, 0),
    "file_cut_off": dict.fromkeys(FULL, 0),
    "solves_everything": FULL,
    "unusual_but_right": FULL,
    "loops_forever": FULL | {"P4_2-tests": 0},
    "trusts_the_flag": FULL | {"P4_3-tests": FULL["P4_3-tests"] - 2},
}


def nbgrader(course: Path, *arguments: str) -> None:
    command = [sys.executable, "-m", "nbgrader", *arguments, "p4", f"--course-dir={course}", "--log-level=ERROR"]
    subprocess.run(command, cwd=ROOT, check=True, timeout=400)


def recorded(course: Path) -> dict[str, dict[str, float]]:
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        return {
            submission.student.id: {
                grade.name: grade.auto_score
                for grade in submission.notebooks[0].grades
                if grade.name.endswith("-tests")
            }
            for submission in gradebook.assignment_submissions("p4")
        }


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """The demo's course with a few of its students, graded by `nbgrader autograde`."""
    folder = tmp_path_factory.mktemp("course")
    demo.build(folder, students=STUDENTS)
    nbgrader(folder, "autograde")
    return folder


def test_autograde_records_what_each_student_earned(course):
    assert recorded(course) == STUDENTS


def test_words_wait_for_a_person_unless_nothing_was_written(course):
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        for student, waits in (("solves_everything", True), ("untouched", False)):
            notebook = gradebook.find_submission_notebook("p4", "p4", student)
            prose = [grade for grade in notebook.grades if grade.name.endswith("-prose")]
            assert len(prose) == 3 and {grade.needs_manual_grade for grade in prose} == {waits}


def test_only_what_was_written_is_to_be_read(course):
    directory = CourseDirectory(root=str(course), assignment_id="p4")
    needs_reading = {score.student: score.needs_reading for score in scores(directory)}
    assert needs_reading["solves_everything"]
    assert not needs_reading["untouched"] and not needs_reading["file_cut_off"]


def test_graders_see_the_rubric_and_students_do_not(course):
    graded = (course / "autograded" / "solves_everything" / "p4" / "p4.ipynb").read_text(encoding="utf-8")
    assert graded.count("BEGIN MARK SCHEME") == 3
    nbgrader(course, "generate_feedback", "--student=solves_everything")
    page = (course / "feedback" / "solves_everything" / "p4" / "p4.html").read_text(encoding="utf-8")
    assert "MARK SCHEME" not in page and "For graders" not in page and "HIDDEN TESTS" not in page
    assert "P4.1: 10 of 10 points" in page


def test_a_page_shows_no_score_for_words_that_nobody_has_read(course):
    told = {}
    for student in ("solves_everything", "untouched"):
        nbgrader(course, "generate_feedback", f"--student={student}")
        page = (course / "feedback" / student / "p4" / "p4.html").read_text(encoding="utf-8")
        told[student] = page.count("not read yet, "), 'class="unread"' in page
    assert told == {"solves_everything": (6, True), "untouched": (0, False)}  # in the list and at each of three cells


def test_a_finding_names_the_property_and_no_answer(course):
    graded = (course / "autograded" / "trusts_the_flag" / "p4" / "p4.ipynb").read_text(encoding="utf-8")
    assert "tied means one storage" in graded and "what the model claims" in graded


def test_who_handed_in_a_broken_file_reads_so_before_anything_else(course):
    first = {}
    for student in ("file_cut_off", "solves_everything"):
        nbgrader(course, "generate_feedback", f"--student={student}")
        first[student] = (course / "feedback" / student / "p4" / "p4.html").read_text(encoding="utf-8")
    said = first["file_cut_off"].find("p4.ipynb: ")
    assert 0 < said < first["file_cut_off"].find("P4.1") and "Before anything was run" in first["file_cut_off"]
    assert "ask for the file again" not in first["file_cut_off"]  # that is the instructor's to do
    assert "Before anything was run" not in first["solves_everything"]


def test_an_empty_submission_is_not_told_what_it_does_not_define(course):
    graded = (course / "autograded" / "file_cut_off" / "p4" / "p4.ipynb").read_text(encoding="utf-8")
    assert "is not defined" not in graded and graded.count("nothing could be read of what was handed in") == len(FULL)


def test_the_course_command_gives_the_same_points(course):
    command = [sys.executable, "-m", "grading", "grade", "p4", "--root", str(course), "--workers", "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr
    assert all(student in done.stdout for student in STUDENTS)
    assert recorded(course) == STUDENTS


@pytest.mark.parametrize("what", ["grade", "regrade"])
def test_nothing_submitted_is_said_in_one_line(tmp_path, what):
    command = [sys.executable, "-m", "grading", what, "p4", "--root", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, len(done.stdout.splitlines()), done.stderr) == (0, 1, "")
    assert "nothing submitted" in done.stdout


def test_each_student_of_the_demo_makes_a_mistake_in_one_exercise_only():
    """The files hold what their names say: a wrong function of one exercise, or right ones of all."""
    names = {exercise.name: exercise for exercise in exercises("p4").values()}
    for path in demo.ANSWERS.glob("*.py"):
        functions = demo.functions(path.read_text(encoding="utf-8"))
        if path.stem == "loops_forever":
            assert list(functions) == ["most_stable_configuration"]
            continue
        assert len(functions) == (3 if path.stem == "unusual_but_right" else 1), path.stem
        for name, text in functions.items():
            namespace: dict = {}
            exec(compile(text, path.name, "exec"), namespace)
            verdict = names[name].grade(namespace[name], seed=5)
            right = path.stem == "unusual_but_right"
            assert (verdict.points == verdict.max_points) == right, str(verdict)
