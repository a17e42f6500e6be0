"""What is to be proved of LayerNorm, GELU, the feed-forward layer, the pre-norm block and the masked loss.

Every property comes with small public cases; `dataclasses.replace(prop, cases=...)` gives it others, made by
the same `..._cases` functions from other shapes.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from proof_lm.block import decoder_block, feed_forward, layer_norm
from proof_lm.checks.block_mistakes import (
    WRONG_AXIS,
    WRONG_BLOCK,
    WRONG_FEED_FORWARD,
    WRONG_FORMULA,
    WRONG_GELU,
    WRONG_STREAM,
)
from proof_lm.checks.core import Case, OtherForm, Property, kind
from proof_lm.checks.general import Cases, matches

Shape = tuple[int, ...]
TOLERANCE = 1e-5
ROUNDING = "1e-5: room for a float32 answer; the mistakes it must tell apart differ by 1e-2 and more"


def numbers(value: Any, shape: Shape) -> NDArray:
    """The value as float64; OtherForm unless it has the shape and is finite."""
    wanted = f"an array of shape {shape}" if shape else "one number"
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        array = None
    if array is None or value is None or array.shape != shape:
        came = value if array is None or value is None or isinstance(value, tuple) else array
        raise OtherForm(f"{wanted} was expected, {kind(came)} came")
    if not np.isfinite(array).all():
        first = array[~np.isfinite(array)][0]
        where = f" at entry {_first(~np.isfinite(array))}" if shape else ""
        raise OtherForm(f"a finite number was expected{where}, {'NaN' if np.isnan(first) else 'an infinity'} came")
    return array


def _first(wrong: NDArray) -> str:
    """Where the first True stands, as a reader would index it."""
    return f"[{', '.join(map(str, np.argwhere(wrong)[0]))}]"


def _unequal(left: NDArray, right: NDArray, tolerance: float = TOLERANCE) -> NDArray:
    return ~(np.abs(left - right) <= tolerance)  # NaN is unequal to everything


def _others_moved(values: list, places: Sequence[tuple[int, ...]]) -> str | None:
    """values[0] is the original result, values[1:] those with one place replaced: only that row may move."""
    original = numbers(values[0], np.shape(values[0]))
    for place, value in zip(places, values[1:], strict=True):
        moved = _unequal(numbers(value, original.shape), original).any(axis=-1)
        if not moved[place]:
            return f"the row at position {list(place)} was replaced, and its own result stayed the same"
        moved[place] = False
        if moved.any():
            return (
                f"the row at position {list(place)} was replaced, and the result at {_first(moved)} changed"
            )
    return None


def _replaced_rows(rng: Generator, values: NDArray) -> tuple[list[tuple[int, ...]], list[NDArray]]:
    """Every position (all axes but the last), and the values with random numbers in that row."""
    places = list(np.ndindex(*values.shape[:-1]))
    changed = [values.copy() for _ in places]
    for place, copy in zip(places, changed, strict=True):
        copy[place] = rng.normal(scale=3.0, size=values.shape[-1])
    return places, changed


# LayerNorm ----------------------------------------------------------------------------------------------

NORM_LESSON = "lesson 03, One row at a time"


def layer_norm_cases(shapes: Sequence[Shape] = ((4, 6), (2, 3, 5))) -> Cases:
    """Random values (..., d) with gamma 1 and beta 0, then with every single row replaced."""

    def cases(rng: Generator) -> list[Case]:
        made = []
        for shape in shapes:
            values = rng.normal(rng.normal(), 3.0, shape)
            places, changed = _replaced_rows(rng, values)
            calls = tuple((x, np.ones(shape[-1]), np.zeros(shape[-1])) for x in (values, *changed))
            made.append(Case(f"values of shape {shape}, gamma 1, beta 0", calls, facts=places))
        return made

    return cases


def affine_norm_cases(shapes: Sequence[Shape] = ((4, 6), (2, 3, 5))) -> Cases:
    """Random gamma, beta and epsilon: values of usual size, and values so small that epsilon decides."""

    def cases(rng: Generator) -> list[Case]:
        made = []
        for shape in shapes:
            for size, epsilon in ((2.0, 1e-5), (0.03, 1e-3), (1.0, 0.5)):
                values = rng.normal(0.5 * size, size, shape)
                call = (values, rng.normal(1, 0.5, shape[-1]), rng.normal(size=shape[-1]), epsilon)
                label = f"values of shape {shape} and size {size:g}, epsilon {epsilon:g}"
                made.append(Case(label, (call,)))
        return made

    return cases


def constant_row_cases(shapes: Sequence[Shape] = ((3, 4), (2, 3, 5))) -> Cases:
    """Rows whose features are all equal, each row with its own constant, zero among them."""

    def cases(rng: Generator) -> list[Case]:
        made = []
        for shape in shapes:
            levels = rng.uniform(-4.0, 4.0, size=(*shape[:-1], 1))
            levels[(0,) * levels.ndim] = 0.0
            values = np.broadcast_to(levels, shape).copy()
            call = (values, rng.normal(1, 0.5, shape[-1]), rng.normal(size=shape[-1]))
            made.append(Case(f"constant rows, values of shape {shape}", (call,)))
        return made

    return cases


def _judge_standardised(case: Case, values: list) -> str | None:
    result = numbers(values[0], case.calls[0][0].shape)
    for name, got, want, room in (("mean", result.mean(-1), 0, 1e-5), ("variance", result.var(-1), 1, 1e-3)):
        wrong = _unequal(got, np.full_like(got, want), room)
        if wrong.any():
            came = f"{got[wrong][0]:.3g} came at position {_first(wrong)}"
            return f"{name} {want} over the features was expected, {came}"
    return None


def _judge_constant(case: Case, values: list) -> str | None:
    given, _, beta = case.calls[0]
    wrong = _unequal(numbers(values[0], given.shape), beta, 1e-2)
    return f"beta was expected, something else came at entry {_first(wrong)}" if wrong.any() else None


each_row_standardised = Property(
    "every position has mean 0 and variance 1 over its features",
    "LayerNorm brings each token's vector, by itself, to the same centre and the same size.",
    layer_norm_cases(),
    _judge_standardised,
    "mean 1e-5 (float32 rounding); variance 1e-3, because epsilon takes 1e-5 / variance of it",
    NORM_LESSON,
    WRONG_AXIS + WRONG_FORMULA,
)
each_position_normalised_alone = Property(
    "each position is normalised alone",
    "Replacing one row changes the normalised values of that row and of no other, in time or in the batch.",
    layer_norm_cases(),
    lambda case, values: _others_moved(values, case.facts),
    ROUNDING,
    NORM_LESSON,
    WRONG_AXIS,
)
constant_row_becomes_beta = Property(
    "a constant row becomes beta",
    "Nothing is left of equal features once their mean is gone: 0 / sqrt(epsilon) is 0, and beta remains.",
    constant_row_cases(),
    _judge_constant,
    "1e-2: a float32 mean of numbers near 4 is off by about 1e-6, and the root of epsilon divides that by 0.003",
    NORM_LESSON,
    WRONG_AXIS + WRONG_FORMULA,
)
layer_norm_matches = matches(
    layer_norm,
    affine_norm_cases(),
    name="gamma, beta and epsilon stand in their places",
    meaning="gamma * (x - mean) / sqrt(variance + epsilon) + beta, with the biased variance.",
    rtol=TOLERANCE,
    atol=TOLERANCE,
    tolerance=ROUNDING,
    lesson=NORM_LESSON,
    mistakes=WRONG_FORMULA + WRONG_AXIS,
)


# GELU and feed-forward ----------------------------------------------------------------------------------

GELU_LESSON = "lesson 03, A gate that opens gradually"
FEED_FORWARD_LESSON = "lesson 03, Every position thinks for itself"


def _exact_gelu(values: NDArray) -> NDArray:
    return values * 0.5 * (1 + np.vectorize(math.erf)(values / np.sqrt(2)))


def gelu_cases(shapes: Sequence[Shape] = ((9,), (2, 3, 5))) -> Cases:
    """Random values from -6 to 6, each call followed by the call on the negated values."""

    def cases(rng: Generator) -> list[Case]:
        drawn = [rng.uniform(-6, 6, shape) for shape in shapes]
        return [Case(f"values of shape {values.shape}", ((values,), (-values,))) for values in drawn]

    return cases


def _judge_gelu(case: Case, values: list) -> str | None:
    for (given,), value in zip(case.calls, values, strict=True):
        wrong = _unequal(numbers(value, given.shape), _exact_gelu(given), 1e-3)
        if wrong.any():
            return f"x P(Z <= x) was expected, another value came at entry {_first(wrong)}"
    return None


def _judge_mirror(case: Case, values: list) -> str | None:
    given = case.calls[0][0]
    wrong = _unequal(numbers(values[0], given.shape) - numbers(values[1], given.shape), given)
    return f"f(x) - f(-x) = x fails at entry {_first(wrong)}" if wrong.any() else None


gelu_weighs_by_normal_probability = Property(
    "GELU is x times the normal probability of x",
    "The gate is P(Z <= x), Z standard normal: almost 0 far below zero, 1/2 at zero, almost 1 far above.",
    gelu_cases(),
    _judge_gelu,
    "1e-3: the tanh form stays within 5e-4 of the exact one, and both are accepted",
    GELU_LESSON,
    WRONG_GELU,
)
gelu_mirror_differs_by_x = Property(
    "GELU of x minus GELU of -x is x",
    "The gates of x and of -x sum to one, because the normal distribution is symmetric.",
    gelu_cases(),
    _judge_mirror,
    ROUNDING,
    GELU_LESSON,
    WRONG_GELU,
)


def feed_forward_cases(sizes: Sequence[tuple[Shape, int]] = (((3, 4), 7), ((2, 3, 5), 8))) -> Cases:
    """Values (..., d) through a random layer of width d_ff, then with every single row replaced."""

    def cases(rng: Generator) -> list[Case]:
        made = []
        for shape, d_ff in sizes:
            values = rng.normal(size=shape)
            layer = tuple(
                rng.normal(size=size) for size in ((shape[-1], d_ff), d_ff, (d_ff, shape[-1]), shape[-1])
            )
            places, changed = _replaced_rows(rng, values)
            calls = tuple((x, *layer) for x in (values, *changed))
            made.append(Case(f"values of shape {shape}, d_ff = {d_ff}", calls, facts=places))
        return made

    return cases


each_position_fed_alone = Property(
    "the feed-forward layer treats each position alone",
    "Replacing one row changes the result of that row and of no other: only attention mixes positions.",
    feed_forward_cases(),
    lambda case, values: _others_moved(values, case.facts),
    ROUNDING,
    FEED_FORWARD_LESSON,
)
feed_forward_matches = matches(
    feed_forward,
    feed_forward_cases(),
    name="two linear maps with GELU between them",
    meaning="gelu(x w1 + b1) w2 + b2: widen, gate, come back to the model width.",
    rtol=2e-3,
    atol=2e-2,
    tolerance="atol 2e-2: exact GELU (5e-4 from the tanh form) is accepted after a sum of up to 33 terms",
    lesson=FEED_FORWARD_LESSON,
    mistakes=WRONG_FEED_FORWARD,
)


# The block ----------------------------------------------------------------------------------------------

BLOCK_LESSON = "lesson 03, The residual stream"
BlockSize = tuple[int, int, int, int]  # T, d, d_ff, heads
BLOCK_SIZES = ((4, 6, 10, 3), (5, 8, 12, 2))


def block_weights(rng: Generator, d: int, d_ff: int) -> tuple[tuple, tuple]:
    """One block's two tuples with gammas around 1 and betas and biases that are not zero."""

    def vectors(size: int) -> tuple[NDArray, NDArray]:
        return rng.normal(1, 0.3, size), rng.normal(scale=0.3, size=size)

    wq, wk, wv, wo = rng.normal(scale=d**-0.5, size=(4, d, d))
    w1, w2 = rng.normal(scale=d**-0.5, size=(d, d_ff)), rng.normal(scale=d_ff**-0.5, size=(d_ff, d))
    biases = rng.normal(scale=0.3, size=d_ff), rng.normal(scale=0.3, size=d)
    return (*vectors(d), wq, wk, wv, wo), (*vectors(d), w1, biases[0], w2, biases[1])


def block_cases(
    sizes: Sequence[BlockSize] = BLOCK_SIZES,
    silent_attention: bool = False,
    silent_feed_forward: bool = False,
) -> Cases:
    """Two calls per size: values (T, d), and the same with every row stretched and shifted in its own way.

    A silent sublayer returns zeros: W_O is 0, or w2 and b2 are.
    """

    def cases(rng: Generator) -> list[Case]:
        made = []
        for time, d, d_ff, heads in sizes:
            attention, mlp = block_weights(rng, d, d_ff)
            attention = (*attention[:5], attention[5] * (not silent_attention))
            mlp = (*mlp[:4], *(array * (not silent_feed_forward) for array in mlp[4:]))
            values = rng.normal(scale=2.0, size=(time, d))
            moved = values * rng.uniform(2, 4, (time, 1)) + rng.normal(scale=3.0, size=(time, 1))
            calls = tuple((x, attention, mlp, heads) for x in (values, moved))
            made.append(Case(f"T = {time}, d = {d}, d_ff = {d_ff}, heads = {heads}", calls))
        return made

    return cases


def intervention_cases(sizes: Sequence[BlockSize] = BLOCK_SIZES) -> Cases:
    """Values (T, d) of a random block, then with every single position replaced."""

    def cases(rng: Generator) -> list[Case]:
        made = []
        for time, d, d_ff, heads in sizes:
            weights = block_weights(rng, d, d_ff)
            places, changed = _replaced_rows(rng, values := rng.normal(size=(time, d)))
            calls = tuple((x, *weights, heads) for x in (values, *changed))
            made.append(Case(f"T = {time}, d = {d}, heads = {heads}", calls, facts=places))
        return made

    return cases


def stream_cases(shapes: Sequence[Shape]) -> Cases:
    """The same interventions for a layer with weights of its own: hidden (..., T, d) is the only argument."""

    def cases(rng: Generator) -> list[Case]:
        made = []
        for shape in shapes:
            places, changed = _replaced_rows(rng, values := rng.normal(size=shape))
            calls = tuple((x,) for x in (values, *changed))
            made.append(Case(f"hidden of shape {shape}", calls, facts=places))
        return made

    return cases


def _judge_future(case: Case, values: list) -> str | None:
    original = numbers(values[0], case.calls[0][0].shape)
    for place, value in zip(case.facts, values[1:], strict=True):
        moved = _unequal(numbers(value, original.shape), original).any(axis=-1)
        if not moved[place]:
            return f"position {list(place)} was replaced, and its own output stayed the same"
        moved[place[:-1]][place[-1] :] = False  # itself and what follows in its own sequence
        if moved.any():
            return f"position {list(place)} was replaced, and the output at {_first(moved)} changed with it"
    return None


def _judge_identity(case: Case, values: list) -> str | None:
    for (given, *_), value in zip(case.calls, values, strict=True):
        wrong = _unequal(numbers(value, given.shape), given)
        if wrong.any():
            return f"the input itself was expected, something else came at entry {_first(wrong)}"
    return None


def _judge_branch(case: Case, values: list) -> str | None:
    added = [
        numbers(value, given.shape) - given for (given, *_), value in zip(case.calls, values, strict=True)
    ]
    wrong = _unequal(*added, 1e-3)
    if not wrong.any():
        return None
    return f"stretching and shifting rows changed output minus input at entry {_first(wrong)}"


zero_sublayers_leave_identity = Property(
    "with silent sublayers the block is the identity",
    "If attention and feed-forward add nothing, the residual stream passes through untouched.",
    block_cases(silent_attention=True, silent_feed_forward=True),
    _judge_identity,
    ROUNDING,
    BLOCK_LESSON,
    WRONG_STREAM,
)
residual_reads_unnormalised_input = Property(
    "the residual reads the input, the branch its norm",
    "Stretching and shifting a row changes what is carried along and not what attention adds to it.",
    block_cases(silent_feed_forward=True),
    _judge_branch,
    "1e-3: epsilon makes the norm depend on the size of a row by about 1e-5",
    BLOCK_LESSON,
    WRONG_BLOCK,
)
no_later_position_is_read = Property(
    "no output depends on a later position",
    "Replacing a position changes outputs there and after it, in its own sequence; everything before stays.",
    intervention_cases(),
    _judge_future,
    ROUNDING,
    BLOCK_LESSON,
    WRONG_BLOCK,
)
decoder_block_matches = matches(
    decoder_block,
    block_cases(),
    name="norm, attention, add; norm, feed-forward, add",
    meaning="y = x + attention(norm(x)), then y + feed_forward(norm(y)).",
    rtol=2e-3,
    atol=5e-3,
    tolerance="5e-3: exact GELU (5e-4 from the tanh form) is accepted after a sum over d_ff",
    lesson=BLOCK_LESSON,
    mistakes=WRONG_BLOCK,
)
