"""An exercise as graded: its parts, each a property with points, judged on cases that a secret seed draws."""

import builtins
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import islice
from typing import Any

from proof_lm.checks.core import Answered, Case, Finding, Property, draw_cases, judge, judged_together
from proof_lm.probes import Answer, answer_plan, decode, encode

MAX_ARGUMENTS = 100  # far more than any function of an exercise takes


@dataclass(frozen=True)
class Part:
    """One property and the points it earns, all or none. The property's cases are the secret ones."""

    property: Property
    points: float


def parts(properties: Sequence[Property], points: Sequence[float]) -> tuple[Part, ...]:
    """Each property with its points, in order. Raises ValueError when their numbers differ."""
    if len(properties) != len(points):
        raise ValueError(f"points: {len(properties)} properties but {len(points)} numbers of points")
    return tuple(Part(prop, worth) for prop, worth in zip(properties, points, strict=True))


@dataclass(frozen=True)
class Verdict:
    """What a submission earned in one exercise, and why not more."""

    exercise: str
    points: float
    max_points: float
    findings: tuple[Finding, ...]

    def __str__(self) -> str:
        head = f"{self.exercise}: {self.points:g} of {self.max_points:g} points"
        return "\n\n".join([head, *(str(finding) for finding in self.findings)])


@dataclass(frozen=True)
class Earlier:
    """Functions that earlier exercises of the set asked for, and code that defines right ones."""

    names: tuple[str, ...] = ()
    source: str = ""


@dataclass(frozen=True, eq=False)
class Exercise:
    """A graded cell: `id` as in "P4.1", `name` of the function or class the student writes, and its parts.

    Several functions make one exercise as "row_softmax, causal_mask"; a property's `item` says which it is about.
    With `earlier` functions an answer also counts when it is right with right ones in place of the student's own.
    """

    id: str
    name: str
    parts: tuple[Part, ...]
    earlier: Earlier = Earlier()

    @property
    def names(self) -> list[str]:
        """What the student writes, one by one."""
        return self.name.split(", ")

    @cached_property
    def points(self) -> float:
        """The most that can be earned."""
        return sum(part.points for part in self.parts)

    @lru_cache(maxsize=200)  # noqa: B019  exercises live as long as the process
    def draw(self, seed: int) -> list[list[Case]]:
        """The secret cases of every part, the same for the same seed."""
        root = [seed, zlib.crc32(self.id.encode())]
        return [draw_cases(part.property, [*root, index]) for index, part in enumerate(self.parts)]

    @lru_cache(maxsize=200)  # noqa: B019
    def plan(self, seed: int) -> str:
        """What the probe is to do, encoded: inputs only, nothing that the verdict knows."""
        drawn = zip(self.parts, self.draw(seed), strict=True)
        cases = [
            {"probe": case.probe, "calls": case.calls, "item": part.property.item, "twice": part.property.manners}
            for part, mine in drawn
            for case in mine
        ]
        if not self.earlier.names:
            return encode(cases)
        return encode({"cases": cases, "earlier": self.earlier.names, "source": self.earlier.source})

    def judge(self, seed: int, answers: str) -> Verdict:
        """The verdict on encoded answers to `plan(seed)`. ValueError when they are not such answers."""
        runs = self._runs(answers)
        errors = {answer.error for run in runs.values() for case in run for answer in case}
        if len(errors) == 1 and (error := errors.pop()):
            return self.no_answer(f"every call raised {error.rstrip(': ')}")
        given = {name: iter(run) for name, run in runs.items()}
        drawn = self.draw(seed)
        answered = [{name: list(islice(run, len(cases))) for name, run in given.items()} for cases in drawn]
        if any(next(run, None) is not None for run in given.values()):
            raise ValueError(f"{self.id}: more answers than cases")
        properties = [part.property for part in self.parts]
        shared = {name: judged_together(properties, drawn, [mine[name] for mine in answered]) for name in given}
        asked = zip(self.parts, drawn, answered, strict=True)
        return self._verdict(
            [(part, *self._judge_part(part.property, cases, mine, shared)) for part, cases, mine in asked]
        )

    def no_answer(self, reason: str) -> Verdict:
        """The verdict when the probe could not answer at all: no points, with the reason."""
        missing = Finding(self.name, "The grader calls this name as the notebook leaves it.", "all", reason)
        return Verdict(self.id, 0.0, self.points, (missing,))

    def grade(self, candidate: Callable, seed: int) -> Verdict:
        """Probe and verdict in this process, through the same encoding as between two."""
        return self.judge(seed, answer_plan(self.plan(seed), candidate))

    def _runs(self, answers: str) -> dict[str, list[list[Answer]]]:
        read = decode(answers)
        if not self.earlier.names:
            return {"own": _read(read)}
        if not isinstance(read, dict) or not {"own", "right"} <= set(read) <= {"own", "right", *self.earlier.names}:
            raise ValueError(f"{self.id}: not the runs that were asked for")
        return {name: _read(run) for name, run in read.items()}

    def _judge_part(
        self, prop: Property, cases: Sequence[Case], runs: dict[str, list[list[Answer]]], shared: dict[str, Answered]
    ) -> tuple[bool, Finding | None]:
        """Whether the part is earned, and what there is to say."""
        finding = judge(prop, cases, runs["own"], shared["own"])
        if not finding or "right" not in runs:
            return not finding, finding
        alone = judge(prop, cases, runs["right"], shared["right"])
        if alone:
            return False, alone
        mended = [name for name in self.earlier.names if name in runs and not judge(prop, cases, runs[name])]
        blamed = f"your own {mended[0]}, or what that calls" if mended else "your own earlier functions"
        advice = f"it fails only with {blamed}: correct that first; here it costs no points"
        return True, replace(finding, misconception=advice)

    def _verdict(self, results: Sequence[tuple[Part, bool, Finding | None]]) -> Verdict:
        held = [part for part, earned, _ in results if earned]
        substance = any(not part.property.manners for part in held)
        points = sum(part.points for part in held) if substance else 0
        lost = [finding for _, earned, finding in results if finding and not earned]
        excused = [finding for _, earned, finding in results if finding and earned]
        return Verdict(self.id, float(points), self.points, (*lost, *excused[:1]))


def _without_message(answer: Answer) -> Answer:
    """The answer with its error's type alone: a message, or a type of one's own, could carry secret inputs out."""
    if not answer.error:
        return answer
    kind = answer.error.partition(":")[0]
    known = isinstance(getattr(builtins, kind, None), type)
    return replace(answer, error=kind if known else "an exception of its own type")


def _read(run: Any) -> list[list[Answer]]:
    """Answers that have the form a probe gives them; ValueError, which quotes none of it, for anything else."""
    try:
        answers = [[Answer(**fields) for fields in case] for case in run]
    except TypeError:
        answers = [[Answer(error=None)]]
    if not all(_has_form(answer) for case in answers for answer in case):
        raise ValueError("answers: not what a probe writes")
    return [[_without_message(answer) for answer in case] for case in answers]


def _has_form(answer: Answer) -> bool:
    positions = answer.changed if type(answer.changed) is list else [None]
    return (
        type(answer.error) is str
        and type(answer.repeats) is bool
        and all(type(position) is int and 0 <= position < MAX_ARGUMENTS for position in positions)
    )
