"""Properties that make sense for any function: equal to a reference, repeatable, arguments left alone."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from proof_lm.checks.core import Case, Mistake, Property, difference, kind, own_answers
from proof_lm.probes import Answer, encode

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
    results: Sequence[str] = (),
) -> Property:
    """The candidate's results, or one item of each, equal those of `reference` within the tolerance.

    `results` names the items of each result for the reader. A mistake is named when it gives the same results, or the
    same item of each.
    """

    def judge(case: Case, values: list) -> str | None:
        wanted = [answer.value for answer in own_answers(reference, case)]
        pairs = list(zip(values, wanted, strict=True))
        if item is not None:
            odd = [v for v, w in pairs if not isinstance(v, (tuple, list)) or len(v) != len(w)]
            if odd:
                named = " and ".join(results) or f"{len(wanted[0])} results"
                return f"{named} were expected, {kind(odd[0])} came"
            pairs = [(value[item], want[item]) for value, want in pairs]
        found = (difference(value, want, rtol, atol, results) for value, want in pairs)
        return next((text for text in found if text), None)

    def same_item(mistake: Mistake, case: Case, given: list[Answer]) -> bool:
        pairs = list(zip(given, own_answers(mistake.candidate, case), strict=True))
        return not any(theirs.error or ours.error for theirs, ours in pairs) and all(
            len(theirs.value) == len(ours.value)
            and not difference(theirs.value[item], ours.value[item], rtol, atol)  # a right item explains no wrong one
            for theirs, ours in pairs
        )

    explains = None if item is None else same_item
    return Property(name, meaning, cases, judge, tolerance, lesson, mistakes, explains=explains)


def refuses(cases: Cases, *, error: str, name: str, meaning: str, lesson: str = "") -> Property:
    """Every call raises an error of the type named `error`; worth nothing by itself, since code that only raises does so."""

    def judge(case: Case, answers: list[Answer]) -> str | None:
        for answer in answers:
            if not answer.error:
                return f"{error} was expected, a result came"
            if answer.error.partition(":")[0] != error:
                return f"{error} was expected, {answer.error} came"
        return None

    return Property(name, meaning, cases, judge, lesson=lesson, judges_errors=True, manners=True)


def argument_names(function: Callable) -> tuple[str, ...]:
    """What a function calls its arguments, in order."""
    return tuple(inspect.signature(function).parameters)


def leaves_inputs_alone(cases: Cases, lesson: str = "", arguments: Sequence[str] = ()) -> Property:
    """No argument is changed in place; `arguments` names them in the order in which the probe gets them."""

    def judge(case: Case, answers: list[Answer]) -> str | None:
        for answer in answers:
            if answer.error:
                return f"a result was expected, your code raised {answer.error}"
            if answer.changed:
                place = answer.changed[0]
                name = f"the argument {arguments[place]}" if place < len(arguments) else f"argument {place + 1}"
                return f"{name} was changed in place; work on a copy"
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


def behaves(
    function: Callable, cases: Cases, lesson: str = "", *, name: str = "", arguments: Sequence[str] | None = None
) -> Property:
    """No argument is changed, and a second call gives the same; `function` is the reference."""
    arguments = argument_names(function) if arguments is None else arguments
    alone, again = leaves_inputs_alone(cases, lesson, arguments), repeats(cases, lesson)
    return replace(
        alone,
        name=f"{name or function.__name__} changes no argument and gives the same twice",
        meaning="A caller's arrays stay as they were, and the result depends on the arguments alone.",
        judge=lambda case, answers: alone.judge(case, answers) or again.judge(case, answers),
    )


def on_any_numbers(
    function: Callable,
    draw: Callable[[np.random.Generator], tuple],
    lesson: str = "",
    *,
    name: str = "",
    rtol: float = 1e-4,
    atol: float = 1e-4,
    read: Callable[[Any], Any] = lambda value: value,
) -> Property:
    """The first argument as a nested list, narrow numbers, gaps in memory: each gives what plain arrays give.

    The candidate is compared with itself, so that a wrong formula costs nothing here. `function` is the reference;
    `read` makes of a result what is compared.
    """

    def cases(rng: np.random.Generator) -> list[Case]:
        narrow = _each_array(draw(rng), {"f": np.float32, "i": np.int32})
        plain = _each_array(narrow, {"f": np.float64, "i": np.int64})  # the same numbers
        return [
            Case("first argument as a nested list", (plain, (plain[0].tolist(), *plain[1:]))),
            Case("float32 arrays and, of whole numbers, int32", (plain, narrow)),
            Case("arrays with gaps in memory", (plain,), "call_both_layouts"),
        ]

    def judge(case: Case, values: list) -> str | None:
        plain, other = values if len(values) == 2 else values[0]
        if encode(plain) == encode(other):  # NaN for NaN, too
            return None
        text = difference(read(other), read(plain), rtol, atol)
        return text and f"beside your result for plain arrays, {text}"

    return Property(
        f"{name or function.__name__} takes lists, float32 and any memory layout",
        "Numbers are numbers: np.asarray at the top, and no assumption on dtype or on how they lie in memory.",
        cases, judge, f"{rtol:g} of each number and {atol:g}: room for a float32 result", lesson, manners=True,
    )  # fmt: skip


def _each_array(value: Any, types: dict[str, type]) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_each_array(item, types) for item in value)
    if not isinstance(value, np.ndarray):
        return value
    return value.astype(types.get(value.dtype.kind, value.dtype))
