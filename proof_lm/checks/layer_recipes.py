"""How a decoder's layers compute, in NumPy, step by step: the right way, and every wrong way with a name.

A recipe computes with weights by role: wq, wk, wv, wo, w1, w2 (inputs, outputs) with biases bq … b2,
gamma1, beta1, gamma2, beta2. Axes: B batch, T time, S key, d width, h heads, d_h head width.
"""

import math
from dataclasses import dataclass

import numpy as np

from proof_lm.attention import rope
from proof_lm.block import gelu

Array = np.ndarray
Weights = dict[str, Array]
ERF = np.frompyfunc(math.erf, 1, 1)


@dataclass(frozen=True)
class Recipe:
    """The right way unless told otherwise; each field names one decision and its values say what is done."""

    norm: str = "pre"  # "post", "branch", "none first", "none second", "first twice", "residual", "over time", "unbiased"
    epsilon: float = 1e-5
    scale: str = "head"  # "width", "none", "times", "time"
    mask: str = "before"  # "none", "after", "diagonal", "past", "zero", "square", "first chunk"
    softmax: str = "keys"  # "queries", "heads"
    split: str = "transpose"  # "view", "one", "interleave"
    merge: str = "transpose"  # "view"
    value: str = "value"  # "key", "input"
    query: str = "query"  # "key"
    out: bool = True
    residual: str = "both"  # "no first", "no second", "input twice", "parallel"
    activation: str = "gelu"  # exact; or "gelu_tanh", "relu", "silu", "none", "after"
    rotate: str = "no"  # "pairs", "halves", "values too", "queries", "backwards", "before the split"
    base: float = 10_000.0
    widths: str = "head"  # of what width the exponents are shares: "model"
    offset: str = "goes on"  # "restarts", "one late", "turned twice", "keys only", "kept unturned"
    cache: str = "grows"  # "ignored", "last chunk"

    def block(self, x: Array, w: Weights, heads: int) -> Array:
        """A decoder block: x (B, T, d) -> (B, T, d)."""
        if self.norm == "post":
            middle = self._norm(x + self.attention(x, w, heads), w, 1)
            return self._norm(middle + self._mlp(middle, w), w, 2)
        if self.norm == "branch":
            middle = x + self._norm(self.attention(x, w, heads), w, 1)
            return middle + self._norm(self._mlp(middle, w), w, 2)
        normed = x if self.norm == "none first" else self._norm(x, w, 1)
        branch = self.attention(normed, w, heads)
        first = normed if self.norm == "residual" else x
        middle = branch if self.residual == "no first" else first + branch
        read = x if self.residual == "parallel" else middle
        if self.norm != "none second":
            read = self._norm(read, w, 1 if self.norm == "first twice" else 2)
        branch = self._mlp(read, w)
        second = {"no second": 0.0, "input twice": x}.get(self.residual, read if self.norm == "residual" else middle)
        return second + branch

    def attention(self, x: Array, w: Weights, heads: int) -> Array:
        """Causal attention over a whole sequence: (B, T, d) -> (B, T, d)."""
        return self.chunks(x, w, heads, [x.shape[1]])

    def chunks(self, x: Array, w: Weights, heads: int, chunks: list[int]) -> Array:
        """The same in chunks of these lengths, each with the keys and values of those before it."""
        pieces, keys, values, start = [], None, None, 0
        for length in chunks:
            piece = x[:, start : start + length]
            held = 0 if keys is None else keys.shape[-2]
            query, key, value = self._project(piece, w, heads, held)
            if keys is not None and self.cache != "ignored":
                if self.offset == "turned twice":
                    keys = rope(keys, np.arange(keys.shape[-2]), self.base)
                key = np.concatenate((keys, key), axis=-2)
                value = np.concatenate((values, value), axis=-2)
            last = self.cache == "last chunk" and keys is not None
            keys, values = (key[..., -length:, :], value[..., -length:, :]) if last else (key, value)
            if self.offset == "kept unturned":
                own = -np.arange(held, held + length)
                keys = np.concatenate((keys[..., :-length, :], rope(keys[..., -length:, :], own, self.base)), axis=-2)
            pieces.append(self._attend(query, key, value, w, x.shape[-1]))
            start += length
        return np.concatenate(pieces, axis=1)

    def _project(self, x: Array, w: Weights, heads: int, start: int) -> tuple[Array, ...]:
        query, key, value = (x @ w["w" + name] + w["b" + name] for name in "qkv")
        query, value = (key if self.query == "key" else query), {"key": key, "input": x}.get(self.value, value)
        steps, base = np.arange(x.shape[1]), self.base ** (1 / heads if self.widths == "model" else 1)
        late = steps + {"restarts": 0, "one late": max(start - 1, 0)}.get(self.offset, start)
        if self.rotate == "before the split":
            query, key = rope(query, late, base), rope(key, late, base)
        query, key, value = (self._split(part, heads) for part in (query, key, value))
        if self.rotate in ("no", "before the split"):
            return query, key, value
        turn = _turn_halves if self.rotate == "halves" else rope
        sign = -1 if self.rotate == "backwards" else 1
        query = turn(query, steps if self.offset == "keys only" else late, base)
        if self.rotate != "queries":
            key = turn(key, sign * late, base)
        return query, key, turn(value, late, base) if self.rotate == "values too" else value

    def _split(self, values: Array, heads: int) -> Array:
        B, T, d = values.shape
        if self.split == "one":
            return values[:, None]
        if self.split == "view":
            return values.reshape(B, heads, T, d // heads)
        if self.split == "interleave":
            return values.reshape(B, T, d // heads, heads).transpose(0, 3, 1, 2)
        return values.reshape(B, T, heads, d // heads).transpose(0, 2, 1, 3)

    def _attend(self, query: Array, key: Array, value: Array, w: Weights, d: int) -> Array:
        B, _, T, width = query.shape
        S = key.shape[-2]
        factor = {"width": d**-0.5, "none": 1.0, "times": width**0.5, "time": T**-0.5}.get(self.scale, width**-0.5)
        scores = query @ key.swapaxes(-2, -1) * factor  # (B, h, T, S)
        latest = {"square": 0, "diagonal": S - T - 1}.get(self.mask, S - T)  # the first query's last key
        seen = np.tri(T, S, latest, bool)
        if self.mask == "first chunk" and S > T:
            seen[...] = True
        if self.mask == "past":
            seen = np.triu(np.ones((T, S), bool))
        if self.mask == "zero":
            scores = scores * seen
        elif self.mask not in ("none", "after"):
            scores = np.where(seen, scores, -np.inf)
        axis = {"queries": -2, "heads": 1}.get(self.softmax, -1)
        weights = np.exp(scores - scores.max(axis=axis, keepdims=True))
        weights = weights / weights.sum(axis=axis, keepdims=True)
        if self.mask == "after":
            weights = weights * seen
        heads = weights @ value  # (B, h, T, d_h)
        merged = (heads if self.merge == "view" else heads.transpose(0, 2, 1, 3)).reshape(B, T, d)
        return merged @ w["wo"] + w["bo"] if self.out else merged

    def _mlp(self, x: Array, w: Weights) -> Array:
        hidden = x @ w["w1"] + w["b1"]
        if self.activation == "after":
            return _activate("gelu", hidden @ w["w2"] + w["b2"])
        return _activate(self.activation, hidden) @ w["w2"] + w["b2"]

    def _norm(self, x: Array, w: Weights, number: int) -> Array:
        return self.layer_norm(x, w[f"gamma{number}"], w[f"beta{number}"])

    def layer_norm(self, x: Array, gamma: Array, beta: Array) -> Array:
        """LayerNorm over the features, or over whatever this recipe takes for them."""
        axis, ddof = (1 if self.norm == "over time" else -1), int(self.norm == "unbiased")
        variance = x.var(axis=axis, keepdims=True, ddof=ddof)
        return gamma * (x - x.mean(axis=axis, keepdims=True)) / np.sqrt(variance + self.epsilon) + beta


def _activate(name: str, x: Array) -> Array:
    if name == "gelu":
        return 0.5 * x * (1 + ERF(x / math.sqrt(2)).astype(float))
    plain = {"gelu_tanh": gelu, "relu": lambda v: np.maximum(v, 0), "silu": lambda v: v / (1 + np.exp(-v))}
    return plain.get(name, lambda v: v)(x)


def _turn_halves(heads: Array, positions: Array, base: float) -> Array:
    half = heads.shape[-1] // 2
    order = np.arange(2 * half).reshape(2, half).T.ravel()  # (0, half), (1, half + 1), ...
    turned = np.empty_like(heads)
    turned[..., order] = rope(heads[..., order], positions, base)
    return turned
