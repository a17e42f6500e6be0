"""P4.2: what the choice of the most stable configuration must depend on."""

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from proof_lm.checks.core import Property, kind
from proof_lm.checks.judging import Made, decides
from proof_lm.checks.judging_mistakes import WRONG_STABILITY

EXPERIMENTS = 6  # of each size: so many that what a mistake costs is no matter of luck
LESSON = "lesson 05, Gradient norms by depth"
Draw = Callable[[Generator, int, int], list[NDArray]]


def stability_properties(*sizes: tuple[int, int]) -> tuple[Property, ...]:
    """The properties on experiments of these sizes: (2 to 9 configurations, at least 4 depths)."""

    def of(name: str, meaning: str, clue: str, draw: Draw) -> Property:
        makers = {
            f"{n} configurations, {t} depths": partial(_shown, draw=draw, n=n, depths=t) for n, t in sizes
        }
        given = {"probe": "judges.choice", "makers": makers, "compare": _is_name, "mistakes": WRONG_STABILITY}
        return decides(name, meaning, clue, lesson=LESSON, **given)

    return (
        of(
            "the smallest worst log-ratio wins",
            "A configuration is judged by its largest |log(norm / first norm)|; the smallest of these wins.",
            "take the largest absolute log-ratio of each configuration, then the name with the smallest",
            _drifting,
        ),
        of(
            "vanishing counts as much as exploding",
            "A tenth and ten times the first norm are equally far from it.",
            "use the size of the logarithm: without it, what vanishes looks stable",
            partial(_rising_or_falling, calm=2.8, wild=0.30),
        ),
        of(
            "exploding counts as much as vanishing",
            "A ratio of 1 / 2 is nearer to 1 than a ratio of 3.",
            "compare logarithms of ratios, not the norms and not their differences",
            partial(_rising_or_falling, calm=0.45, wild=3.2),
        ),
        of(
            "every depth counts",
            "A norm that leaves its first value and comes back was unstable in between.",
            "look at all depths and at the worst of them, neither at the last alone nor at an average",
            _excursions,
        ),
        of(
            "each configuration is compared with its own first norm",
            "Stable means unchanged: neither near 1, nor near the depth before, nor within a narrow band.",
            "divide every norm by the first norm of the same configuration",
            _zigzag,
        ),
    )


def _shown(rng: Generator, draw: Draw, n: int, depths: int) -> Made:
    """Some experiments, each in three orders, so that no fixed place in the mapping is always right."""
    orders, made = [list(range(n)), [*range(1, n), 0], [*range(1, n - 1), 0, n - 1]], []
    for _ in range(EXPERIMENTS):
        curves = draw(rng, n, depths)  # the winner first
        names = [f"configuration {letter}" for letter in rng.permutation(list("ABCDEFGHI"))[:n]]
        made += [(({names[i]: curves[i].tolist() for i in order},), names[0]) for order in orders]
    return made


def _drifting(rng: Generator, n: int, depths: int) -> list[NDArray]:
    """Worst log-ratios 0.2, 0.5, 0.8 …, each with a random sign at a random depth, often the first or the last one."""
    logs = np.zeros((n, depths))
    for row, worst in zip(logs, 0.2 + 0.3 * np.arange(n), strict=True):
        row[1:] = rng.uniform(-0.18, 0.18, size=depths - 1)
        row[rng.choice([1, depths - 1, rng.integers(1, depths)])] = worst * rng.choice([-1, 1])
    return list(rng.uniform(0.3, 4.0, size=(n, 1)) * np.exp(logs))


def _rising_or_falling(rng: Generator, n: int, depths: int, calm: float, wild: float) -> list[NDArray]:
    """One curve that ends at ratio `calm`, the others at `wild` or beyond, all from one first norm."""
    ends = np.array([calm, *(wild ** (1 + 0.2 * index) for index in range(n - 1))])
    return list(rng.uniform(0.8, 1.25) * ends[:, None] ** np.linspace(0, 1, depths))


def _excursions(rng: Generator, n: int, depths: int) -> list[NDArray]:
    """A curve that drifts off a little and stays there, the others with one far excursion."""
    logs = np.zeros((n, depths))
    logs[0, 1:] = 0.5
    for index in range(1, n):
        logs[index, rng.integers(1, depths - 1)] = (0.9 + 0.1 * index) * rng.choice([-1, 1])
    return list(rng.uniform(0.5, 2.0, size=(n, 1)) * np.exp(logs))


def _zigzag(rng: Generator, n: int, depths: int) -> list[NDArray]:
    """A zigzag around a first norm far from 1, the others in smooth drifts that pass through 1."""
    logs = np.linspace(0.5, -0.5, depths) * (0.6 + 0.05 * np.arange(n))[:, None]
    logs[0] = np.where(np.arange(depths) % 2 == 0, 0.45, -0.45)
    logs[0, 0] = 0.0
    first = np.array([rng.uniform(6.0, 9.0), *rng.uniform(0.95, 1.05, size=n - 1)])
    return list(first[:, None] * np.exp(logs))


def _is_name(value: object, right: str) -> str | None:
    if not isinstance(value, str):
        return f"the name of a configuration was expected, {kind(value)} came"
    return None if value == right else "another configuration was expected than the one that came"
