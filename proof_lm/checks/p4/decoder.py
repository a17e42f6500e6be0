"""P4.3: what three checks of a decoder must see."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator

from proof_lm.checks.core import Mistake, Property, kind
from proof_lm.checks.judging import Made, decides, truth
from proof_lm.checks.judging_mistakes import WRONG_CHECKS

LESSON = "lesson 06, from The intervention to Save and reload"
CHECKS = ("future_ok", "tied_ok", "reload_ok")
Shape = tuple[int, int, int]
Place = tuple[int, int, int]  # batch row, step, token
Draw = Callable[[Generator, Shape], Made]


def decoder_properties(*shapes: Shape) -> tuple[Property, ...]:
    """The properties on logits of these shapes, (B, T, V) with T >= 4 and V >= 2."""

    def of(
        name: str, meaning: str, clue: str, draw: Draw, mistakes: tuple[Mistake, ...] = WRONG_CHECKS
    ) -> Property:
        makers = {f"logits of shape {shape}": partial(draw, shape=shape) for shape in shapes}
        given = {"probe": "judges.decoder", "makers": makers, "compare": _are_right, "mistakes": mistakes}
        return decides(name, meaning, clue, lesson=LESSON, **given)

    return (
        of(
            "a change at any earlier step is seen",
            "future_ok is True only if the logits of every step but the last are the same.",
            "compare all steps before the last, in every batch row and for every token of the vocabulary",
            _changed_early,
        ),
        of(
            "the last step may change",
            "The last input token differs, so the last step's logits must be left out of the comparison.",
            "leave out the last step, and only that one, along the time axis",
            _changed_last,
        ),
        of(
            "small differences and NaN are differences",
            "Logits that differ by two ten-thousandths differ, and NaN equals nothing, not even another NaN.",
            "allow for rounding only (1e-5 at most), and let no NaN pass",
            _small_or_nan,
        ),
        of(
            "the reloaded model must agree at every step",
            "reload_ok is True only if original and reloaded logits are the same, the last step included.",
            "compare the original and the reloaded logits everywhere",
            _reloaded,
        ),
        of(
            "tied means one storage",
            "Equal numbers in two places are not tied, and what a model says of itself proves nothing.",
            "ask where the two weights are stored (data_ptr), not what they hold or what the model claims",
            _tied,
        ),
        of(
            "rounding is no difference, anything larger is one",
            "Float32 sums taken in another order differ in their last bits; what differs by more than 1e-5 differs.",
            "neither ask for equal bits nor allow more than 1e-5",
            _rounded,
            mistakes=(),  # most would explain it, being made for larger differences
        ),
    )


def _call(
    rng: Generator,
    shape: Shape,
    *,
    changed: Place | None = None,
    reloaded: Place | None = None,
    by: float = 0.03,
    rounded: bool = False,
    tie: str = "same",
    flag: bool = True,
) -> tuple:
    """Arguments of `judges.decoder`. One entry differs `by` so much and its neighbour by the opposite.

    With `by` NaN the entry is NaN on both sides. If `rounded` all logits lie between -1 and 1, and last bits differ.
    """
    original = (rng.uniform(-1, 1, size=shape) if rounded else rng.normal(size=shape)).astype(np.float32)
    others = [original.copy(), original.copy()]
    if rounded:
        others = [np.nextafter(original, side) for side in np.float32([-2, 2])]
    others[0][:, -1] = rng.normal(size=others[0][:, -1].shape)
    for other, place in zip(others, (changed, reloaded), strict=True):
        if place:
            batch, step, token = place
            other[batch, step, token] += by
            other[batch, step, (token + 1) % shape[-1]] -= 0.0 if math.isnan(by) else by
            if math.isnan(by):
                original[place] = math.nan
    weight = rng.normal(size=(shape[-1], 6)).astype(np.float32)
    return {"weight": weight, "tie": tie, "flag": flag}, original, *others


def _right(future: bool = True, tied: bool = True, reload: bool = True) -> dict[str, bool]:
    return dict(zip(CHECKS, (future, tied, reload), strict=True))


def _early(rng: Generator, shape: Shape) -> list[Place]:
    """Entries before the last step: the very first, the very last of them, one in between."""
    batch, time, tokens = shape
    between = (int(rng.integers(batch)), int(rng.integers(1, time - 2)), int(rng.integers(tokens)))
    return [(0, 0, 0), (batch - 1, time - 2, tokens - 1), between]


def _late(rng: Generator, shape: Shape) -> Place:
    return shape[0] - 1, shape[1] - 1, int(rng.integers(shape[2]))


def _changed_early(rng: Generator, shape: Shape) -> Made:
    wrong = [(_call(rng, shape, changed=place), _right(future=False)) for place in _early(rng, shape)]
    return [(_call(rng, shape), _right()), *wrong]


def _changed_last(rng: Generator, shape: Shape) -> Made:
    just_before = (0, shape[1] - 2, 0)
    nan_last = _call(rng, shape, changed=_late(rng, shape), by=math.nan)
    return [
        (_call(rng, shape), _right()),
        (nan_last, {"future_ok": True}),
        (_call(rng, shape, changed=just_before), _right(future=False)),
    ]


def _small_or_nan(rng: Generator, shape: Shape) -> Made:
    early, late = _early(rng, shape)[-1], _late(rng, shape)
    return [
        (_call(rng, shape), {"future_ok": True, "reload_ok": True}),
        (_call(rng, shape, changed=early, by=0.0002), {"future_ok": False, "reload_ok": True}),
        (_call(rng, shape, changed=early, by=math.nan), {"future_ok": False}),
        (_call(rng, shape, reloaded=late, by=0.0002), {"future_ok": True, "reload_ok": False}),
        (_call(rng, shape, reloaded=late, by=math.nan), {"future_ok": True, "reload_ok": False}),
    ]


def _reloaded(rng: Generator, shape: Shape) -> Made:
    places = [*_early(rng, shape), _late(rng, shape)]
    wrong = [(_call(rng, shape, reloaded=place), _right(reload=False)) for place in places]
    return [(_call(rng, shape), _right()), *wrong]


def _rounded(rng: Generator, shape: Shape) -> Made:
    early, late = _early(rng, shape)[-1], _late(rng, shape)
    return [
        (_call(rng, shape, rounded=True), _right()),
        (_call(rng, shape, rounded=True, changed=early, by=3e-5), _right(future=False)),
        (_call(rng, shape, rounded=True, reloaded=late, by=3e-5), _right(reload=False)),
    ]


def _tied(rng: Generator, shape: Shape) -> Made:
    kinds = [("same", True), ("copy", True), ("view", False), ("same", False), ("copy", False), ("other", True)]
    shared = ("same", "view")
    return [(_call(rng, shape, tie=tie, flag=flag), {"tied_ok": tie in shared}) for tie, flag in kinds]


def _are_right(value: Any, right: dict[str, bool]) -> str | None:
    values = list(value) if isinstance(value, (list, tuple, np.ndarray)) and np.ndim(value) else []
    said = [truth(item) for item in values]
    if len(said) != 3 or None in said:
        return f"three booleans were expected, {kind(value)} came"
    given = dict(zip(CHECKS, said, strict=True))
    wrong = next((check for check in right if given[check] != right[check]), None)
    return wrong and f"{wrong}: {right[wrong]} was expected, {given[wrong]} came"
