"""Causal self-attention in NumPy: softmax, mask, one head, many heads, rotary positions.

Axes: B batch, T query time, S key time, d model width, h heads, d_h = d / h.
Sources: Vaswani et al., "Attention Is All You Need" (2017), section 3.2;
for `rope` Su et al., "RoFormer" (2021).
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def row_softmax(values: ArrayLike) -> NDArray:
    """Softmax over the last axis, exp(v_j) / sum_k exp(v_k), safe for any finite values.

    values (..., S) -> weights (..., S), each row non-negative with sum 1; float32 stays float32.
    A row of nothing but -inf (a query with no visible key) gives zeros, so that nothing is attended to and
    the gradient, weights * (upstream - sum(weights * upstream)), is zero there and not NaN.
    """
    values = np.asarray(values)
    peak = values.max(axis=-1, keepdims=True)
    peak = np.where(peak == -np.inf, 0.0, peak)  # -inf minus -inf would be NaN
    weights = np.exp(values - peak)  # largest exponent is 0: no overflow
    total = weights.sum(axis=-1, keepdims=True)
    weights /= np.where(total == 0.0, 1.0, total)
    return weights


def causal_mask(time: int) -> NDArray[np.bool_]:
    """Boolean (T, T) table, True where query i may look at key j, that is j <= i.

    Raises ValueError for time < 1.
    """
    if time < 1:
        raise ValueError(f"time must be at least 1, got {time}")
    position = np.arange(time)
    return position[None, :] <= position[:, None]


def causal_attention(query: NDArray, key: NDArray, value: NDArray) -> tuple[NDArray, NDArray]:
    """Masked scaled dot-product attention, softmax(Q K^T / sqrt(d_h) with the future at -inf) V.

    query, key, value (..., T, d_h) -> attended (..., T, d_h), weights (..., T, T); weight rows sum to one.
    """
    scores = (query / query.shape[-1] ** 0.5) @ key.swapaxes(-2, -1)  # (..., T, T)
    scores = np.where(causal_mask(scores.shape[-1]), scores, -np.inf)
    weights = row_softmax(scores)
    return weights @ value, weights


def blocked_causal_attention(
    query: NDArray, key: NDArray, value: NDArray, block: int = 32, with_weights: bool = True
) -> tuple[NDArray, NDArray | None]:
    """What `causal_attention` returns, by blocks of queries that meet no key after their own end.

    query, key, value (..., T, d_h) -> attended (..., T, d_h), weights (..., T, T) or None. Half the work, in place,
    on the (h, block, T) scores of all heads of one sequence, which stay in the processor's cache.
    """
    query = query * query.shape[-1] ** -0.5
    *leading, time, _ = query.shape
    heads, hidden = leading[-1:], ~causal_mask(min(block, time))
    attended = np.empty((*leading, time, value.shape[-1]), np.result_type(query, value))
    weights = np.zeros((*leading, time, time), query.dtype) if with_weights else None
    reach = np.vecdot(query, query) * np.maximum.accumulate(np.vecdot(key, key), axis=-1)  # scores^2 are no larger
    calm = reach[..., None] < (np.log(np.finfo(query.dtype).max) / 4) ** 2  # (..., T, 1), far from where exp overflows
    all_calm = calm.all()
    count = np.prod(heads, dtype=int)
    room = np.empty(count * len(hidden) * time, np.result_type(query, key))  # for one block's scores
    ones, totals = np.ones((time, 1), room.dtype), np.empty((*leading, time, 1), room.dtype)
    for sequence in np.ndindex(*leading[:-1]):
        keys, values = np.ascontiguousarray(key[sequence].swapaxes(-2, -1)), value[sequence]  # (h, d_h, T), (h, T, d_h)
        for start in range(0, time, block):
            end = min(start + block, time)
            rows, length = np.s_[*sequence, ..., start:end, :], end - start
            scores = room[: count * length * end].reshape(*heads, length, end)  # keys up to the last query
            np.matmul(query[rows], keys[..., :end], out=scores)
            np.copyto(scores[..., start:], -np.inf, where=hidden[:length, :length])  # no other part needs a mask
            if not all_calm:
                peak = scores.max(axis=-1, keepdims=True)
                scores -= np.where(calm[rows] | (peak == -np.inf), 0.0, peak)
            np.exp(scores, out=scores)
            total = np.matmul(scores, ones[:end], out=totals[rows])  # (h, length, 1), a sum over keys
            total[total == 0.0] = 1.0
            np.matmul(scores, values[..., :end, :], out=attended[rows])
            if with_weights:
                np.divide(scores, total, out=weights[rows][..., :end])
    attended /= totals
    return attended, weights


def single_head_attention(
    hidden: ArrayLike, wq: ArrayLike, wk: ArrayLike, wv: ArrayLike, wo: ArrayLike
) -> tuple[NDArray, NDArray, NDArray]:
    """One head of causal self-attention.

    hidden (T, d); wq, wk (d, d_h); wv (d, d_v); wo (d_v, d).
    Returns output (T, d), weights (T, T), attended (T, d_v), the weighted values before wo.
    """
    hidden = np.asarray(hidden)
    query, key, value = hidden @ wq, hidden @ wk, hidden @ wv
    attended, weights = causal_attention(query, key, value)
    return attended @ wo, weights, attended


def split_heads(values: ArrayLike, heads: int) -> NDArray:
    """Cut the width into heads and put the head axis before time: (..., T, d) -> (..., h, T, d_h).

    Raises ValueError if heads does not divide d.
    """
    values = np.asarray(values)
    *leading, time, width = values.shape
    if heads < 1 or width % heads:
        raise ValueError(f"heads must divide the width {width}, got {heads}")
    return values.reshape(*leading, time, heads, width // heads).swapaxes(-3, -2)


def merge_heads(values: ArrayLike) -> NDArray:
    """Exact inverse of `split_heads`: (..., h, T, d_h) -> (..., T, d)."""
    values = np.asarray(values)
    *leading, heads, time, head_width = values.shape
    return values.swapaxes(-3, -2).reshape(*leading, time, heads * head_width)


def multi_head_attention(
    hidden: ArrayLike, wq: ArrayLike, wk: ArrayLike, wv: ArrayLike, wo: ArrayLike, heads: int
) -> tuple[NDArray, NDArray, NDArray]:
    """Causal self-attention in `heads` subspaces of width d_h, scores scaled by sqrt(d_h).

    hidden (T, d); wq, wk, wv, wo (d, d). Leading axes before T are carried along.
    Returns output (T, d), weights (h, T, T), merged (T, d), the heads side by side before wo.
    Raises ValueError if heads does not divide d.
    """
    hidden = np.asarray(hidden)
    query, key, value = (split_heads(hidden @ weight, heads) for weight in (wq, wk, wv))  # (h, T, d_h) each
    attended, weights = blocked_causal_attention(query, key, value)
    merged = merge_heads(attended)
    return merged @ wo, weights, merged


def batched_multi_head_attention(
    hidden_batch: ArrayLike, wq: ArrayLike, wk: ArrayLike, wv: ArrayLike, wo: ArrayLike, heads: int
) -> tuple[NDArray, NDArray]:
    """`multi_head_attention` for every sequence of a batch; no sequence sees another.

    hidden_batch (B, T, d); wq, wk, wv, wo (d, d). Returns output (B, T, d), weights (B, h, T, T).
    Raises ValueError unless hidden_batch is 3-D, or if heads does not divide d.
    """
    if np.ndim(hidden_batch) != 3:
        raise ValueError(f"hidden_batch must be (B, T, d), got shape {np.shape(hidden_batch)}")
    output, weights, _ = multi_head_attention(hidden_batch, wq, wk, wv, wo, heads)
    return output, weights


def rope(values: ArrayLike, positions: ArrayLike, base: float = 10000.0) -> NDArray:
    """Rotary position embedding on the interleaved pairs (0, 1), (2, 3), ... of the last axis.

    Pair p of the vector at position m turns by the angle m * base^(-2p / d_h), so that the dot product of
    two turned vectors depends on the distance of their positions only, and lengths stay.
    values (..., T, d_h); positions (T,), or any shape that broadcasts against (..., T).
    Angles are taken in float64 whatever the dtype of values, which the result keeps.
    Raises ValueError if d_h is odd.
    """
    values = np.asarray(values)
    width = values.shape[-1]
    if width % 2:
        raise ValueError(f"values must have an even last axis to turn in pairs, got {width}")
    frequency = base ** (-np.arange(0, width, 2) / width)  # (d_h / 2,)
    angle = np.asarray(positions)[..., None] * frequency  # (T, d_h / 2)
    cos, sin = np.cos(angle), np.sin(angle)
    even, odd = values[..., 0::2], values[..., 1::2]
    turned = np.stack([even * cos - odd * sin, even * sin + odd * cos], axis=-1)  # (..., T, d_h / 2, 2)
    return turned.reshape(values.shape).astype(np.result_type(values, np.float16))


class MultiHeadAttention:
    """Causal multi-head self-attention as a layer with its own weights and biases.

    d_model d; num_heads h must divide it (ValueError); rng draws the weights, normal with std d^-0.5.
    Attributes wq, wk, wv, wo (d, d) and bq, bk, bv, bo (d,); weights (B, h, T, T)
    are those of the last call.
    """

    def __init__(self, d_model: int, num_heads: int, rng: np.random.Generator) -> None:
        if num_heads < 1 or d_model % num_heads:
            raise ValueError(f"num_heads must divide d_model {d_model}, got {num_heads}")
        self.num_heads = num_heads
        self.wq, self.wk, self.wv, self.wo = rng.normal(scale=d_model**-0.5, size=(4, d_model, d_model))
        self.bq, self.bk, self.bv, self.bo = np.zeros((4, d_model))

    def parameters(self) -> dict[str, NDArray]:
        """Every weight and bias by name, the arrays themselves and not copies."""
        return {name: getattr(self, name) for name in ("wq", "bq", "wk", "bk", "wv", "bv", "wo", "bo")}

    @property
    def parameter_count(self) -> int:
        """4 d^2 + 4 d."""
        return sum(array.size for array in self.parameters().values())

    def __call__(self, x: ArrayLike) -> NDArray:
        """x (B, T, d) -> (B, T, d). Raises ValueError for any other shape."""
        x = np.asarray(x)
        if x.ndim != 3 or x.shape[-1] != len(self.wq):
            raise ValueError(f"x must be (B, T, {len(self.wq)}), got shape {x.shape}")
        pairs = ((self.wq, self.bq), (self.wk, self.bk), (self.wv, self.bv))
        query, key, value = (split_heads(x @ weight + bias, self.num_heads) for weight, bias in pairs)
        attended, self.weights = blocked_causal_attention(query, key, value)  # (B, h, T, d_h), (B, h, T, T)
        return merge_heads(attended) @ self.wo + self.bo
