"""Run a case: call the candidate through a named probe and record what came back."""

import importlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pickle import dumps, loads  # by name: what a notebook replaces in the module is another
from typing import Any

import numpy as np

from proof_lm.probes.codec import decode, encode
from proof_lm.probes.earlier import defined_by, reached, rebound

MAX_ERROR_TEXT = 300
SCALARS = (float, int, bool, str, type(None))
ROUNDING = 3e-6  # of float32 sums; every property tolerates more


@dataclass(frozen=True)
class Answer:
    """What one call gave: a value, or an error as text; both plain data."""

    value: Any = None
    error: str = ""  # "ValueError: heads must divide 6", empty when the call returned
    changed: list[int] = field(default_factory=list)  # positions of arguments that the call changed in place
    repeats: bool = True  # a second call with equal arguments, where one is made, gave the same bits


def run_case(candidate: Callable, probe: str, calls: tuple[tuple, ...], twice: bool = False) -> list[Answer]:
    """Answers of `candidate` to each tuple of arguments in `calls`, in order.

    `probe` names a function of proof_lm.probes as "module.function"; "call" is `functions.call`. It gets
    fresh copies of the arguments, so that nothing the candidate changes reaches the next call. `twice`: each call is
    made a second time, to see whether it repeats.
    """
    module, _, name = ("functions." + probe if "." not in probe else probe).rpartition(".")
    function = getattr(importlib.import_module(f"proof_lm.probes.{module}"), name)
    return [_answer(candidate, function, arguments, twice) for arguments in calls]


def _answer(candidate: Callable, probe: Callable, arguments: tuple, twice: bool) -> Answer:
    try:
        kept = dumps(arguments)  # plain data, of which this is the quickest copy
        given = loads(kept)
        before = dumps(given)
        packed = encode(probe(candidate, *given))
        changed = _changed(given, arguments, before)
        repeats = not twice or encode(probe(candidate, *loads(kept))) == packed
    except Exception as error:  # whatever the student's code raises is an answer too
        return Answer(error=_said(error))
    return Answer(decode(packed), "", changed, repeats)  # plain data: tensors have become arrays


def _said(error: Exception) -> str:
    """Type and message; the type alone where the message is code that fails itself."""
    kind = type(error).__name__
    try:
        return f"{kind}: {error}"[:MAX_ERROR_TEXT]
    except Exception:
        return f"{kind}: "[:MAX_ERROR_TEXT]


def _changed(given: tuple, arguments: tuple, before: bytes) -> list[int]:
    """Positions of what is another now. Equal bytes are equal arguments; others may be equal all the same."""
    with suppress(Exception):  # there may be something now of which no copy can be made
        if dumps(given) == before:
            return []
    return [i for i, (now, before) in enumerate(zip(given, arguments, strict=True)) if _differs(now, before)]


def _differs(now: Any, before: Any) -> bool:
    if type(now) is np.ndarray and type(before) is np.ndarray:  # the common case, faster than as text
        same_kind = now.shape == before.shape and now.dtype == before.dtype
        return not same_kind or now.tobytes() != before.tobytes()
    if type(now) is type(before) and type(now) in (tuple, list) and len(now) == len(before):
        return any(map(_differs, now, before))
    if type(now) is type(before) and type(now) in SCALARS:
        return repr(now) != repr(before)  # which tells 0.0 from -0.0 and takes one NaN for another
    if type(now) is dict and type(before) is dict and now.keys() == before.keys():
        return any(_differs(now[key], before[key]) for key in before)
    return encode(now) != encode(before)


def answer_plan(plan: str, candidate: Callable) -> str:
    """Answers to an encoded plan, encoded: what a grader sends to the student's process and reads back.

    A plan is a list of cases, each a dictionary of "probe", "calls", "twice" and "item", the index of the function
    that is called when the candidate is a tuple of several. With right versions of `earlier` functions it is a dictionary
    of "cases", "earlier" (their names) and "source"; then the answers are a dictionary: those of the candidate as it
    is ("own"), with all the right ones in place of its own ("right") and, when these differ, with one at a time.
    """
    asked = decode(plan)
    if isinstance(asked, list):
        return encode(_answers(asked, candidate))
    cases, right = asked["cases"], defined_by(asked["source"], asked["earlier"])
    own, called = _answers(cases, candidate), reached(candidate, asked["earlier"])
    runs = {"own": own, "right": _answers(cases, rebound(candidate, right)) if called else own}
    if not _alike(own, runs["right"]):
        for name in called:
            runs[name] = _answers(cases, rebound(candidate, {name: right[name]}))
    return encode(runs)


def _alike(one: Any, other: Any) -> bool:
    """Whether two answers, or lists of them, differ by rounding at most."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_alike(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, (float, np.ndarray, np.generic)):
        return np.shape(one) == np.shape(other) and np.allclose(one, other, ROUNDING, ROUNDING, equal_nan=True)
    return one == other


def _answers(cases: list[dict], candidate: Any) -> list[list[dict]]:
    picked = [candidate if case["item"] is None else candidate[case["item"]] for case in cases]
    asked = zip(picked, cases, strict=True)
    answers = [run_case(one, case["probe"], case["calls"], case["twice"]) for one, case in asked]
    return [[vars(answer) for answer in given] for given in answers]
