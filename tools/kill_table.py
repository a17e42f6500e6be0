"""Write docs/kill-table.md: `python -m tools.kill_table`.

What the grader makes of every wrong and right answer in tests/mutants/, exercise by exercise.
"""

import io
import warnings
from collections.abc import Iterable
from contextlib import redirect_stdout
from pathlib import Path

from grading.exercise import Exercise
from grading.exercises import PROBLEM_SETS, exercises
from tests.mutants import Answer, answers

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "kill-table.md"
SEED = 2024
HEAD = """# Kill table: the grader against wrong and right answers

Written by `python -m tools.kill_table` (seed {seed}). `tests/mutants/` holds the answers as a student would type
them; `tests/test_mutants.py` asserts the same on every run, over other seeds.

| column | what it counts |
|---|---|
| wrong, killed | wrong answers, and those that lost points |
| claimed, named | wrong answers for which a diagnosis is claimed, and those whose findings gave it |
| right, kept | right but unusual answers, and those that kept full marks |
| mistakes | different sentences that a finding of this exercise can name as the likely mistake |

The grader is as it should be when killed equals wrong, named equals claimed and kept equals right.

| exercise | writes | points | wrong | killed | claimed | named | right | kept | mistakes |
|---|---|---:|---:|---:|---:|---:|---:|---:|---:|
"""
EXERCISES = {key: exercise for name in PROBLEM_SETS for key, exercise in exercises(name).items()}


def counts(exercise: Exercise, mine: Iterable[Answer]) -> list[int]:
    """wrong, killed, claimed, named, right, kept."""
    wrong = killed = claimed = named = right = kept = 0
    for answer in mine:
        with redirect_stdout(io.StringIO()), warnings.catch_warnings():  # some answers print, some warn
            warnings.simplefilter("ignore")
            verdict = exercise.grade(answer.candidate(), SEED)
        if answer.wrong:
            wrong += 1
            killed += verdict.points < verdict.max_points
            claimed += bool(answer.diagnosis)
            named += bool(answer.diagnosis) and answer.diagnosis in str(verdict)
        else:
            right += 1
            kept += verdict.points == verdict.max_points
    return [wrong, killed, claimed, named, right, kept]


def mistakes(*some: Exercise) -> list[str]:
    """Every planted mistake that the checks of these exercises recognise, once."""
    properties = [part.property for exercise in some for part in exercise.parts]
    return sorted({mistake.message for prop in properties for mistake in prop.mistakes})


def _row(*cells: object) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


def main() -> None:
    """Grade every answer and write the page."""
    rows, total = [], [0] * 6
    for key, exercise in EXERCISES.items():
        numbers = counts(exercise, [answer for answer in answers() if answer.exercise == key])
        rows.append(_row(key, f"`{exercise.name}`", f"{exercise.points:g}", *numbers, len(mistakes(exercise))))
        total = [a + b for a, b in zip(total, numbers, strict=True)]
    known = mistakes(*EXERCISES.values())
    points = sum(exercise.points for exercise in EXERCISES.values())
    rows.append(_row("**all**", "", f"{points:g}", *total, len(known)))
    tail = [f"\n## The {len(known)} mistakes that a finding names\n", *(f"- {text}" for text in known)]
    PAGE.write_text(HEAD.format(seed=SEED) + "\n".join([*rows, *tail]) + "\n", encoding="utf-8")
    print(rows[-1])


if __name__ == "__main__":
    main()
