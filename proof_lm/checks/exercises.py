"""The student's side of an exercise: check an answer, ask for a hint, see the progress, at last the solution."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from proof_lm.checks.core import SEED, Property, PropertyFailed, find_all, telling_numbers
from proof_lm.checks.progress import Progress
from proof_lm.checks.solutions import written_solution

# Modules of proof_lm.checks that define EXERCISES.
PROBLEM_SETS = ("p4", "p4_numpy_block", "p4_torch_block", "p4_backward", "p4_variants", "p5")
COURSE = Path(__file__).parents[2]  # the folder that holds proof_lm
_passed: dict[str, bool] = {}  # in this session: exercise -> its public properties all hold


@dataclass(frozen=True)
class PublicExercise:
    """What a student may know of an exercise: its public properties and three hints, each for a symptom."""

    id: str  # "P4.1"
    name: str  # the function or class that the student writes, or several: "row_softmax, causal_mask"
    properties: tuple[Property, ...]
    hints: tuple[tuple[str, str], ...]  # (the symptom, the help)


@cache
def exercises(problem_set: str) -> dict[str, PublicExercise]:
    """The exercises of one problem set by id, in order."""
    module = importlib.import_module(f"proof_lm.checks.{problem_set}")
    return {exercise.id: exercise for exercise in module.EXERCISES}


def _exercise(exercise_id: str) -> PublicExercise:
    known = [exercise for name in PROBLEM_SETS for exercise in exercises(name).values()]
    for exercise in known:
        if exercise.id == exercise_id:
            return exercise
    raise KeyError(f"exercise {exercise_id!r} is unknown; choose from {', '.join(e.id for e in known)}")


def check(exercise_id: str, *functions: Callable) -> None:
    """Check an answer on the public cases: print each property that holds, show each that fails.

    Raises PropertyFailed (one line, no traceback) when any fails or not all functions of the exercise are given,
    and KeyError for an unknown exercise.
    """
    exercise = _exercise(exercise_id)
    names = exercise.name.split(", ")
    if len(functions) != len(names):
        raise PropertyFailed(f'{exercise_id} asks for {len(names)}: check("{exercise_id}", {exercise.name})')
    candidate = functions if len(functions) > 1 else functions[0]
    failed = 0
    with telling_numbers():
        found = find_all(exercise.properties, candidate, SEED)
    for prop, (finding, count) in zip(exercise.properties, found, strict=True):
        if finding and "raised NotImplementedError" in finding.detail:
            name = names[prop.item or 0]
            raise PropertyFailed(f"{exercise_id} {name}: not written yet (it raises NotImplementedError)")
        if finding:
            failed += 1
            _display(finding)
        else:
            print(f"  holds: {prop.name} ({count} {'case' if count == 1 else 'cases'})")
    _passed[exercise_id] = not failed
    title, total = f"{exercise_id} {exercise.name}", len(exercise.properties)
    if failed:
        symptoms = "; ".join(f"{step} if {symptom}" for step, (symptom, _) in enumerate(exercise.hints, start=1))
        helps = f'hint("{exercise_id}", n) helps: {symptoms}'
        raise PropertyFailed(f"{title}: {failed} of {total} properties fail; {helps}")
    print(f"{title}: all {total} public properties hold; grading uses other, secret cases")


def _display(shown: object) -> None:
    """As HTML and text in a notebook, as text elsewhere."""
    try:
        shell = get_ipython()  # type: ignore[name-defined]
    except NameError:
        print(shown)
        return
    from IPython.display import display

    display(shown) if shell.has_trait("kernel") else print(shown)


def hint(exercise_id: str, step: int) -> None:
    """Print hint 1, 2 or 3 of an exercise; ValueError for another step, KeyError for another exercise."""
    hints = _exercise(exercise_id).hints
    if step not in range(1, len(hints) + 1):
        raise ValueError(f"step: hints of {exercise_id} are numbered 1 to {len(hints)}, got {step}")
    symptom, help_text = hints[step - 1]
    print(f"{exercise_id}, hint {step} of {len(hints)}: {symptom}\n{help_text}")


def progress(problem_set: str = "") -> None:
    """Show which exercises of a set, or of all sets, passed their public check in this session: a line and a bar.

    Raises KeyError for an unknown set.
    """
    if problem_set and problem_set not in PROBLEM_SETS:
        raise KeyError(f"problem set {problem_set!r} is unknown; choose from {', '.join(PROBLEM_SETS)}")
    names = [problem_set] if problem_set else PROBLEM_SETS
    _display(Progress({name: {key: bool(_passed.get(key)) for key in exercises(name)} for name in names}))


def solution(exercise_id: str) -> None:
    """Print the solution of an exercise, where the course's files hold one; else one line says when they will.

    An instructor has it in source/, a student in solutions/ after the deadline. Raises KeyError for an unknown exercise.
    """
    exercise = _exercise(exercise_id)
    name = next(name for name in PROBLEM_SETS if exercise_id in exercises(name))
    print(written_solution(COURSE, name, exercise) or f"{exercise_id}: the solution opens after the deadline; "
          f"until then, hint(\"{exercise_id}\", 1) to hint(\"{exercise_id}\", {len(exercise.hints)})")  # fmt: skip
