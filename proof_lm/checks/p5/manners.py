"""What is asked of every function of the set: no argument changed, the same twice, any kind of numbers."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.random import Generator

from proof_lm.checks.core import Case, Mistake, Property, own_answers, same
from proof_lm.checks.general import Cases, leaves_inputs_alone, matches, repeats
from proof_lm.probes import Answer

CLOSE = {
    "rtol": 1e-5,
    "atol": 1e-6,
    "tolerance": "1e-5 of each number, compared in float64: room for a float32 answer",
}


def behaves(name: str, cases: Cases, lesson: str) -> Property:
    """No argument is changed, and a second call gives the same."""
    alone, again = leaves_inputs_alone(cases, lesson), repeats(cases, lesson)
    return replace(
        alone,
        name=f"{name} changes no argument and gives the same twice",
        meaning="A caller's arrays stay as they were, and the result depends on the arguments alone.",
        judge=lambda case, answers: alone.judge(case, answers) or again.judge(case, answers),
    )


def any_numbers(draw: Callable[[Generator], tuple]) -> Cases:
    """The same call with its first argument as a nested list, with float32 arrays, with gaps in memory."""

    def cases(rng: Generator) -> list[Case]:
        first, *rest = draw(rng)
        plain = (first, *rest)
        return [
            Case("first argument as a nested list", ((first.tolist(), *rest),)),
            Case("float32 and int32 arrays", (_single(plain),)),
            Case("arrays with gaps in memory", (plain,), "call_strided"),
        ]

    return cases


def _single(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(map(_single, value))
    if not isinstance(value, np.ndarray):
        return value
    return value.astype({"f": np.float32, "i": np.int32}.get(value.dtype.kind, value.dtype))


def one_of(item: int, reference: Callable, cases: Cases, **about: Any) -> Property:
    """`matches` for one item of several that a call gives: a mistake explains it if that item is the same."""

    def explains(mistake: Mistake, case: Case, given: list[Answer]) -> bool:
        planted = own_answers(mistake.candidate, case)
        return not any(answer.error for answer in (*planted, *given)) and all(
            same(theirs.value[item], ours.value[item]) for theirs, ours in zip(given, planted, strict=True)
        )

    return replace(matches(reference, cases, item=item, **about), explains=explains)


def about(item: int, properties: Sequence[Property]) -> tuple[Property, ...]:
    """Properties of the function at this place of an exercise with several."""
    return tuple(replace(prop, item=item) for prop in properties)
