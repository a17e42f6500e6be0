"""An exercise as graded: its parts, each a property with points, judged on cases that a secret seed draws."""

import builtins
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import islice

from proof_lm.checks.core import Case, Finding, Property, draw_cases, judge
from proof_lm.probes import Answer, answer_plan, decode, encode


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


@dataclass(frozen=True, eq=False)
class Exercise:
    """A graded cell: `id` as in "P4.1", `name` of the function or class the student writes, and its parts."""

    id: str
    name: str
    parts: tuple[Part, ...]

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
        return encode([{"probe": c.probe, "calls": c.calls} for cases in self.draw(seed) for c in cases])

    def judge(self, seed: int, answers: str) -> Verdict:
        """The verdict on encoded answers to `plan(seed)`. ValueError when they are not such answers."""
        read = [[_without_message(answer) for answer in case] for case in _read(answers)]
        errors = {answer.error for case in read for answer in case}
        if len(errors) == 1 and (error := errors.pop()):
            return self.no_answer(f"every call raised {error.rstrip(': ')}")
        given = iter(read)
        results = []
        for part, cases in zip(self.parts, self.draw(seed), strict=True):
            mine = list(islice(given, len(cases)))
            results.append((part, judge(part.property, cases, mine)))
        if next(given, None) is not None:
            raise ValueError(f"{self.id}: more answers than cases")
        return self._verdict(results)

    def no_answer(self, reason: str) -> Verdict:
        """The verdict when the probe could not answer at all: no points, with the reason."""
        missing = Finding(self.name, "The grader calls this name as the notebook leaves it.", "all", reason)
        return Verdict(self.id, 0.0, self.points, (missing,))

    def grade(self, candidate: Callable, seed: int) -> Verdict:
        """Probe and verdict in this process, through the same encoding as between two."""
        return self.judge(seed, answer_plan(self.plan(seed), candidate))

    def _verdict(self, results: Sequence[tuple[Part, Finding | None]]) -> Verdict:
        held = [part for part, finding in results if not finding]
        substance = any(not part.property.manners for part in held)
        earned = sum(part.points for part in held) if substance else 0
        return Verdict(self.id, float(earned), self.points, tuple(f for _, f in results if f))


def _without_message(answer: Answer) -> Answer:
    """The answer with its error's type alone: a message, or a type of one's own, could carry secret inputs out."""
    if not answer.error:
        return answer
    kind = answer.error.partition(":")[0]
    known = isinstance(getattr(builtins, kind, None), type)
    return replace(answer, error=kind if known else "an exception of its own type")


def _read(answers: str) -> list[list[Answer]]:
    try:
        return [[Answer(**fields) for fields in case] for case in decode(answers)]
    except TypeError as error:
        raise ValueError(f"answers: not what a probe writes ({error})") from None
