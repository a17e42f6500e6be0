"""Properties of functions that judge or choose: how a case was made tells what is right in it."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.random import Generator

from proof_lm.checks.core import Case, Mistake, Property, kind, own_answers
from proof_lm.probes import Answer

Made = list[tuple[tuple, Any]]  # (arguments of the probe, what is right about them)
Compare = Callable[[Any, Any], str | None]  # (value, right) -> what is wrong with the value


def decides(
    name: str,
    meaning: str,
    clue: str,
    *,
    probe: str,
    makers: dict[str, Callable[[Generator], Made]],
    compare: Compare,
    lesson: str,
    mistakes: tuple[Mistake, ...] = (),
) -> Property:
    """The candidate decides every call rightly and leaves its arguments alone.

    `makers` makes the calls of one case by its label; `clue` tells what to look at when a decision is wrong. A mistake
    is named when it decides all calls of all properties with mistakes of the exercise as the candidate does.
    """

    def cases(rng: Generator) -> list[Case]:
        drawn = [(label, make(rng)) for label, make in makers.items()]
        return [
            Case(label, tuple(call for call, _ in made), probe, [right for _, right in made])
            for label, made in drawn
        ]

    def judge(case: Case, answers: Sequence[Answer]) -> str | None:
        for answer in answers:
            if answer.error:
                return f"a result was expected, your code raised {answer.error}"
            if answer.changed:
                return "an argument was changed in place; work on a copy"
        wrong = [compare(answer.value, right) for answer, right in zip(answers, case.facts, strict=True)]
        return next((f"{text}; {clue}" for text in wrong if text), None)

    together = bool(mistakes)
    return Property(
        name, meaning, cases, judge, "exact", lesson, mistakes, judges_errors=True, explains=_same_said, together=together
    )


def _same_said(mistake: Mistake, case: Case, answers: list[Answer]) -> bool:
    """Whether the mistake says the same in this case. What is no answer is no mistake of judgement."""
    return all(
        not (given.error or given.changed or planted.error) and _plain(given.value) == _plain(planted.value)
        for given, planted in zip(answers, own_answers(mistake.candidate, case), strict=True)
    )


def _plain(value: Any) -> Any:
    """Truths as bool, one by one; a text as it is; None for anything else."""
    if isinstance(value, str):
        return value
    if isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim):
        return [truth(item) for item in value]
    return truth(value)


def truth(value: Any) -> bool | None:
    """A bool, NumPy bool, one-element array of bool, 0 or 1 as a bool; None for anything else."""
    if not isinstance(value, (bool, int, np.ndarray, np.generic)):
        return None
    array = np.asarray(value)
    return (
        bool(array.item())
        if array.size == 1 and array.dtype.kind in "bi" and array.item() in (0, 1)
        else None
    )


def is_truth(value: Any, right: bool) -> str | None:
    """Compare for a function that answers True or False."""
    said = truth(value)
    if said is None:
        return f"True or False was expected, {kind(value)} came"
    return None if said == right else f"{right} was expected, {said} came"
