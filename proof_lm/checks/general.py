"""Properties that make sense for any function: equal to a reference, repeatable, arguments left alone."""

from collections.abc import Callable, Sequence

import numpy as np

from proof_lm.checks.core import Case, Mistake, Property, difference, kind, own_answers
from proof_lm.probes import Answer

Cases = Callable[[np.random.Generator], Sequence[Case]]


def matches(
    reference: Callable,
    cases: Cases,
    *,
    name: str,
    meaning: str,
    rtol: float = 1e-6,
    atol: float = 1e-9,
    tolerance: str = "rtol 1e-6, atol 1e-9: float64 rounding of a few hundred terms, far below any mistake",
    lesson: str = "",
    mistakes: tuple[Mistake, ...] = (),
    item: int | None = None,
) -> Property:
    """The candidate's results, or one item of each, equal those of `reference` within the tolerance."""

    def judge(case: Case, values: list) -> str | None:
        wanted = [answer.value for answer in own_answers(reference, case)]
        pairs = list(zip(values, wanted, strict=True))
        if item is not None:
            odd = [v for v, w in pairs if not isinstance(v, (tuple, list)) or len(v) != len(w)]
            if odd:
                return f"{len(wanted[0])} results were expected, {kind(odd[0])} came"
            pairs = [(value[item], want[item]) for value, want in pairs]
        found = (difference(value, want, rtol, atol) for value, want in pairs)
        return next((text for text in found if text), None)

    return Property(name, meaning, cases, judge, tolerance, lesson, mistakes)


def refuses(cases: Cases, *, error: str, name: str, meaning: str, lesson: str = "") -> Property:
    """Every call raises an error of the type named `error`."""

    def judge(case: Case, answers: list[Answer]) -> str | None:
        for answer in answers:
            if not answer.error:
                return f"{error} was expected, a result came"
            if answer.error.partition(":")[0] != error:
                return f"{error} was expected, {answer.error} came"
        return None

    return Property(name, meaning, cases, judge, lesson=lesson, judges_errors=True)


def leaves_inputs_alone(cases: Cases, lesson: str = "") -> Property:
    """No argument is changed in place."""

    def judge(case: Case, answers: list[Answer]) -> str | None:
        for answer in answers:
            if answer.error:
                return f"a result was expected, your code raised {answer.error}"
            if answer.changed:
                return f"argument {answer.changed[0] + 1} was changed in place; work on a copy"
        return None

    meaning = "A caller's arrays are the same after the call as before it."
    name = "arguments are left unchanged"
    return Property(name, meaning, cases, judge, lesson=lesson, judges_errors=True, manners=True)


def repeats(cases: Cases, lesson: str = "") -> Property:
    """Two calls with equal arguments give equal results, bit for bit."""

    def judge(case: Case, answers: list[Answer]) -> str | None:
        for answer in answers:
            if answer.error:
                return f"a result was expected, your code raised {answer.error}"
            if not answer.repeats:
                return "a second call with the same arguments gave another result: state is kept or drawn anew"
        return None

    meaning = "The result depends on the arguments alone."
    name = "same arguments, same result"
    return Property(name, meaning, cases, judge, lesson=lesson, judges_errors=True, manners=True)
