"""Properties: what is to be proved of a piece of code, on which cases, and what its failure means.

A property is checked in two halves. The probe calls the candidate and hands back plain data; the verdict
looks at that data alone. Both run here in one process; a grader runs them in two.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from typing import Any

import numpy as np

from proof_lm.probes import Answer, encode, run_case

SEED = 41
_numbers_told: ContextVar[bool] = ContextVar("numbers_told", default=False)


@dataclass(frozen=True, eq=False)
class Case:
    """One situation: argument tuples with which a probe calls the candidate in order. Hashed by identity."""

    label: str  # what a reader should know of it, for instance "T = 5, d = 6"
    calls: tuple[tuple, ...]  # plain data only
    probe: str = "call"  # a function of proof_lm.probes.functions, or "module.function"
    facts: Any = None  # what only the verdict may know


@dataclass(frozen=True)
class Mistake:
    """A known misconception: code that makes it, and the sentence that tells a student so."""

    name: str
    message: str
    candidate: Callable  # called through the same probe as the student's code


@dataclass(frozen=True)
class Property:
    """Something that holds for every right answer.

    `judge(case, values)` sees the values of the case's calls and returns None when the property holds, else
    one sentence: what was expected, what came, and where. With `judges_errors` it gets the answers.
    """

    name: str
    meaning: str
    cases: Callable[[np.random.Generator], Sequence[Case]]
    judge: Callable[[Case, list], str | None]
    tolerance: str = "exact"  # the bound and the reason for it
    lesson: str = ""  # where the lesson proves it
    mistakes: tuple[Mistake, ...] = ()
    judges_errors: bool = False
    item: int | None = None  # of an exercise with several functions: the index of the one that this is about
    explains: Callable[[Mistake, Case, list[Answer]], bool] | None = None  # a mistake gives these answers; None: equals
    manners: bool = False  # about how code behaves, so that it is called twice; worth nothing by itself
    together: bool = False  # answers are yes or no: a mistake must explain those to all such properties of an exercise


@dataclass(frozen=True, repr=False)
class Finding:
    """Why a property does not hold: shown as text, and as HTML in JupyterLab."""

    property: str
    meaning: str
    case: str
    detail: str
    misconception: str = ""
    lesson: str = ""

    def lines(self) -> list[tuple[str, str]]:
        rows = [("fails", self.property), ("means", self.meaning), ("case", self.case)]
        rows += [("found", self.detail), ("likely", self.misconception), ("see", self.lesson)]
        return [(key, text) for key, text in rows if text]

    def __str__(self) -> str:
        return "\n".join(f"{key:>7}: {text}" for key, text in self.lines())

    __repr__ = __str__  # what a notebook shows where it shows no HTML

    def _repr_html_(self) -> str:
        (_, title), *rows = self.lines()
        cells = "".join(
            f"<tr><th style='text-align:right;vertical-align:top'>{key}</th>"
            f"<td style='text-align:left'>{f'<b>{escape(text)}</b>' if key == 'likely' else escape(text)}</td></tr>"
            for key, text in rows
        )
        return (
            "<div style='border-left:4px solid #b3261e;padding-left:10px;margin:6px 0'>"
            f"<b>&#10007; fails: {escape(title)}</b><table style='margin:2px 0'>{cells}</table></div>"
        )


class OtherForm(ValueError):
    """Raised by a judge for what has not the form of a result. Its message, which quotes no number, is shown."""


class PropertyFailed(AssertionError):
    """A property does not hold; shown in a notebook as its message, without a traceback."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def draw_cases(prop: Property, seed: int | Sequence[int]) -> list[Case]:
    """The property's cases for a seed; ValueError when there are none, since nothing would be checked."""
    cases = list(prop.cases(np.random.default_rng(seed)))
    if not cases or not all(case.calls for case in cases):
        raise ValueError(f"property {prop.name!r}: no case to check; give it at least one case with a call")
    return cases


Answered = list[tuple[Case, list[Answer]]]


def judge(
    prop: Property, cases: Sequence[Case], answers: Sequence[list[Answer]], beside: Answered | None = None
) -> Finding | None:
    """The verdict: the first case in which the property fails, or None. Runs no candidate code.

    `beside`, for a property that is judged together with others of its exercise: the cases and answers of all of them.
    """
    if not cases or len(cases) != len(answers):
        raise ValueError(f"property {prop.name!r}: {len(cases)} cases but {len(answers)} answers")
    mine = list(zip(cases, answers, strict=True))
    with warnings.catch_warnings(), np.errstate(all="ignore"):  # NaN and empty rows are told as findings
        warnings.simplefilter("ignore", RuntimeWarning)
        for case, given in mine:
            detail = _detail(prop, case, given)
            if detail:
                likely = diagnose(prop, beside if prop.together and beside else mine)
                return Finding(prop.name, prop.meaning, case.label, detail, likely, prop.lesson)
    return None


def _detail(prop: Property, case: Case, given: list[Answer]) -> str | None:
    if len(given) != len(case.calls):
        return f"{len(case.calls)} results expected, {len(given)} came"
    raised = next((answer.error for answer in given if answer.error), "")
    if raised and not prop.judges_errors:
        return f"a result was expected, your code raised {raised}"
    try:
        return prop.judge(case, given if prop.judges_errors else [answer.value for answer in given])
    except OtherForm as error:
        return str(error)
    except Exception as error:  # of many kinds on what is no answer; their messages could quote what came
        return f"the result has not the expected form: {kind(given[0].value)} came ({type(error).__name__})"


def diagnose(prop: Property, answered: Answered) -> str:
    """Message of the first known mistake that gives the same answers in every case, or an empty string."""
    if all(answer.error for _, given in answered for answer in given):
        return ""  # an error that a mistake raises too may have any cause
    explains = prop.explains or _same_answers
    for mistake in prop.mistakes:
        with suppress(Exception):  # what is no answer explains nothing
            if all(explains(mistake, case, given) for case, given in answered):
                return mistake.message
    return ""


def _same_answers(mistake: Mistake, case: Case, given: list[Answer]) -> bool:
    planted = own_answers(mistake.candidate, case)
    return len(planted) == len(given) and all(
        a.error.partition(":")[0] == b.error.partition(":")[0]
        and a.changed == b.changed
        and (same(a.value, b.value) or encode(a.value) == encode(b.value))  # equal bits: NaN for NaN
        for a, b in zip(planted, given, strict=True)
    )


@lru_cache(maxsize=20_000)  # a class is judged on the same cases: a reference answers each of them once
def own_answers(candidate: Callable, case: Case) -> list[Answer]:
    """What code of ours, a reference or a planted mistake, answers; its warnings are not the student's."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return run_case(candidate, case.probe, case.calls)


@contextmanager
def telling_numbers() -> Iterator[None]:
    """Within, findings hold expected numbers: for the cases that a student may see, never for secret ones."""
    before = _numbers_told.set(True)
    try:
        yield
    finally:
        _numbers_told.reset(before)


def find(prop: Property, candidate: Callable, seed: int | Sequence[int] = SEED) -> tuple[Finding | None, int]:
    """Probe and verdict in this process: the finding, if any, and the number of cases looked at."""
    return find_all([prop], candidate, seed)[0]


def find_all(
    properties: Sequence[Property], candidate: Callable, seed: int | Sequence[int] = SEED
) -> list[tuple[Finding | None, int]]:
    """The same for several properties of one exercise, in order."""
    cases = [draw_cases(prop, seed) for prop in properties]
    answers = []
    for prop, mine in zip(properties, cases, strict=True):
        one = candidate if prop.item is None else candidate[prop.item]
        answers.append([run_case(one, case.probe, case.calls, prop.manners) for case in mine])
    shared = judged_together(properties, cases, answers)
    drawn = zip(properties, cases, answers, strict=True)
    return [(judge(prop, mine, given, shared), len(mine)) for prop, mine, given in drawn]


def judged_together(
    properties: Sequence[Property], cases: Sequence[Sequence[Case]], answers: Sequence[Sequence[list[Answer]]]
) -> Answered:
    """Cases and answers of those properties of an exercise that are judged together."""
    drawn = zip(properties, cases, answers, strict=True)
    return [pair for prop, mine, given in drawn if prop.together for pair in zip(mine, given, strict=False)]


def verify(prop: Property, candidate: Callable, seed: int = SEED) -> None:
    """Print that the property holds, or raise PropertyFailed with the finding."""
    finding, count = find(prop, candidate, seed)
    if finding:
        raise PropertyFailed(str(finding))
    print(f"holds: {prop.name} ({count} {'case' if count == 1 else 'cases'})")


def show(prop: Property, candidate: Callable, seed: int = SEED) -> None:
    """Print whether the property holds; for a lesson that shows a mistake fail."""
    finding, count = find(prop, candidate, seed)
    print(finding or f"holds: {prop.name} ({count} {'case' if count == 1 else 'cases'})")


def kind(value: Any) -> str:
    """What sort of thing a value is, without its numbers: "array of shape (2, 5)", "tuple of 3", "None"."""
    if value is None:
        return "None"
    if isinstance(value, np.ndarray) and value.ndim:
        return f"array of shape {value.shape}"
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__} of {len(value)}"
    return type(value.item() if isinstance(value, (np.ndarray, np.generic)) else value).__name__


def same(actual: Any, expected: Any, rtol: float = 1e-5, atol: float = 1e-7) -> bool:
    """Whether two plain values are equal within a tolerance, item by item."""
    return difference(actual, expected, rtol, atol) is None


def difference(actual: Any, expected: Any, rtol: float, atol: float, names: Sequence[str] = ()) -> str | None:
    """None when equal within |actual - expected| <= atol + rtol |expected|, else where and how they differ.

    The sentence names shapes, the first wrong index and kinds of number; an expected value only where `telling_numbers`
    allows it. Tuples and lists are the same, their items are told by `names`; booleans, text and None are compared
    exactly; NaN equals nothing.
    """
    if isinstance(expected, dict):
        if not isinstance(actual, dict) or set(actual) != set(expected):
            return f"a dictionary with keys {sorted(expected)} was expected, {kind(actual)} came"
        pairs = [(str(key), actual[key], expected[key]) for key in expected]
    elif isinstance(expected, (list, tuple)):
        if not isinstance(actual, (list, tuple)) or len(actual) != len(expected):
            wanted = " and ".join(names) if len(names) == len(expected) == 2 else f"{len(expected)} items"
            return f"{wanted} were expected, {kind(actual)} came"
        names = names or [f"part {place} of {len(expected)}" for place in range(1, len(expected) + 1)]
        pairs = list(zip(names, actual, expected, strict=True))
    elif expected is None or isinstance(expected, str):
        equal = type(actual) is type(expected) and actual == expected
        return None if equal else f"another value was expected, {kind(actual)} came"
    else:
        return _array_difference(actual, expected, rtol, atol)
    found = ((where, difference(a, e, rtol, atol)) for where, a, e in pairs)
    return next((f"{where}: {text}" for where, text in found if text), None)


def _array_difference(actual: Any, expected: Any, rtol: float, atol: float) -> str | None:
    if actual is None or isinstance(actual, (str, dict)):
        return f"{kind(np.asarray(expected))} was expected, {kind(actual)} came"
    try:
        got, want = np.asarray(actual), np.asarray(expected)
    except ValueError:  # arrays of different shapes make no array
        return f"{kind(expected)} was expected, {kind(actual)} came"
    if got.shape != want.shape:
        return f"shape {want.shape} was expected, shape {got.shape} came"
    if (want.dtype == bool) != (got.dtype == bool):
        return f"{want.dtype.name} was expected, {got.dtype.name} came"
    if want.dtype == bool:
        wrong = got != want
    else:
        got, want = got.astype(np.float64), want.astype(np.float64)
        with np.errstate(invalid="ignore"):
            near = np.isfinite(want) & (np.abs(got - want) <= atol + rtol * np.abs(want))
            wrong = ~((got == want) | near)
    if not wrong.any():
        return None
    first = tuple(int(i) for i in np.argwhere(wrong)[0])
    where = f"entry {list(first)}: " if first else ""
    count = f" ({int(wrong.sum())} of {wrong.size} entries are wrong)" if first else ""
    return f"{where}{_contrast(got[first], want[first])}{count}"


def _contrast(got: np.generic, want: np.generic) -> str:
    came, expected = _number_kind(got), _number_kind(want)
    if _numbers_told.get() and np.isfinite(want) and want.dtype != bool:
        return _numbers(got, want)
    if came != expected:
        return f"{expected} was expected, {came} came"
    return f"{expected} was expected, another of the same kind came"


def _numbers(got: np.generic, want: np.generic) -> str:
    """Both numbers, in as few digits as tell them apart."""
    for digits in (4, 8, 17):
        expected, came = _written(want, digits), _written(got, digits)
        if came != expected:
            break
    return f"{expected} was expected, {came} came"


def _written(number: np.generic, digits: int) -> str:
    if not np.isfinite(number):
        return _number_kind(number)
    return str(int(number)) if number == np.rint(number) and abs(number) < 1e15 else f"{number:.{digits}g}"


def _number_kind(number: np.generic) -> str:
    if isinstance(number, np.bool_):
        return str(bool(number))
    if not np.isfinite(number):
        return "NaN" if np.isnan(number) else "an infinity"
    return "zero" if number == 0 else f"a {'positive' if number > 0 else 'negative'} number"
