"""What a student is shown: findings, hints, progress and, after the deadline, solutions; and where findings point."""

import json
import re
from pathlib import Path

import nbformat
import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell

from grading.edition import edition
from grading.exercises import PROBLEM_SETS, exercises
from proof_lm.checks import Case, Mistake, PropertyFailed, check, hint, matches, progress, solution
from proof_lm.checks import exercises as students
from proof_lm.checks.core import Finding, difference, find, telling_numbers
from proof_lm.checks.general import on_any_numbers
from proof_lm.checks.progress import Progress
from tests.mutants import answers

ROOT = Path(__file__).parents[1]
GRADED = {key: exercise for name in PROBLEM_SETS for key, exercise in exercises(name).items()}
PUBLIC = {key: exercise for name in PROBLEM_SETS for key, exercise in students.exercises(name).items()}


@pytest.fixture(scope="module")
def headings() -> dict[str, set[str]]:
    """The headings of each lesson by its number."""
    found = {}
    for path in sorted((ROOT / "course").glob("*.ipynb")):
        text = "\n".join(c.source for c in nbformat.read(path, as_version=4).cells if c.cell_type == "markdown")
        found[path.name[:2]] = {heading.lower() for heading in re.findall(r"^#+ +(.+?) *$", text, re.MULTILINE)}
    return found


@pytest.mark.parametrize("exercise_id", GRADED)
def test_every_property_points_to_a_heading_of_a_lesson(exercise_id, headings):
    properties = [part.property for part in GRADED[exercise_id].parts] + list(PUBLIC[exercise_id].properties)
    for prop in properties:
        lesson, place = re.fullmatch(r"lesson (\d\d), (.+)", prop.lesson).groups()
        places = re.fullmatch(r"from (.+) to (.+)", place)
        assert lesson in headings, f"{prop.name}: there is no lesson {lesson}"
        for heading in places.groups() if places else [place]:
            assert heading.lower() in headings[lesson], f"{prop.name}: {prop.lesson}"


@pytest.mark.parametrize("exercise_id", GRADED)
def test_the_public_and_the_graded_exercise_have_the_same_properties(exercise_id):
    graded, public = GRADED[exercise_id], PUBLIC[exercise_id]
    assert (graded.name, len(public.hints)) == (public.name, 3)
    assert [part.property.name for part in graded.parts] == [prop.name for prop in public.properties]


@pytest.mark.parametrize("exercise_id", GRADED)
def test_a_finding_says_what_it_means_where_it_shows_and_where_to_read(exercise_id):
    wrong = next(answer for answer in answers() if answer.exercise == exercise_id and answer.wrong)
    findings = [find(prop, wrong.candidate())[0] for prop in PUBLIC[exercise_id].properties]
    shown = [finding for finding in findings if finding]
    assert shown
    for finding in shown:
        keys = [key for key, _ in finding.lines()]
        assert keys[:4] == ["fails", "means", "case", "found"] and keys[-1] == "see"
        html = finding._repr_html_()
        assert finding.property in html.replace("&#x27;", "'") and "<script" not in html


def test_a_finding_is_html_and_text_and_what_a_student_wrote_is_no_markup():
    finding = Finding("rows <i>", "a < b", "T = 5", "your code raised ValueError: <script>alert(1)</script>", "", "")
    data, _ = InteractiveShell.instance().display_formatter.format(finding)
    assert {"text/plain", "text/html"} <= set(data)
    assert data["text/plain"] == str(finding) and "fails: rows <i>" in data["text/plain"]
    assert "<script" not in data["text/html"] and "<i>" not in data["text/html"]


def third(values, gamma, beta, epsilon=1e-5):
    return np.asarray(values) * 0.37


def test_no_finding_on_secret_cases_holds_an_expected_number():
    shown = str(GRADED["P4.8"].grade(third, seed=5))
    assert "a negative number was expected" in shown or "a positive number was expected" in shown
    assert not re.search(r"\d\.\d{4,}", shown)


def test_a_finding_on_visible_cases_holds_both_numbers_and_the_hints_go_by_symptom(capsys):
    with pytest.raises(PropertyFailed, match="properties fail") as failure:
        check("P4.8", third)
    assert re.search(r"-?\d\.\d+ was expected, -?\d\.\d+ came", capsys.readouterr().out)
    for step, (symptom, _) in enumerate(PUBLIC["P4.8"].hints, start=1):
        assert f"{step} if {symptom}" in str(failure.value)


@pytest.mark.parametrize(
    ("came", "wanted", "text"),
    [
        (0.5, 2.0, "2 was expected, 0.5 came"),
        (np.float64(1.00001), 1.0, "1 was expected, 1.00001 came"),
        (np.nan, 0.25, "0.25 was expected, NaN came"),
        ([1.0, 3.0], [1.0, 2.0], "entry [1]: 2 was expected, 3 came (1 of 2 entries are wrong)"),
    ],
)
def test_numbers_are_told_in_as_few_digits_as_tell_them_apart(came, wanted, text):
    with telling_numbers():
        assert difference(np.asarray(came), np.asarray(wanted), 1e-9, 0) == text
    assert "another of the same kind" in difference(0.5, 2.0, 0, 0)


def test_what_any_cause_may_have_is_no_diagnosis():
    def breaks(values):
        raise ValueError

    mistake = Mistake("refuses", "it refuses", breaks)
    prop = matches(np.exp, lambda rng: [Case("one", ((rng.normal(size=3),),))], name="exp", meaning="", mistakes=(mistake,))
    finding, _ = find(prop, breaks)
    assert finding.detail.startswith("a result was expected, your code raised ValueError") and not finding.misconception


def test_the_form_of_the_arguments_is_judged_beside_the_students_own_result():
    prop = on_any_numbers(np.exp, lambda rng: (rng.normal(size=3),))
    assert find(prop, lambda values: np.asarray(values) * 3)[0] is None  # a wrong formula
    assert find(prop, lambda values: values * 3)[0].case == "first argument as a nested list"


def test_an_argument_changed_in_place_is_named():
    def spoils(parameters, gradients, state, *rest, **options):
        state["step"] += 1
        return parameters, state

    findings = GRADED["P5.2"].grade(spoils, seed=1).findings
    assert any(finding.detail.startswith("the argument state was changed in place") for finding in findings)


def test_progress_is_one_line_of_text_and_a_bar_of_boxes():
    some = Progress({"p4": {"P4.1": True, "P4.2": False}, "p5": {"P5.1": False}})
    assert str(some) == "all problem sets: 1 of 3 done | p4 1 of 2 | p5 0 of 1"
    assert str(Progress({"p4": {"P4.1": True}})) == "p4: 1 of 1 done | P4.1 done"
    data, _ = InteractiveShell.instance().display_formatter.format(some)
    assert data["text/plain"] == str(some)
    html = data["text/html"]
    assert html.count("inline-block") == 3 and html.count("&#10003;") == 1
    assert "<svg" not in html  # which JupyterLab would take out
    assert "aria-label='p4: 1 of 2 exercises done'" in html


def test_progress_counts_what_was_checked_in_this_session(capsys, monkeypatch):
    monkeypatch.setattr(students, "_passed", {})
    right = next(answer for answer in answers() if answer.exercise == "P4.2" and not answer.wrong)
    check("P4.2", right.candidate())
    capsys.readouterr()
    progress("p4")
    assert capsys.readouterr().out == "p4: 1 of 3 done | P4.1 open | P4.2 done | P4.3 open\n"
    progress()
    shown = capsys.readouterr().out
    assert shown.startswith(f"all problem sets: 1 of {len(PUBLIC)} done | p4 1 of 3 | ") and shown.count("\n") == 1
    with pytest.raises(KeyError, match="unknown; choose from p4,"):
        progress("p44")


@pytest.mark.parametrize("exercise_id", GRADED)
def test_an_instructor_sees_the_solution_and_it_earns_full_marks(exercise_id, capsys):
    solution(exercise_id)
    shown = capsys.readouterr().out
    assert "SOLUTION" not in shown and "NotImplementedError" not in shown
    for name in GRADED[exercise_id].names:
        assert re.search(rf"^(def|class) {name}\b", shown, re.MULTILINE)


@pytest.mark.parametrize("exercise_id", GRADED)
def test_students_see_one_line_until_the_solutions_are_handed_out(exercise_id, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(students, "COURSE", tmp_path)
    solution(exercise_id)
    assert re.fullmatch(rf'{exercise_id}: the solution opens after the deadline; .*hint\("{exercise_id}", 3\)\n',
                        capsys.readouterr().out)  # fmt: skip
    name = next(name for name in PROBLEM_SETS if exercise_id in exercises(name))
    handed_out = tmp_path / "solutions" / name / f"{name}.ipynb"
    handed_out.parent.mkdir(parents=True)
    marks = {"nbgrader": {"grade_id": exercise_id.replace(".", "_") + "-code"}}
    cell = {"cell_type": "code", "metadata": marks, "source": "### BEGIN SOLUTION\nx = 1\n### END SOLUTION"}
    handed_out.write_text(json.dumps({"cells": [cell]}), encoding="utf-8")
    solution(exercise_id)
    assert capsys.readouterr().out == "x = 1\n"


def test_what_a_student_or_a_submission_is_given_holds_no_solution():
    files = [*(ROOT / "proof_lm" / "checks").rglob("*.py"), *(edition(("model",))).rglob("*.py")]
    assert not [path for path in files if "BEGIN SOLUTION" in path.read_text(encoding="utf-8")]
    source = (edition(("model",)) / "checks.py").read_text(encoding="utf-8")
    assert "solution" in source and "def check" in source


def test_wrong_names_and_steps_are_told_in_one_line():
    with pytest.raises(ValueError, match="numbered 1 to 3, got 4"):
        hint("P4.5", 4)
    for call in (hint, check):
        with pytest.raises(KeyError, match=r"unknown; choose from P4\.1"):
            call("P9.9", 1)
    with pytest.raises(KeyError, match=r"unknown; choose from P4\.1"):
        solution("P9.9")


def test_the_committed_kill_table_has_every_exercise_and_every_answer():
    page = (ROOT / "docs" / "kill-table.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("| P")]
    assert [row[0] for row in rows] == list(GRADED), "stale: python -m tools.kill_table"
    for row in rows:
        mine = [answer for answer in answers() if answer.exercise == row[0]]
        wrong = sum(answer.wrong for answer in mine)
        claimed = sum(bool(answer.diagnosis) for answer in mine if answer.wrong)
        expected = [wrong, wrong, claimed, claimed, len(mine) - wrong, len(mine) - wrong]
        assert [int(cell) for cell in row[3:9]] == expected, f"{row[0]} stale: python -m tools.kill_table"
    named = int(re.search(r"^## The (\d+) mistakes", page, re.MULTILINE)[1])
    assert named >= 60
