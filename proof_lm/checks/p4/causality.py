"""P4.1: what an intervention on a future token must tell apart."""

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.random import Generator

from proof_lm.checks.core import Mistake, Property
from proof_lm.checks.judging import Made, decides, is_truth
from proof_lm.checks.judging_mistakes import WRONG_INTERVENTION

LESSON = "lesson 01, The future has no vote"
Shape = tuple[int, ...]
Draw = Callable[[Generator, Shape], Made]
ALL = slice(None)


def causality_properties(*shapes: Shape) -> tuple[Property, ...]:
    """The properties on hidden states of these shapes, (T, d) or (B, T, d) with T >= 4."""

    def of(
        name: str, meaning: str, clue: str, draw: Draw, mistakes: tuple[Mistake, ...] = WRONG_INTERVENTION
    ) -> Property:
        makers = {f"hidden of shape {shape}": partial(draw, shape=shape) for shape in shapes}
        given = {"probe": "judges.intervention", "makers": makers, "compare": is_truth, "mistakes": mistakes}
        return decides(name, meaning, clue, lesson=LESSON, **given)

    return (
        of(
            "causal and leaking attention are told apart",
            "True for attention that never looks ahead, however it is built; False for one without a mask.",
            "compare only rows before the replaced one, and start each replacement from the original hidden",
            _causal_or_unmasked,
        ),
        of(
            "a leak from any one position into any one row is seen",
            "A single pair, query i looking at one later key j, is enough to make attention non-causal.",
            "replace every position in turn, and compare every row before it",
            _single_pair,
        ),
        of(
            "a leak in one batch row is seen",
            "With hidden of shape (B, T, d), every sequence of the batch must be causal.",
            "position is the axis before the last; replace and compare in every batch row",
            _one_batch_row,
        ),
        of(
            "a leak that shows only in longer sequences is seen",
            "A mask made for a few positions lets the positions after them see each other.",
            "use hidden at its full length",
            _short_and_long,
        ),
        of(
            "a leak through the values alone is seen",
            "Weights may form a perfect triangle while the values that they average already hold the future.",
            "look at outputs, not at weights, and at differences far smaller than the outputs",
            _through_values,
        ),
        of(
            "rows are replaced by random values",
            "Attention that normalises its rows does not notice an added constant, and a row may be zero already.",
            "put fresh random numbers into the row: what adding or multiplying does can cancel",
            _replaced,
        ),
        of(
            "a faint leak is a leak",
            "Rounding stays below 1e-9; whatever moves an earlier row by more has reached it.",
            "allow for 1e-9 and no more: np.allclose also allows one part in 100,000 unless you pass rtol=0",
            _faint,
            mistakes=(),  # most would explain it, being made for larger leaks
        ),
    )


def _call(
    rng: Generator,
    shape: Shape,
    leak: tuple | None = None,
    *,
    mixed: tuple[int, int] | None = None,
    by: float = 0.03,
    zeros: bool = False,
    **flags: bool,
) -> tuple:
    """Arguments of `judges.intervention`, causal unless mask entries `leak` open or values `mixed` mix `by` so much."""
    batch, time, width = (1, *shape)[-3:]
    sees = np.tile(np.tri(time, dtype=bool), (batch, 1, 1))
    mixes = np.tile(np.eye(time), (batch, 1, 1))
    if leak:
        sees[leak] = True
    if mixed:
        mixes[(ALL, *mixed)] = by
    parts = {name: rng.normal(scale=width**-0.5, size=(width, width)) for name in ("wq", "wk", "wv", "wo")}
    parts |= {"sees": sees, "mixes": mixes, "normalizes": False, "scales_by_time": False} | flags
    return parts, np.zeros(shape) if zeros else rng.normal(size=shape), int(rng.integers(2**31))


def _pair(rng: Generator, time: int) -> tuple[int, int]:
    """A query and a later key, neither at an end of the sequence."""
    query, key = sorted(rng.choice(np.arange(1, time - 1), size=2, replace=False))
    return int(query), int(key)


def _causal_or_unmasked(rng: Generator, shape: Shape) -> Made:
    return [
        (_call(rng, shape), True),
        (_call(rng, shape, scales_by_time=True), True),
        (_call(rng, shape, normalizes=True), True),
        (_call(rng, shape, (ALL,)), False),
    ]


def _single_pair(rng: Generator, shape: Shape) -> Made:
    time = shape[-2]
    pairs = [(0, 1), (0, time - 1), (time - 2, time - 1), _pair(rng, time)]
    return [(_call(rng, shape), True), *((_call(rng, shape, (ALL, *pair)), False) for pair in pairs)]


def _one_batch_row(rng: Generator, shape: Shape) -> Made:
    row = shape[0] - 1 if len(shape) == 3 else 0
    return [(_call(rng, shape), True), (_call(rng, shape, (row, *_pair(rng, shape[-2]))), False)]


def _short_and_long(rng: Generator, shape: Shape) -> Made:
    reach = shape[-2] - 2  # the mask hides the future only of queries before this position
    ahead = slice(reach, None)
    parts, hidden, seed = _call(rng, shape, (ALL, ahead, ahead))
    return [((parts, hidden[..., :reach, :], seed), True), ((parts, hidden, seed), False)]


def _through_values(rng: Generator, shape: Shape) -> Made:
    return [(_call(rng, shape), True), (_call(rng, shape, mixed=_pair(rng, shape[-2])), False)]


def _faint(rng: Generator, shape: Shape) -> Made:
    pair = 0, int(rng.integers(1, shape[-2]))  # row 0 is made of its own value alone: the leak arrives undiminished
    return [(_call(rng, shape), True), (_call(rng, shape, mixed=pair, by=1.5e-7), False)]


def _replaced(rng: Generator, shape: Shape) -> Made:
    leak = (ALL, 0, shape[-2] - 1)
    return [
        (_call(rng, shape, normalizes=True), True),
        (_call(rng, shape, leak, normalizes=True), False),
        (_call(rng, shape, zeros=True), True),
        (_call(rng, shape, leak, zeros=True), False),
    ]
