"""What is to be proved of a backward pass, without another backward pass to compare it with.

A candidate has the signature of its namesake in proof_lm.gradients. `dataclasses.replace(prop, cases=...)` gives a
property other cases, made by the same `..._cases` functions from other sizes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from proof_lm.attention import causal_attention, row_softmax
from proof_lm.block import decoder_block, gelu, layer_norm
from proof_lm.checks.backward_mistakes import (
    ATTENTION_MISTAKES,
    BLOCK_MISTAKES,
    LAYER_NORM_MISTAKES,
    PROJECTION_MISTAKES,
    SOFTMAX_MISTAKES,
)
from proof_lm.checks.block import block_weights
from proof_lm.checks.core import Case, Mistake, Property, difference
from proof_lm.checks.general import Cases
from proof_lm.gradients import finite_difference_gradient

Shape = tuple[int, ...]
EPSILON, RTOL, ATOL = 1e-5, 1e-6, 1e-7
ROUNDING = "rtol 1e-6, atol 1e-7: central differences with epsilon 1e-5 are good to about 1e-9 on a loss of order ten"


@dataclass(frozen=True)
class Slope:
    """The loss sum(forward(*inputs) * upstream), and what its gradient by each input is called."""

    forward: Callable
    inputs: tuple[NDArray, ...]
    upstream: NDArray
    names: tuple[str, ...]

    def numeric(self, position: int) -> NDArray:
        """Slopes by one input, every entry: central differences of two steps, so that the epsilon^2 terms cancel."""

        def loss(value: NDArray) -> float:
            inputs = (*self.inputs[:position], value, *self.inputs[position + 1 :])
            return np.sum(self.forward(*inputs) * self.upstream)

        fine, coarse = (finite_difference_gradient(loss, self.inputs[position], e) for e in (EPSILON, 2 * EPSILON))
        return (4 * fine - coarse) / 3


def _judge_slope(case: Case, values: list) -> str | None:
    slope, found = case.facts, _flat(values[0])
    if len(found) != len(slope.names):
        return f"{len(slope.names)} gradients were expected ({', '.join(slope.names)}), {len(found)} came"
    for position, (name, gradient) in enumerate(zip(slope.names, found, strict=True)):
        if text := difference(gradient, slope.numeric(position), RTOL, ATOL):
            return f"{name}: {text}"
    return None


def _flat(value: Any) -> list:
    return [leaf for item in value for leaf in _flat(item)] if isinstance(value, (tuple, list)) else [value]


def is_the_slope(of: str, cases: Cases, lesson: str, mistakes: tuple[Mistake, ...] = ()) -> Property:
    """Every entry of every gradient equals the central difference of the loss sum(output * random upstream)."""
    return Property(
        f"the gradient of {of} is the slope of the loss in every entry",
        "Moving one input entry by a small step changes the loss by the step times that entry of the gradient.",
        cases,
        _judge_slope,
        ROUNDING,
        lesson,
        mistakes,
    )


# Cases: candidates are called on random inputs and a random upstream ------------------------------------


def projection_cases(sizes: Sequence[tuple[int, int, int]] = ((4, 3, 5), (2, 6, 4))) -> Cases:
    """Sizes (T, d_in, d_out)."""

    def cases(rng: Generator) -> list[Case]:
        made = []
        for time, d_in, d_out in sizes:
            context, weight = rng.normal(size=(time, d_in)), rng.normal(scale=d_in**-0.5, size=(d_in, d_out))
            upstream = rng.normal(size=(time, d_out))
            slope = Slope(lambda w, context=context: context @ w, (weight,), upstream, ("the gradient",))
            label = f"T = {time}, d_in = {d_in}, d_out = {d_out}"
            made.append(Case(label, ((context, weight, upstream),), facts=slope))
        return made

    return cases


def softmax_cases(shapes: Sequence[Shape] = ((3, 4), (2, 3, 5))) -> Cases:
    """Weights of these shapes (..., S), made from random scores of which the last one of row 0 is masked."""

    def cases(rng: Generator) -> list[Case]:
        made = []
        for shape in shapes:
            scores, upstream = rng.normal(size=(2, *shape))
            scores[..., 0, -1] = -np.inf
            slope = Slope(row_softmax, (scores,), upstream, ("the scores' gradient",))
            made.append(Case(f"weights of shape {shape}", ((row_softmax(scores), upstream),), facts=slope))
        return made

    return cases


def attention_cases(shapes: Sequence[Shape] = ((4, 3, 2), (2, 3, 4, 5))) -> Cases:
    """Shapes (..., T, d_h, d_v)."""

    def cases(rng: Generator) -> list[Case]:
        made = []
        for *leading, width, value_width in shapes:
            query, key = rng.normal(size=(2, *leading, width))
            value, upstream = rng.normal(size=(2, *leading, value_width))
            names = ("d_query", "d_key", "d_value")
            slope = Slope(lambda *inputs: causal_attention(*inputs)[0], (query, key, value), upstream, names)
            label = f"query of shape {query.shape}, d_v = {value_width}"
            made.append(Case(label, ((query, key, value, upstream),), facts=slope))
        return made

    return cases


def one_query_cases(shapes: Sequence[Shape] = ((4, 3, 2), (2, 5, 4, 5))) -> Cases:
    """Shapes (..., T, d_h, d_v); one call per position i, whose upstream is zero at every other position."""

    def cases(rng: Generator) -> list[Case]:
        made = []
        for *leading, width, value_width in shapes:
            query, key = rng.normal(size=(2, *leading, width))
            value, upstream = rng.normal(size=(2, *leading, value_width))
            only = [upstream * (np.arange(leading[-1]) == i)[:, None] for i in range(leading[-1])]
            calls = tuple((query, key, value, alone) for alone in only)
            made.append(Case(f"query of shape {query.shape}, a loss on one position", calls))
        return made

    return cases


def layer_norm_cases(shapes: Sequence[Shape] = ((3, 4), (2, 3, 5)), epsilons: Sequence[float] = (1e-5, 0.1)) -> Cases:
    """Shapes (..., d); the second epsilon is large enough to matter."""

    def cases(rng: Generator) -> list[Case]:
        made = []
        for shape, epsilon in ((shape, epsilon) for shape in shapes for epsilon in epsilons):
            values, upstream = rng.normal(0.7, 1.5, shape), rng.normal(size=shape)
            gamma, beta = rng.normal(1, 0.3, shape[-1]), rng.normal(size=shape[-1])
            names = ("d_values", "d_gamma", "d_beta")
            slope = Slope(lambda *x, e=epsilon: layer_norm(*x, e), (values, gamma, beta), upstream, names)
            label = f"values of shape {shape}, epsilon = {epsilon:g}"
            made.append(Case(label, ((values, gamma, epsilon, upstream),), facts=slope))
        return made

    return cases


def gelu_cases(shapes: Sequence[Shape] = ((9,), (3, 4))) -> Cases:
    """Values from -4 to 4."""

    def cases(rng: Generator) -> list[Case]:
        drawn = [(rng.uniform(-4, 4, shape), rng.normal(size=shape)) for shape in shapes]
        return [
            Case(f"values of shape {v.shape}", ((v, u),), facts=Slope(gelu, (v,), u, ("the gradient",)))
            for v, u in drawn
        ]

    return cases


def block_cases(sizes: Sequence[tuple[int, int, int, int]] = ((3, 6, 5, 3), (4, 4, 7, 2))) -> Cases:
    """Sizes (T, d, d_ff, heads)."""

    def cases(rng: Generator) -> list[Case]:
        made = []
        for time, d, d_ff, heads in sizes:
            attention, mlp = block_weights(rng, d, d_ff)
            values, upstream = rng.normal(size=(2, time, d))
            names = ["values", "gamma1", "beta1", "wq", "wk", "wv", "wo", "gamma2", "beta2", "w1", "b1", "w2", "b2"]
            slope = Slope(
                lambda x, *w, heads=heads: decoder_block(x, w[:6], w[6:], heads),
                (values, *attention, *mlp),
                upstream,
                tuple(f"d_{name}" for name in names),
            )
            label = f"T = {time}, d = {d}, d_ff = {d_ff}, heads = {heads}"
            made.append(Case(label, ((values, attention, mlp, heads, upstream),), facts=slope))
        return made

    return cases


# Properties ---------------------------------------------------------------------------------------------


def _judge_projection(case: Case, values: list) -> str | None:
    if not isinstance(values[0], (tuple, list)) or len(values[0]) != 2:
        return "(loss, gradient) was expected, something else came"
    return _judge_slope(case, [values[0][1]])


def _judge_rows_sum_to_zero(case: Case, values: list) -> str | None:
    value = values[0][0] if isinstance(values[0], (tuple, list)) else values[0]
    rows = np.asarray(value, dtype=np.float64).sum(axis=-1)
    wrong = ~(np.abs(rows) <= ATOL)  # NaN is no zero
    return f"a row sum of zero was expected, row {np.argwhere(wrong)[0].tolist()} has another" if wrong.any() else None


def _judge_past_only(case: Case, values: list) -> str | None:
    for i, gradients in enumerate(values):
        for name, gradient in zip(("d_query", "d_key", "d_value"), gradients, strict=True):
            reached = (np.asarray(gradient) != 0).any(axis=-1)  # (..., T), NaN counts as reached
            wrong = reached[..., i + 1 :] if name != "d_query" else np.delete(reached, i, axis=-1)
            if wrong.any():
                reads = "a query is read at its own position alone" if name == "d_query" else "it is hidden from there"
                return f"{name}: a loss on position {i} reaches another position; {reads}"
    return None


projection_gradient_is_the_slope = Property(
    "the gradient of the projection is the slope of the loss in every entry",
    "Moving one entry of the matrix by a small step changes the loss by the step times that entry of the gradient.",
    projection_cases(),
    _judge_projection,
    ROUNDING,
    "lesson 04, One matrix",
    PROJECTION_MISTAKES,
)
softmax_gradient_is_the_slope = is_the_slope("softmax", softmax_cases(), "lesson 04, Softmax", SOFTMAX_MISTAKES)
attention_gradient_is_the_slope = is_the_slope(
    "attention", attention_cases(), "lesson 04, Attention", ATTENTION_MISTAKES
)
layer_norm_gradient_is_the_slope = is_the_slope(
    "LayerNorm", layer_norm_cases(), "lesson 04, LayerNorm", LAYER_NORM_MISTAKES
)
gelu_gradient_is_the_slope = is_the_slope("GELU", gelu_cases(), "lesson 04, GELU and the feed-forward layer")
block_gradient_is_the_slope = is_the_slope("the block", block_cases(), "lesson 04, The whole block", BLOCK_MISTAKES)

score_gradients_sum_to_zero = Property(
    "the gradients of a row of scores sum to zero",
    "Softmax does not change when a constant is added to a row, so the slope along that direction is zero.",
    softmax_cases(),
    _judge_rows_sum_to_zero,
    "1e-7: rounding of a short sum",
    "lesson 04, Softmax",
    SOFTMAX_MISTAKES,
)
norm_gradients_sum_to_zero = Property(
    "the gradients of a normalised row sum to zero",
    "LayerNorm does not change when a constant is added to a row, so the slope along that direction is zero.",
    layer_norm_cases(),
    _judge_rows_sum_to_zero,
    "1e-7: rounding of a short sum",
    "lesson 04, LayerNorm",
    LAYER_NORM_MISTAKES,
)
future_gets_no_gradient = Property(
    "a loss on one position sends no gradient to later ones",
    "What the mask hides on the way forward has no influence, so its slope is exactly zero.",
    one_query_cases(),
    _judge_past_only,
    "exact: a weight of zero multiplies everything that would flow there",
    "lesson 04, Attention",
    ATTENTION_MISTAKES,
)
