"""A small language model that reads in pieces, and what is generated with it."""

from collections.abc import Callable
from typing import Any

import numpy as np

Cache = tuple[Any, Any]


def running_average(query: np.ndarray, key: np.ndarray, value: np.ndarray, cache: Cache | None) -> tuple[Any, Cache]:
    """A cheap stand-in for attention: each position gets a mean over itself and all before it.

    query, key, value (B, h, T, d_h), cache (sum, count) of what was read -> output (B, h, T, d_h), new cache.
    """
    total, count = cache or (np.zeros_like(value[..., :1, :]), 0)
    sums = total + np.cumsum(np.tanh(key) * value, axis=-2)
    seen = count + np.arange(1, value.shape[-2] + 1)[:, None]
    return np.tanh(query) * sums / np.sqrt(seen), (sums[..., -1:, :], count + value.shape[-2])


class TinyLM:
    """A causal model over a vocabulary of V tokens that looks back on at most `context_length` of them.

    `weights`: token_embedding (V, d), position_embedding (context_length, d), blocks, a list of (wq, wk, wv, wo), each
    (d, d), head (d, V). `attention` has signature and shapes of `running_average`.
    """

    def __init__(self, weights: dict, heads: int = 2, attention: Callable = running_average) -> None:
        self.weights, self.heads, self.attention = weights, heads, attention
        self.context_length = len(weights["position_embedding"])

    def read(self, token_ids: np.ndarray, cache: tuple | None = None) -> tuple[np.ndarray, tuple]:
        """Read T more tokens of each row: ids (B, T) -> logits (B, T, V), and a new cache for the next call.

        Without a cache reading starts at the first position. ValueError for ids that are no whole numbers (B, T) and
        beyond the context.
        """
        token_ids = np.asarray(token_ids)
        if token_ids.ndim != 2 or not token_ids.size or token_ids.dtype.kind not in "iu":
            raise ValueError(f"token_ids: whole numbers (B, T) expected, {token_ids.dtype} {token_ids.shape} came")
        start, states = cache or (0, [None] * len(self.weights["blocks"]))
        end = start + token_ids.shape[1]
        if end > self.context_length:
            raise ValueError(f"token_ids: position {end - 1} is beyond a context of {self.context_length}")
        x = self.weights["token_embedding"][token_ids] + self.weights["position_embedding"][start:end]
        after = []
        for (wq, wk, wv, wo), state in zip(self.weights["blocks"], states, strict=True):
            mixed, new = self.attention(*(self._split(x @ weight) for weight in (wq, wk, wv)), state)
            x = x + np.tanh(mixed.swapaxes(1, 2).reshape(x.shape)) @ wo
            after.append(new)
        return x @ self.weights["head"], (end, after)

    def _split(self, values: np.ndarray) -> np.ndarray:
        return values.reshape(*values.shape[:2], self.heads, -1).swapaxes(1, 2)


def small_model(
    seed: int = 41, vocabulary: int = 11, context_length: int = 16, attention: Callable = running_average
) -> TinyLM:
    """A model with random weights to try things on."""
    rng = np.random.default_rng(seed)
    d = 8
    blocks = [tuple(rng.normal(scale=d**-0.5, size=(d, d)) for _ in range(4)) for _ in range(2)]
    embeddings = {
        "token_embedding": rng.normal(size=(vocabulary, d)),
        "position_embedding": rng.normal(size=(context_length, d)),
    }
    return TinyLM({**embeddings, "blocks": blocks, "head": rng.normal(size=(d, vocabulary))}, attention=attention)


class Watched(TinyLM):
    """The same model, keeping a record of how many tokens of how many rows each call read."""

    def __init__(self, weights: dict, heads: int) -> None:
        super().__init__(weights, heads)
        self.reads: list[list[int]] = []

    def read(self, token_ids: np.ndarray, cache: tuple | None = None) -> tuple[np.ndarray, tuple]:
        result = super().read(token_ids, cache)
        self.reads.append(list(np.shape(token_ids)))
        return result


class Chooser:
    """Choice of the next token: the likeliest, or a draw with a generator of its own; keeps the shapes it was asked."""

    def __init__(self, seed: int | None) -> None:
        self.rng = None if seed is None else np.random.default_rng(seed)
        self.asked: list[list[int]] = []

    def __call__(self, logits: np.ndarray) -> np.ndarray:
        """logits (B, V) -> ids (B,)."""
        logits = np.asarray(logits)
        self.asked.append(list(logits.shape))
        if logits.ndim != 2:
            raise ValueError(f"choose: logits (B, V) of one position expected, shape {logits.shape} came")
        if self.rng is None:
            return logits.argmax(axis=-1)
        return (logits + 2 * self.rng.gumbel(size=logits.shape)).argmax(axis=-1)


def generated(candidate: Callable, weights: dict, heads: int, orders: list[dict]) -> Any:
    """Answers to several orders to one model, each with the shapes that were read and chosen from."""
    model, found = Watched(weights, heads), []
    for order in orders:
        model.reads = []
        choose = Chooser(order["seed"])
        chunk = [order["chunk"]] if order["chunk"] else []
        tokens = candidate(model, order["prompt"], order["new"], choose, *chunk)
        found.append({"tokens": tokens, "reads": model.reads, "asked": choose.asked})
    return found


def in_chunks(candidate: Callable, query: np.ndarray, key: np.ndarray, value: np.ndarray, lengths: list[int]) -> Any:
    """Outputs of attention read in chunks of these lengths, and each cache as handed out and at the end."""
    cache, outputs, caches, then = None, [], [], []
    ends = np.cumsum(lengths)
    for start, end in zip(ends - lengths, ends, strict=True):
        output, cache = candidate(*(part[..., start:end, :] for part in (query, key, value)), cache)
        outputs.append(output)
        caches.append(cache)
        then.append([np.array(part) for part in cache])
    return {"outputs": outputs, "then": then, "now": [list(cache) for cache in caches]}
