"""The grader is tested: every wrong answer loses points, every right one keeps them, whatever the seed."""

import zlib
from itertools import chain, repeat

import pytest

from grading.exercises import PROBLEM_SETS, exercises, find
from proof_lm.checks.core import Property, draw_cases
from tests.mutants import Answer, answers

IDS = [exercise for name in PROBLEM_SETS for exercise in exercises(name)]
WRONG = [answer for answer in answers() if answer.wrong]
RIGHT = [answer for answer in answers() if not answer.wrong]
SEEDS = 50  # under which each exercise is graded with wrong answers, and with a right one


def named(answer: Answer) -> str:
    return f"{answer.exercise} {answer.name}"


def own_seed(answer: Answer) -> int:
    return zlib.crc32(answer.name.encode())


@pytest.mark.parametrize("answer", WRONG, ids=named)
def test_a_wrong_answer_loses_points_and_is_told_why(answer):
    """Under a seed of its own, and under so many more that all wrong answers to the exercise see 50 together."""
    exercise, seed = find(answer.exercise), own_seed(answer)
    verdict = exercise.grade(answer.candidate(), seed)
    assert verdict.points < verdict.max_points
    assert verdict.findings
    assert answer.diagnosis in str(verdict)
    beside = [other for other in WRONG if other.exercise == answer.exercise]
    for more in range(beside.index(answer) + len(beside), SEEDS, len(beside)):
        assert exercise.grade(answer.candidate(), seed + more).points < exercise.points, more


@pytest.mark.parametrize("answer", RIGHT, ids=named)
def test_a_right_answer_keeps_full_marks(answer):
    verdict = find(answer.exercise).grade(answer.candidate(), own_seed(answer))
    assert verdict.points == verdict.max_points, str(verdict)


@pytest.mark.parametrize("exercise_id", IDS)
def test_full_marks_do_not_depend_on_the_seed(exercise_id):
    exercise = find(exercise_id)
    right = next(answer for answer in RIGHT if answer.exercise == exercise_id)
    for seed in range(SEEDS):
        assert exercise.grade(right.candidate(), seed).points == exercise.points, seed


@pytest.mark.parametrize("exercise_id", IDS)
def test_every_exercise_has_wrong_and_right_answers(exercise_id):
    assert {answer.wrong for answer in answers() if answer.exercise == exercise_id} == {True, False}


@pytest.mark.parametrize("exercise_id", IDS)
def test_nothing_and_nonsense_earn_no_points(exercise_id):
    exercise = find(exercise_id)

    def raises(*arguments, **keywords):
        raise NotImplementedError

    several = len(exercise.names)
    for candidate in (raises, lambda *arguments, **keywords: None, None, 7):
        assert exercise.grade((candidate,) * several if several > 1 else candidate, seed=3).points == 0


@pytest.mark.parametrize("exercise_id", IDS)
def test_only_ever_raising_earns_no_points_whatever_is_raised(exercise_id):
    """One error alone is told as that; some parts want a ValueError."""
    exercise = find(exercise_id)
    kinds = chain([TypeError], repeat(ValueError))

    def raises(*arguments, **keywords):
        raise next(kinds)

    several = len(exercise.names)
    assert exercise.grade((raises,) * several if several > 1 else raises, seed=3).points == 0


def test_a_check_over_no_cases_is_an_error():
    nothing = Property("nothing", "Nothing is looked at.", lambda rng: [], lambda case, values: None)
    with pytest.raises(ValueError, match="no case to check"):
        draw_cases(nothing, 0)


def test_there_are_answers_enough_to_trust_the_grader():
    assert len(WRONG) >= 250 and len(RIGHT) >= 100
