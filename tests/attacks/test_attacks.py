"""One class of attackers and honest students, graded in one run; then each is looked at."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from bs4 import BeautifulSoup
from nbgrader.api import Gradebook
from nbgrader.converters import GenerateFeedback
from traitlets.config import Config

from grading.engine import cluster, run_class
from grading.execute import Limits
from grading.grade import Task
from grading.nbgrader_classes import SafeAutograde, course
from grading.sandbox import Policy
from grading.store import Store
from tests.attacks import CANARY, CodeAttack, code_attacks
from tests.attacks.surgery import SURGERIES, write

ROOT = Path(__file__).parents[2]
SET = "p4_backward"
FULL = 43.0
LIMITS = Limits(cell=4, probe=4, notebook=20)
POLICY = Policy(wall_seconds=40, cpu_seconds=30, memory_bytes=700 * 2**20, file_bytes=64 * 2**20)
HONEST = {f"honest-{place}": None for place in ("first", "middle", "zlast")}
CODE = {f"{attack.kind}-{number:03}": attack for number, attack in enumerate(code_attacks())}
FORM = {f"form-{number:03}": name for number, name in enumerate(SURGERIES)}


def named(student: str) -> str:
    return f"{student}: {CODE[student].name if student in CODE else FORM[student]}"


class Class:
    """The graded class and everything that was written for it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for kind in ("source", "release"):
            shutil.copytree(ROOT / kind / SET, root / kind / SET)
        solved = json.loads((root / "source" / SET / f"{SET}.ipynb").read_text())
        released = (root / "release" / SET / f"{SET}.ipynb").read_text()
        self._hand_in(
            "bob", lambda folder: (folder / f"{SET}.ipynb").write_text(released.replace("Your answer", CANARY))
        )
        for student in HONEST:
            self._hand_in(student, lambda folder: (folder / f"{SET}.ipynb").write_text(json.dumps(solved)))
        for student, attack in CODE.items():
            self._hand_in(student, lambda folder, a=attack: self._write_code(a, json.loads(released), folder))
        for student, name in FORM.items():
            self._hand_in(student, lambda folder, n=name: write(n, json.loads(released), folder))
        os.environ["PROOFLM_SECRET"] = CANARY
        (root / "canary.txt").write_text(CANARY)
        self._grade()

    def _hand_in(self, student: str, make) -> None:
        folder = self.root / "submitted" / student / SET
        folder.mkdir(parents=True)
        make(folder)

    def _write_code(self, attack: CodeAttack, notebook: dict, folder: Path) -> None:
        cell = {"cell_type": "code", "metadata": {}, "source": attack.source, "outputs": [], "execution_count": None}
        notebook["cells"].insert(1, cell)
        (folder / f"{SET}.ipynb").write_text(json.dumps(notebook))

    def _grade(self) -> None:
        command = [sys.executable, "-m", "nbgrader", "generate_assignment", SET, f"--course-dir={self.root}", "--force"]
        subprocess.run(command, cwd=ROOT, check=True)  # enters the assignment in the gradebook
        self.before = {process.pid for process in psutil.process_iter()}
        directory = course(self.root, SET)
        converter = SafeAutograde(coursedir=directory, policy=POLICY, limits=LIMITS)
        tasks: list[Task] = converter.tasks()
        with cluster(workers=2) as client:
            self.steps = {step.student: step for step in run_class(tasks, Store(self.root), client)}
        converter.start()
        feedback = GenerateFeedback(coursedir=course(self.root, SET), config=Config(GenerateFeedback={
            "exporter_class": "grading.feedback.InertFeedback"}))  # fmt: skip
        feedback.start()
        with Gradebook(f"sqlite:///{self.root / 'gradebook.db'}") as gradebook:
            self.scores = {s.student.id: s.score for s in gradebook.assignment_submissions(SET)}

    def page(self, student: str) -> str:
        return (self.root / "feedback" / student / SET / f"{SET}.html").read_text()

    def written(self, student: str) -> str:
        return (self.root / "autograded" / student / SET / f"{SET}.ipynb").read_text() + self.page(student)


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    before = Path.cwd()
    yield Class(tmp_path_factory.mktemp("course"))
    os.chdir(before)
    os.environ.pop("PROOFLM_SECRET", None)


@pytest.mark.parametrize("student", HONEST)
def test_honest_work_keeps_full_marks_in_the_same_run(graded, student):
    assert graded.scores[student] == FULL


@pytest.mark.parametrize("student", [*CODE, *FORM], ids=named)
class TestAttack:
    def test_is_graded_and_earns_no_more_than_empty_work(self, graded, student):
        assert not graded.steps[student].failure
        assert graded.scores[student] == 0

    def test_shows_no_secret(self, graded, student):
        own = json.dumps(CODE[student].source)[1:-1] if student in CODE else ""
        written = graded.written(student).replace(own, "")
        page = BeautifulSoup(graded.page(student), "html.parser")
        outputs = "".join(element.get_text() for element in page.select(".jp-OutputArea, .output_wrapper, .output"))
        assert CANARY not in outputs
        assert f"'{CANARY}'" not in written.replace(f"{CANARY} ", "")
        assert "HIDDEN-INPUT" not in outputs

    def test_leaves_a_page_that_runs_nothing(self, graded, student):
        page = BeautifulSoup(graded.page(student), "html.parser")
        assert not page.select("script, iframe, object, embed, form, base, svg[onload], meta[http-equiv=refresh i]")
        assert not [e for e in page.find_all(True) if any(name.lower().startswith("on") for name in e.attrs)]


def test_nothing_is_left_running(graded):
    students = [p for p in psutil.process_iter(["pid", "cmdline"]) if p.pid not in graded.before]
    assert not [p.info for p in students if p.info["cmdline"] and "inside.py" in " ".join(p.info["cmdline"])]


def test_nothing_was_written_outside(graded):
    assert (graded.root / "canary.txt").read_text() == CANARY
    assert not list(Path("/tmp").glob("owned*"))
    assert sorted(path.name for path in graded.root.iterdir()) == sorted(
        [".prooflm", "autograded", "canary.txt", "feedback", "gradebook.db", "release", "source", "submitted"]
    )


def test_there_are_a_hundred_attacks():
    assert len(CODE) + len(FORM) >= 100
