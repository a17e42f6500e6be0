"""Known mistakes in softmax, mask, heads, attention and rotary positions, and the sentence that names each."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from proof_lm.attention import causal_mask, merge_heads, rope, row_softmax, split_heads
from proof_lm.checks.core import Mistake

# Softmax: candidates take (values) ---------------------------------------------------------------------


def naive_softmax(values: NDArray) -> NDArray:
    """exp as it stands: overflows above 709 in float64."""
    return np.exp(values) / np.exp(values).sum(axis=-1, keepdims=True)


def softmax_over_queries(values: NDArray) -> NDArray:
    """Shares over the axis before the last: columns sum to one."""
    return row_softmax(values.swapaxes(-2, -1)).swapaxes(-2, -1) if values.ndim > 1 else row_softmax(values)


def _one_peak(values: NDArray) -> NDArray:
    weights = np.exp(values - np.max(values))
    return weights / weights.sum(axis=-1, keepdims=True)


def _peak_by_row(values: NDArray) -> NDArray:
    weights = np.exp(values - values.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def _guarded(powers: NDArray) -> NDArray:
    total = powers.sum(axis=-1, keepdims=True)
    return powers / np.where(total == 0, 1, total)


WRONG_STABILITY = tuple(
    Mistake(name, message, candidate)
    for name, message, candidates in (
        (
            "naive softmax",
            "exp overflows: subtract each row's largest value first",
            (naive_softmax, lambda values: _guarded(np.exp(values))),
        ),
        (
            "one peak for all rows",
            "the largest value of the whole table was subtracted, and rows far below it vanish: use each row's own",
            (_one_peak, lambda values: _guarded(np.exp(values - np.max(values)))),
        ),
    )
    for candidate in candidates
)
WRONG_MASKED_ROW = (
    Mistake(
        "masked row shared evenly",
        "a row of nothing but -inf became equal weights: it shares out nothing, zeros are asked",
        lambda values: row_softmax(np.maximum(values, -1e30)),
    ),
    *(
        Mistake(name, "-inf minus -inf and 0 / 0 are NaN: a row whose largest value is -inf needs care", candidate)
        for name, candidate in (
            ("NaN in a masked row, naive", naive_softmax),
            ("NaN in a masked row", _peak_by_row),
            ("NaN in a masked row, one peak", _one_peak),
        )
    ),
)

# Mask: candidates take (time) --------------------------------------------------------------------------


def open_mask(time: int) -> NDArray[np.bool_]:
    """Nothing hidden."""
    return np.ones((time, time), dtype=bool)


def strict_mask(time: int) -> NDArray[np.bool_]:
    """The diagonal hidden too, so that the first query sees nothing."""
    return np.tri(time, k=-1, dtype=bool)


def transposed_mask(time: int) -> NDArray[np.bool_]:
    """Past and future swapped."""
    return np.tri(time, dtype=bool).T


WRONG_MASK = (
    Mistake("open mask", "nothing is hidden: a query sees later keys", open_mask),
    Mistake("strict mask", "a query must see its own key: use <=, not <", strict_mask),
    Mistake("transposed mask", "the table is transposed: rows are queries, columns keys", transposed_mask),
    Mistake(
        "one step ahead",
        "query i sees key i + 1 too: the last key it may see is its own, j <= i",
        lambda time: np.tri(time, k=1, dtype=bool),
    ),
    Mistake("inverted mask", "the table is inverted: True means visible", lambda time: ~causal_mask(time)),
    Mistake("mask of numbers", "zeros and ones came: True and False are expected", np.tri),
)

# Heads: candidates take (values, heads) or (values) ----------------------------------------------------


def split_without_transpose(values: NDArray, heads: int) -> NDArray:
    """The right shape (..., h, T, d_h) by reshape alone, which cuts time into heads."""
    *leading, time, width = values.shape
    return values.reshape(*leading, heads, time, width // heads)


def merge_without_transpose(values: NDArray) -> NDArray:
    """The right shape (..., T, d) by reshape alone, which mixes positions."""
    *leading, heads, time, head_width = values.shape
    return values.reshape(*leading, time, heads * head_width)


def _split_interleaved(values: NDArray, heads: int) -> NDArray:
    *leading, time, width = values.shape
    return np.moveaxis(values.reshape(*leading, time, width // heads, heads), -1, -3)


def _heads_after_time(values: NDArray, heads: int) -> NDArray:
    return values.reshape(*values.shape[:-1], heads, -1)


WRONG_SPLIT = (
    Mistake(
        "split without transpose",
        "the shape is right, but time was cut into heads: reshape to (T, h, d_h), then move the head axis",
        split_without_transpose,
    ),
    Mistake(
        "interleaved heads",
        "a head takes every h-th feature: reshape to (T, h, d_h), in that order",
        _split_interleaved,
    ),
    Mistake("head axis after time", "the head axis must stand before time: a transpose is missing", _heads_after_time),
)
WRONG_MERGE = (
    Mistake(
        "merge without transpose",
        "the shape is right, but positions are mixed: move the head axis back before the reshape",
        merge_without_transpose,
    ),
    Mistake(
        "heads interleaved",
        "the heads' features are interleaved: lay whole heads side by side, each with its d_h features together",
        lambda values: np.moveaxis(values, -3, -1).reshape(*values.shape[:-3], values.shape[-2], -1),
    ),
)

# Attention: candidates take (hidden, wq, wk, wv, wo[, heads]) ------------------------------------------


def mistaken_attention(
    *,
    softmax: Callable = row_softmax,
    divisor: Callable = lambda query, hidden: query.shape[-1] ** 0.5,
    mask: Callable = causal_mask,
    fill: float = -np.inf,
    late_mask: bool = False,
    split: Callable = split_heads,
    merge: Callable = merge_heads,
    order: str = "qkv",
    average: Callable = np.matmul,
    project: bool = True,
    residual: bool = False,
) -> Callable:
    """Attention with one thing done differently; takes and returns what the three functions of the course do.

    fill is what hidden scores become; late_mask hides after softmax; order says which of wq, wk, wv makes query, key and value; average applies the
    weights to the values; project False leaves wo out; residual adds the input.
    """

    def attention(hidden: NDArray, wq: NDArray, wk: NDArray, wv: NDArray, wo: NDArray, heads: int = 0) -> tuple:
        projected = {"q": hidden @ wq, "k": hidden @ wk, "v": hidden @ wv}
        query, key, value = (split(projected[name], heads) if heads else projected[name] for name in order)
        scores = query @ key.swapaxes(-2, -1) / divisor(query, hidden)
        visible = mask(scores.shape[-1])
        weights = softmax(scores) * visible if late_mask else softmax(np.where(visible, scores, fill))
        attended = average(weights, value)
        attended = merge(attended) if heads else attended
        output = (attended @ wo if project else attended) + (hidden if residual else 0)
        return (output, weights) if hidden.ndim == 3 else (output, weights, attended)

    return attention


def _wrong(table: tuple[tuple[str, str, dict], ...]) -> tuple[Mistake, ...]:
    return tuple(Mistake(name, message, mistaken_attention(**change)) for name, message, change in table)


WRONG_ATTENTION = _wrong(
    (
        ("no mask", "later keys are not hidden", {"mask": open_mask}),
        ("strict mask", "a query must see its own key", {"mask": strict_mask}),
        ("transposed mask", "past and future are swapped in the mask", {"mask": transposed_mask}),
        ("late mask", "the mask came after softmax: it must come before", {"late_mask": True}),
        (
            "zeros in place of -inf",
            "hidden scores were set to 0, and exp(0) is 1: a hidden key gets a weight unless its score is -inf",
            {"fill": 0.0},
        ),
        ("softmax over queries", "softmax runs over queries", {"softmax": softmax_over_queries}),
        ("no scale", "scores are not divided by the root of d_h", {"divisor": lambda query, hidden: 1}),
        (
            "scale without root",
            "scores are divided by d_h, not by its root",
            {"divisor": lambda query, hidden: query.shape[-1]},
        ),
        (
            "scale by model width",
            "scores are divided by the root of d, not of d_h",
            {"divisor": lambda query, hidden: hidden.shape[-1] ** 0.5},
        ),
        ("queries and keys swapped", "wk makes the queries and wq the keys", {"order": "kqv"}),
        ("keys as values", "wk makes the values too", {"order": "qkk"}),
        (
            "weights transposed in the average",
            "the weights are transposed where they average the values: row i of them belongs to query i, weights @ value",
            {"average": lambda weights, value: weights.swapaxes(-2, -1) @ value},
        ),
        ("output matrix left out", "the output is not multiplied by wo", {"project": False}),
        ("residual added", "the input was added to the output: the residual belongs to the block", {"residual": True}),
    )
)
WRONG_LARGE = _wrong(
    (("softmax overflows", "exp overflows for large scores: subtract each row's largest one first",
      {"softmax": naive_softmax}),)
)  # fmt: skip
WRONG_MULTI_HEAD = _wrong(
    (
        (
            "reshape alone",
            "heads are split and merged by reshape alone: a transpose is missing in both",
            {"split": split_without_transpose, "merge": merge_without_transpose},
        ),
        (
            "split without transpose",
            "a transpose is missing where heads are split",
            {"split": split_without_transpose},
        ),
        (
            "merge without transpose",
            "a transpose is missing where heads are merged",
            {"merge": merge_without_transpose},
        ),
        ("interleaved heads", "a head takes every h-th feature", {"split": _split_interleaved}),
    )
)

# Rotary positions: candidates take (values, positions, base) -------------------------------------------


def half_split_rope(values: NDArray, positions: NDArray, base: float = 10000.0) -> NDArray:
    """Features p and p + d_h / 2 turned as a pair, the other convention in use."""
    order = np.arange(values.shape[-1]).reshape(2, -1).T.ravel()  # 0, d/2, 1, d/2 + 1, ...
    turned = np.empty_like(values)
    turned[..., order] = rope(values[..., order], positions, base)
    return turned


def _turn(turn: Callable) -> Callable:
    """rope with every pair (a, b) replaced by turn(a, b, cos, sin)."""

    def candidate(values: NDArray, positions: NDArray, base: float = 10000.0) -> NDArray:
        width = values.shape[-1]
        angle = np.asarray(positions)[..., None] * base ** (-np.arange(0, width, 2) / width)
        pair = turn(values[..., 0::2], values[..., 1::2], np.cos(angle), np.sin(angle))
        return np.stack(pair, axis=-1).reshape(values.shape)

    return candidate


WRONG_ROPE = (
    Mistake(
        "half-split pairs", "features half a width apart are paired: pair neighbours, (0, 1), (2, 3)", half_split_rope
    ),
    Mistake(
        "backwards",
        "pairs turn backwards: check the signs of the sine",
        lambda values, positions, base=10000.0: rope(values, -np.asarray(positions), base),
    ),
    Mistake(
        "positions ignored",
        "positions are counted from zero instead of taken from the argument",
        lambda values, positions, base=10000.0: rope(values, np.arange(values.shape[-2]), base),
    ),
    *(
        Mistake(
            name,
            "one sign of the sine is wrong: (a cos - b sin, a sin + b cos), a minus in the first and a plus in the second",
            _turn(turn),
        )
        for name, turn in (
            ("two plus signs", lambda a, b, c, s: (a * c + b * s, a * s + b * c)),
            ("two minus signs", lambda a, b, c, s: (a * c - b * s, b * c - a * s)),
            ("reflection", lambda a, b, c, s: (a * c + b * s, a * s - b * c)),
        )
    ),
    Mistake(
        "second line reads the new first",
        "the second feature is made from the new first one: keep the old a and b until both are turned",
        _turn(lambda a, b, c, s: (a * c - b * s, (a * c - b * s) * s + b * c)),
    ),
    Mistake(
        "positions from one",
        "positions are one too large: take them as they are given",
        lambda values, positions, base=10000.0: rope(values, np.asarray(positions) + 1, base),
    ),
    Mistake(
        "degrees",
        "the angles were taken for degrees: they are radians, as np.cos takes them",
        lambda values, positions, base=10000.0: rope(values, np.deg2rad(positions), base),
    ),
    Mistake(
        "two twice",
        "the exponent is -2p / d_h with p = 0, 1, ...: its 2 is there twice; np.arange(0, d_h, 2) is 2p already",
        lambda values, positions, base=10000.0: rope(values, positions, base**2),
    ),
    Mistake(
        "base ignored",
        "the base is fixed instead of taken from the argument",
        lambda values, positions, base=10000.0: rope(values, positions),
    ),
    Mistake(
        "half the exponent",
        "the exponent is -2p / d_h: its 2 is missing",
        lambda values, positions, base=10000.0: rope(values, positions, base**0.5),
    ),
)
