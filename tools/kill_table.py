"""Write docs/kill-table.md: `python -m tools.kill_table`.

What the grader makes of every wrong and right answer in tests/mutants/, exercise by exercise.
"""

import io
from collections.abc import Iterable
from contextlib import redirect_stdout
from pathlib import Path

from grading.exercises import PROBLEM_SETS, exercises
from tests.mutants import Answer, answers

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "kill-table.md"
SEED = 2024
HEAD = """# Kill table: the grader against wrong and right answers

Written by `python -m tools.kill_table` (seed {seed}). `tests/mutants/` holds the answers as a student would type
them; `tests/test_mutants.py` asserts the same on every run, over other seeds. *Killed* means that a wrong answer
lost points, *named* that its findings told the mistake by name (of the answers for which that is claimed), *kept*
that a right but unusual answer kept full marks.

| exercise | writes | points | wrong | killed | named | right | kept |
|---|---|---:|---:|---:|---:|---:|---:|
"""


def row(exercise_id: str, name: str, points: float, mine: Iterable[Answer]) -> tuple[str, list[int]]:
    """One line of the table, and its numbers."""
    wrong = killed = claimed = named = right = kept = 0
    for answer in mine:
        with redirect_stdout(io.StringIO()):  # some answers print
            verdict = EXERCISES[exercise_id].grade(answer.candidate(), SEED)
        if answer.wrong:
            wrong += 1
            killed += verdict.points < verdict.max_points
            claimed += bool(answer.diagnosis)
            named += bool(answer.diagnosis) and answer.diagnosis in str(verdict)
        else:
            right += 1
            kept += verdict.points == verdict.max_points
    numbers = [wrong, killed, named, claimed, right, kept]
    return f"| {exercise_id} | `{name}` | {points:g} | {_cells(numbers)} |", numbers


def _cells(numbers: list[int]) -> str:
    wrong, killed, named, claimed, right, kept = numbers
    return f"{wrong} | {killed} | {named} of {claimed} | {right} | {kept}"


def mistakes() -> list[str]:
    """Every planted mistake that the checks recognise, once."""
    properties = [part.property for exercise in EXERCISES.values() for part in exercise.parts]
    return sorted({mistake.message for prop in properties for mistake in prop.mistakes})


EXERCISES = {key: exercise for name in PROBLEM_SETS for key, exercise in exercises(name).items()}


def main() -> None:
    """Grade every answer and write the page."""
    rows, total = [], [0] * 6
    for key, exercise in EXERCISES.items():
        text, numbers = row(key, exercise.name, exercise.points, [a for a in answers() if a.exercise == key])
        rows.append(text)
        total = [a + b for a, b in zip(total, numbers, strict=True)]
    points = sum(exercise.points for exercise in EXERCISES.values())
    rows.append(f"| **all** | | {points:g} | {_cells(total)} |")
    known = mistakes()
    tail = [f"\n## The {len(known)} mistakes that a finding names\n", *(f"- {text}" for text in known)]
    PAGE.write_text(HEAD.format(seed=SEED) + "\n".join([*rows, *tail]) + "\n", encoding="utf-8")
    print(rows[-1])


if __name__ == "__main__":
    main()
