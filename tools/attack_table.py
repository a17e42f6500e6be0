"""Write docs/attack-table.md: `python -m tools.attack_table`.

Grades the class of attackers in tests/attacks/ and says what each of them came to.
"""

import os
import platform
import tempfile
from collections import Counter
from importlib.metadata import version
from pathlib import Path

from tests.attacks.graded_class import FULL, HONEST, SET, TITLES, GradedClass

PAGE = Path(__file__).parents[1] / "docs" / "attack-table.md"
KINDS = {
    "forging": "points that the answers do not earn",
    "form": "the notebook's own form, and the files beside it",
    "leaks": "secrets: source, classmates, gradebook, the machine, hidden inputs",
    "host": "the grader's machine, and what outlives the run",
    "resources": "memory, time, processes, files, output",
    "feedback": "whoever opens what was graded",
}
HEAD = """# Attack table: {count} hostile submissions

Written by `python -m tools.attack_table`, which hands in all of them to `{set}` together with honest work and grades
the class in one run; `tests/attacks/test_attacks.py` asserts the same on every run. The attacks in code stand in
`tests/attacks/*_code.py`, those on form and files in `tests/attacks/surgery.py`. This run: {isolation} kernels,
Python {python}, nbgrader {nbgrader}, {system}.

*Graded*: the run came to a grade, no failure of the grader's. *Points*: empty work earns 0 of {full:g}. *Secrets*:
whether one stands in what was written for the student. *Live*: whether the feedback page would run or load something.
`tests/attacks/test_forged_answers.py` tries besides what a process could send back in place of answers, and
`tests/sandbox/` the walls themselves.

| kind | aims at | attacks | graded | earned points | showed a secret | left a live page |
|---|---|---:|---:|---:|---:|---:|
"""
TAIL = """
Honest work in the same run: {honest}. Processes left running: {running}. Files written or changed
outside: {outside}.

| attack | what it does | graded | points | secrets | live |
|---|---|---|---:|---|---|
"""


def kind_of(student: str) -> str:
    """The kind of an attack by the name of who hands it in, as in "leaks-07"."""
    return student.partition("-")[0]


def main() -> None:
    """Grade the class and write the page."""
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        graded = GradedClass(Path(folder))
        os.chdir(here)
        PAGE.write_text(page(graded), encoding="utf-8")
    print(f"{PAGE}: {len(TITLES)} attacks, {sum(graded.scores[student] > 0 for student in TITLES)} earned points")


def page(graded: GradedClass) -> str:
    """The whole page."""
    head = HEAD.format(
        count=len(TITLES), set=SET, full=FULL, isolation=" and ".join(sorted(isolations(graded))),
        python=platform.python_version(), nbgrader=version("nbgrader"), system=platform.system(),
    )  # fmt: skip
    columns = {"graded": Counter(), "earned": Counter(), "showed": Counter(), "live": Counter()}
    rows = []
    for student, title in TITLES.items():
        found = {
            "graded": graded.was_graded(student),
            "earned": graded.scores.get(student, 0) > 0,
            "showed": graded.shows_secrets(student),
            "live": graded.has_live_page(student),
        }
        for name, holds in found.items():
            columns[name][kind_of(student)] += holds
        words = ["yes" if found["graded"] else "**no**", f"{graded.scores.get(student, 0):g}"]
        words += ["**shown**" if found["showed"] else "none", "**yes**" if found["live"] else "no"]
        rows.append(f"| {student} | {title} | {' | '.join(words)} |")
    counts = Counter(map(kind_of, TITLES))
    table = [
        f"| {kind} | {aim} | {counts[kind]} | {' | '.join(str(column[kind]) for column in columns.values())} |"
        for kind, aim in KINDS.items()
    ]
    totals = " | ".join(str(column.total()) for column in columns.values())
    table.append(f"| **all** | | {len(TITLES)} | {totals} |")
    kept = sum(graded.scores[student] == FULL for student in HONEST)
    tail = TAIL.format(
        honest=f"{kept} of {len(HONEST)} kept all {FULL:g} points", running=len(graded.left_running()),
        outside=len(graded.written_outside()),
    )  # fmt: skip
    return head + "\n".join(table) + "\n" + tail + "\n".join(rows) + "\n"


def isolations(graded: GradedClass) -> set[str]:
    """How kernels were shut in."""
    return {step.isolation for step in graded.steps.values() if step.isolation}


if __name__ == "__main__":
    main()
