"""One class of attackers and honest students, graded in one run in a folder of its own."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
from bs4 import BeautifulSoup
from nbgrader.api import Gradebook
from nbgrader.converters import GenerateFeedback
from traitlets.config import Config

from grading.course import course
from grading.engine import cluster, run_class
from grading.execution import Limits
from grading.nbgrader_classes import SafeAutograde
from grading.sandbox import Policy
from grading.store import Store
from tests.attacks import CANARY, CodeAttack, code_attacks
from tests.attacks.surgery import SURGERIES, write

ROOT = Path(__file__).parents[2]
SET = "p4_backward"
FULL = 43.0
LIMITS = Limits(cell=4, probe=4, notebook=20)
POLICY = Policy(wall_seconds=40, cpu_seconds=30, memory_bytes=700 * 2**20, file_bytes=64 * 2**20)
HONEST = tuple(f"honest-{place}" for place in ("first", "middle", "last"))
# by students' names: attackers get less time than usual, since many use all that there is
TERMS = {"honest-*": (Limits(), Policy()), "[!h]*": (LIMITS, POLICY), "host-*": (LIMITS, POLICY)}


def _attacks() -> tuple[dict[str, CodeAttack], dict[str, str]]:
    """Attacks in code and those on the notebook's form, by the student who hands them in."""
    code: dict[str, CodeAttack] = {}
    for attack in code_attacks():
        number = sum(other.kind == attack.kind for other in code.values()) + 1
        code[f"{attack.kind}-{number:02}"] = attack
    return code, {f"form-{number:02}": name for number, name in enumerate(SURGERIES, start=1)}


CODE, FORM = _attacks()
TITLES = {student: attack.name for student, attack in CODE.items()} | FORM


class GradedClass:
    """The graded class, everything that was written for it, and what each attack came to."""

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
        converters = [
            SafeAutograde(coursedir=course(self.root, SET, students), limits=limits, policy=policy)
            for students, (limits, policy) in TERMS.items()
        ]
        tasks = sorted((task for converter in converters for task in converter.tasks()), key=lambda task: task.student)
        with cluster(workers=3) as client:  # most of them wait for a limit
            self.steps = {step.student: step for _, step in run_class(tasks, Store(self.root), client)}
        for converter in converters:
            converter.start()
        feedback = GenerateFeedback(coursedir=course(self.root, SET), config=Config(GenerateFeedback={
            "exporter_class": "grading.feedback.InertFeedback"}))  # fmt: skip
        feedback.start()
        with Gradebook(f"sqlite:///{self.root / 'gradebook.db'}") as gradebook:
            self.scores = {s.student.id: s.score for s in gradebook.assignment_submissions(SET)}

    def page(self, student: str) -> BeautifulSoup:
        """The feedback page."""
        html = (self.root / "feedback" / student / SET / f"{SET}.html").read_text()
        return BeautifulSoup(html, "html.parser")

    def was_graded(self, student: str) -> bool:
        """Whether the submission has a grade, and its failure to run was its own."""
        return not self.steps[student].failure and student in self.scores

    def shows_secrets(self, student: str) -> bool:
        """Whether a secret stands in what was written, but for the attack's own text."""
        own = json.dumps(CODE[student].source)[1:-1] if student in CODE else ""
        notebook = (self.root / "autograded" / student / SET / f"{SET}.ipynb").read_text()
        page = self.page(student)
        outputs = "".join(element.get_text() for element in page.select(".jp-OutputArea, .output_wrapper, .output"))
        outputs += "".join(json.dumps(cell.get("outputs", [])) for cell in json.loads(notebook)["cells"])
        written = (notebook + str(page)).replace(own, "")
        secret = f"'{CANARY}'" in written.replace(f"{CANARY} ", "")
        return secret or CANARY in outputs or "HIDDEN-INPUT" in outputs

    def has_live_page(self, student: str) -> bool:
        """Whether something on the feedback page would run or load."""
        page = self.page(student)
        live = page.select("script, iframe, object, embed, form, base, svg[onload], meta[http-equiv=refresh i]")
        return bool(live) or any(name.lower().startswith("on") for e in page.find_all(True) for name in e.attrs)

    def left_running(self) -> list[dict]:
        """Processes of sandboxes that are still there."""
        new = [p for p in psutil.process_iter(["pid", "cmdline"]) if p.pid not in self.before]
        return [p.info for p in new if "inside.py" in " ".join(p.info["cmdline"] or ())]

    def written_outside(self) -> list[str]:
        """Files that nobody should have written or changed."""
        known = {".prooflm", "autograded", "canary.txt", "feedback", "gradebook.db", "release", "source", "submitted"}
        odd = [str(path) for path in self.root.iterdir() if path.name not in known]
        odd += [] if (self.root / "canary.txt").read_text() == CANARY else ["canary.txt"]
        return odd + [str(path) for path in Path("/tmp").glob("owned*")]
