"""What the exercises of the set share: a tolerance, one item of several, one function of several."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from proof_lm.checks.core import Case, Mistake, Property, own_answers, same
from proof_lm.checks.general import Cases, matches
from proof_lm.probes import Answer

CLOSE = {
    "rtol": 1e-5,
    "atol": 1e-6,
    "tolerance": "1e-5 of each number, compared in float64: room for a float32 answer",
}


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
