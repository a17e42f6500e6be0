"""Every graded exercise, one module per problem set; the points and weights stand there and nowhere else.

What is here comes without importing them, which takes time.
"""

import importlib
import os
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the command line asks for the names of the sets before it imports what takes time
    from grading.exercise import Exercise

WITHHELD = {  # of each problem set, the modules of proof_lm that hold its answers: not to be had while it is graded
    "p4": (),
    "p4_numpy_block": ("attention", "block", "gradients", "model"),
    "p4_torch_block": ("model", "generation", "rotary", "training"),  # the NumPy functions may be imported
    "p4_backward": ("gradients", "model"),  # the forward functions may be imported
    "p4_variants": ("model", "generation", "rotary", "training"),
    "p5": ("training", "generation", "model", "rotary", "block", "gradients"),
}
PROBLEM_SETS = tuple(WITHHELD)


@cache
def exercises(problem_set: str) -> "dict[str, Exercise]":
    """The graded exercises of a problem set by id. Raises ModuleNotFoundError for an unknown set."""
    module = importlib.import_module(f"grading.exercises.{problem_set}")
    return {exercise.id: exercise for exercise in module.EXERCISES}


def find(exercise_id: str) -> "Exercise":
    """The exercise with this id; KeyError naming the known ones when there is none."""
    known = {key: exercise for name in PROBLEM_SETS for key, exercise in exercises(name).items()}
    if exercise_id not in known:
        raise KeyError(f"exercise {exercise_id!r} is unknown; choose from {', '.join(known)}")
    return known[exercise_id]


def grade(exercise_id: str, *functions: Callable) -> float:
    """Grade in this process: print the verdict and return the points, as a test cell's last expression.

    The seed is PROOFLM_SEED from the environment, 0 without it: enough to see that a solution passes. Real
    grading draws its own secret seed and keeps the verdict outside the student's process.
    """
    candidate = functions if len(functions) > 1 else functions[0]
    verdict = find(exercise_id).grade(candidate, int(os.environ.get("PROOFLM_SEED", "0")))
    print(verdict)
    return verdict.points
