"""P5.6: what top-k and top-p leave to draw from."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from proof_lm.checks.core import Case, Mistake, Property, difference
from proof_lm.checks.general import behaves, on_any_numbers, refuses
from proof_lm.checks.p5.manners import about

LESSON = "lesson 08, Top-k and top-p"
Shape = tuple[int, ...]
FAR = 1000.0  # a fill lies so far below what is kept: a share of exp(-1000) is none


@dataclass(frozen=True)
class Filter:
    """top_k_filter and top_p_filter: the right way unless told otherwise."""

    ties: str = "first"  # "all", "last"
    order: str = "likeliest"  # "unlikeliest"
    axis: int = -1
    whole: bool = False  # over the whole array at once
    fill: float = -np.inf
    more: int = 0  # tokens kept beyond k
    reaches: str = "with"  # top-p keeps while the sum "with" or "without" the token that crosses p is below it
    one: bool = True  # top-p keeps one token at least
    all_at_one: bool = True  # top-p keeps even shares that round to zero when p is 1
    logits_as_shares: bool = False
    gives: str = "logits"  # "probabilities"
    by_size: bool = False  # top-p keeps tokens whose own share is at least p

    def top_k(self, logits: ArrayLike, k: int) -> NDArray:
        """logits (..., V): the k largest of each row stay, the others become the fill."""
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        logits = np.asarray(logits, dtype=float)
        rank = self.rank(logits)
        kept = rank < k + self.more
        if self.ties == "all":
            edge = np.where(kept, logits, np.inf).min(axis=self.axis, keepdims=True)
            kept = logits >= edge
        return self.give(logits, kept)

    def top_p(self, logits: ArrayLike, p: float) -> NDArray:
        """logits (..., V): of each row the fewest stay whose probabilities reach p, the others become the fill."""
        if not 0 < p <= 1:
            raise ValueError(f"p must lie in (0, 1], got {p}")
        logits = np.asarray(logits, dtype=float)
        if self.whole:
            return replace(self, whole=False).top_p(logits.ravel(), p).reshape(logits.shape)
        if p == 1 and self.all_at_one:
            return self.give(logits, np.ones(logits.shape, dtype=bool))
        rank = self.rank(logits)
        order = np.argsort(rank, axis=self.axis)
        ordered = np.take_along_axis(logits, order, axis=self.axis)
        ordered = ordered if self.logits_as_shares else _softmax(ordered, self.axis)
        shares = np.take_along_axis(ordered, rank, axis=self.axis)
        reached = np.cumsum(ordered, axis=self.axis) - (ordered if self.reaches == "with" else 0.0)
        reached = np.take_along_axis(reached, rank, axis=self.axis)
        kept = shares >= p if self.by_size else reached < p
        kept = kept | (rank == 0) if self.one else kept
        if self.ties == "all":
            kept = logits >= np.where(kept, logits, np.inf).min(axis=self.axis, keepdims=True)
        return self.give(logits, kept)

    def rank(self, logits: NDArray) -> NDArray:
        """The place of each entry in its row, 0 for the largest; of equals the first goes before."""
        signed = logits if self.order == "likeliest" else -logits
        if self.whole:
            return np.argsort(np.argsort(-signed.ravel(), kind="stable")).reshape(logits.shape)
        if self.ties == "last":
            signed = np.flip(signed, axis=self.axis)
        rank = np.argsort(np.argsort(-signed, axis=self.axis, kind="stable"), axis=self.axis, kind="stable")
        return np.flip(rank, axis=self.axis) if self.ties == "last" else rank

    def give(self, logits: NDArray, kept: NDArray) -> NDArray:
        filtered = np.where(kept, logits, self.fill)
        return _softmax(filtered, -1) if self.gives == "probabilities" else filtered


def _softmax(values: NDArray, axis: int) -> NDArray:
    powers = np.exp(values - values.max(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)


def top_k_filter(logits: ArrayLike, k: int) -> NDArray:
    """The reference."""
    return Filter().top_k(logits, k)


def top_p_filter(logits: ArrayLike, p: float) -> NDArray:
    """The reference."""
    return Filter().top_p(logits, p)


WRONG = {
    "unlikeliest": ("the unlikeliest tokens were kept: sort with the largest logit first", Filter(order="unlikeliest")),
    "zero": ("dropped tokens have logit 0, which still has a share: give them -inf", Filter(fill=0.0)),
    "first axis": (
        "the filter runs over the first axis: each row of V logits is filtered by itself, axis=-1",
        Filter(axis=0),
    ),
    "over all rows": ("all rows were ranked together: each row is filtered by itself", Filter(whole=True)),
    "ties": (
        "all tokens equal to the last one kept were kept too: of equals the lowest ids come first",
        Filter(ties="all"),
    ),
    "last of equals": (
        "of equal tokens the highest ids were kept: the lowest come first (a stable sort)",
        Filter(ties="last"),
    ),
    "probabilities": (
        "probabilities came: logits are expected, the kept ones unchanged",
        Filter(gives="probabilities"),
    ),
}
ONLY_K = {
    "one more": ("there is one token too many: exactly k are kept", Filter(more=1)),
    "one less": ("there is one token too few: exactly k are kept", Filter(more=-1)),
}
ONLY_P = {
    "rounded away": (
        "where p is 1, a token whose probability rounds to zero was dropped: p = 1 leaves all, whatever they sum to",
        Filter(all_at_one=False),
    ),
    "without the crossing one": (
        "the token that crosses p was dropped: the kept ones must reach p together, so it stays",
        Filter(reaches="without"),
    ),
    "nothing kept": (
        "nothing is kept when the likeliest token alone exceeds p: it always stays",
        Filter(reaches="without", one=False),
    ),
    "own share": (
        "tokens whose own probability is at least p were kept: it is their sum that reaches p",
        Filter(by_size=True),
    ),
    "sum of logits": (
        "logits were summed: p is a probability, so take the softmax first",
        Filter(logits_as_shares=True),
    ),
}


def _mistakes(method: str, *tables: dict[str, tuple[str, Filter]]) -> tuple[Mistake, ...]:
    found = {name: entry for table in tables for name, entry in table.items()}
    return tuple(Mistake(name, message, getattr(rule, method)) for name, (message, rule) in found.items())


WRONG_K, WRONG_P = _mistakes("top_k", WRONG, ONLY_K), _mistakes("top_p", WRONG, ONLY_P)


def k_properties(shapes: Sequence[Shape]) -> tuple[Property, ...]:
    """Of top_k_filter on logits of these shapes (..., V)."""

    def cases(rng: Generator) -> list[Case]:
        made = [(rng.normal(scale=2, size=shape), int(rng.integers(2, shape[-1] - 1))) for shape in shapes]
        return [Case(f"logits of shape {x.shape}, k = {k}", ((x, k), (x, 1))) for x, k in made]

    def ties(rng: Generator) -> list[Case]:
        made = []
        for shape in shapes:
            made.append(
                ("few different", rng.integers(-2, 2, size=shape).astype(float), int(rng.integers(2, shape[-1] - 1)))
            )
            made.append(("all equal", np.full(shape, rng.normal()), int(rng.integers(1, shape[-1]))))
        return [Case(f"logits of shape {x.shape}, {said}, k = {k}", ((x, k),)) for said, x, k in made]

    def many(rng: Generator) -> list[Case]:
        made = [(rng.normal(size=shape), shape[-1]) for shape in shapes]
        return [
            Case(f"logits of shape {x.shape}, k = {v}, {v + 1} and {9 * v}", ((x, v), (x, v + 1), (x, 9 * v)))
            for x, v in made
        ]

    def large(rng: Generator) -> list[Case]:
        return [Case(f"logits of shape {x.shape}, {said}", ((x, 3),)) for said, x in _large(rng, shapes)]

    def refused(rng: Generator) -> list[Case]:
        return [Case(f"k = {k}", ((rng.normal(size=shapes[0]), k),)) for k in (0, -1)]

    def one(rng: Generator) -> tuple:
        return rng.normal(scale=2, size=shapes[-1]), 3

    return about(0, (
        _filters("top_k", top_k_filter, cases, "the k likeliest of each row are left", "Each row keeps its k largest logits as "
                 "they are; all others become -inf (or a huge negative number), so that softmax gives them nothing.", WRONG_K),
        _filters("top_k", top_k_filter, ties, "of equal logits the lowest ids are left", "Exactly k tokens, however many are "
                 "equal: the first of them.", WRONG_K),
        _filters("top_k", top_k_filter, many, "k of V or more leaves all", "Where there are no more than k tokens nothing is "
                 "dropped.", WRONG_K),
        _filters("top_k", top_k_filter, large, "top-k on large and hidden logits", "Thousands are no problem, and a logit of "
                 "-inf stays out of reach.", WRONG_K),
        refuses(refused, error="ValueError", name="k below 1 is refused", lesson=LESSON,
                meaning="Nothing would be left to draw from: ValueError."),
        on_any_numbers(top_k_filter, one, LESSON, read=_without_fill),
        behaves(top_k_filter, cases, LESSON),
    ))  # fmt: skip


def p_properties(shapes: Sequence[Shape]) -> tuple[Property, ...]:
    """Of top_p_filter on logits of these shapes (..., V)."""

    def cases(rng: Generator) -> list[Case]:
        made = [
            (shape, *_clear(rng, lambda shape=shape: rng.normal(scale=2, size=shape), 0.2, 0.97)) for shape in shapes
        ]
        return [Case(f"logits of shape {shape}, p = {p:.2f}", ((x, p),)) for shape, x, p in made]

    def ties(rng: Generator) -> list[Case]:
        made = []
        for shape in shapes:
            made.append(_clear(rng, lambda shape=shape: rng.integers(-1, 2, size=shape).astype(float), 0.2, 0.9))
            made.append(_clear(rng, lambda shape=shape: np.full(shape, rng.normal()), 0.2, 0.9))
        return [Case(f"logits of shape {x.shape}, many equal, p = {p:.2f}", ((x, p),)) for x, p in made]

    def everything(rng: Generator) -> list[Case]:
        made = []
        for shape in shapes:
            for scale, said in ((1.0, "near one another"), (60.0, "so far apart that shares round to 0")):
                made.append(
                    Case(f"logits of shape {shape}, {said}, p = 1", ((rng.normal(scale=scale, size=shape), 1.0),))
                )
        return made

    def tiny(rng: Generator) -> list[Case]:
        made = [(rng.normal(size=shape), p) for shape in shapes for p in (1e-9, 1e-3)]
        return [Case(f"logits of shape {x.shape}, p = {p:g}", ((x, p),)) for x, p in made]

    def large(rng: Generator) -> list[Case]:
        made = [(said, *_clear(rng, lambda x=x: x, 0.3, 0.9)) for said, x in _large(rng, shapes)]
        return [Case(f"logits of shape {x.shape}, {said}, p = {p:.2f}", ((x, p),)) for said, x, p in made]

    def refused(rng: Generator) -> list[Case]:
        return [Case(f"p = {p}", ((rng.normal(size=shapes[0]), p),)) for p in (0.0, -0.2, 1.5)]

    def one(rng: Generator) -> tuple:
        return _clear(rng, lambda: rng.normal(scale=2, size=shapes[-1]), 0.3, 0.9)

    return about(1, (
        _filters("top_p", top_p_filter, cases, "the fewest tokens that reach p are left", "From the likeliest down, each row "
                 "keeps tokens until their probabilities together reach p; the one that crosses p stays.", WRONG_P),
        _filters("top_p", top_p_filter, ties, "of equally likely tokens the lowest ids are left", "As many as it takes, and no "
                 "more, however many are equal: the first of them.", WRONG_P),
        _filters("top_p", top_p_filter, everything, "p = 1 leaves all", "Even a token whose share rounds to zero stays.", WRONG_P),
        _filters("top_p", top_p_filter, tiny, "a tiny p leaves the likeliest", "One token at least is always left, and for a tiny "
                 "p it is one.", WRONG_P),
        _filters("top_p", top_p_filter, large, "top-p on large and hidden logits", "Shares must not overflow, and -inf has none.",
                 WRONG_P),
        refuses(refused, error="ValueError", name="p outside (0, 1] is refused", lesson=LESSON,
                meaning="p is a probability to be reached: ValueError for 0, below, and above 1."),
        on_any_numbers(top_p_filter, one, LESSON, read=_without_fill),
        behaves(top_p_filter, cases, LESSON),
    ))  # fmt: skip


def _filters(
    method: str, reference: Callable, cases: Callable, name: str, meaning: str, mistakes: tuple[Mistake, ...]
) -> Property:
    """What is kept stays as it is, what is dropped is far below all that is kept."""

    def judge(case: Case, values: list) -> str | None:
        wanted = (reference(*call) for call in case.calls)
        found = (_wrong(value, want) for value, want in zip(values, wanted, strict=True))
        return next((text for text in found if text), None)

    tolerance = "1e-6 of each logit: as given, or as float32 holds it; a fill at least 1000 below what is kept"
    return Property(name, meaning, cases, judge, tolerance, LESSON, mistakes)


def _wrong(value: Any, wanted: NDArray) -> str | None:
    given = np.asarray(value)
    if given.shape != wanted.shape or given.dtype.kind not in "fiu":
        return difference(value, wanted, 0, 0) or f"numbers were expected, {given.dtype} came"
    given = given.astype(float)
    if np.isnan(given).any():
        return "numbers were expected, NaN came"
    kept, floor = np.isfinite(wanted), np.where(np.isfinite(wanted), wanted, np.inf).min(axis=-1, keepdims=True) - FAR
    present = given > np.broadcast_to(floor, given.shape)
    wrong = np.argwhere(present != kept)
    if len(wrong):
        place = tuple(int(i) for i in wrong[0])
        row, wants = present[place[:-1]], kept[place[:-1]]
        said = "is to be dropped and was kept" if present[place] else "is to be kept and was dropped"
        return f"entry {list(place)} {said}; its row keeps {int(row.sum())} of {len(row)} tokens, {int(wants.sum())} expected"
    text = difference(np.where(kept, given, 0.0), np.where(kept, wanted, 0.0), 1e-6, 1e-6)
    return text and f"a kept logit was changed: {text}"


def _without_fill(value: Any) -> NDArray:
    """The same with one number in place of whatever is dropped, which float32 may hold otherwise."""
    return np.maximum(np.asarray(value, dtype=float), -FAR)


def _large(rng: Generator, shapes: Sequence[Shape]) -> list[tuple[str, NDArray]]:
    made = []
    for shape in shapes:
        made.append(("in the thousands", rng.normal(2000, 900, size=shape)))
        made.append(("near 5000", 5000 + rng.normal(size=shape)))
        made.append(("near -30000", rng.normal(size=shape) - 30_000))
        hidden = rng.normal(size=shape)
        hidden[..., 1::3] = -np.inf
        made.append(("every third hidden", hidden))
    return made


def _clear(rng: Generator, draw: Callable[[], NDArray], low: float, high: float) -> tuple[NDArray, float]:
    """Logits and a p that no running sum of shares comes near: rounding decides nothing."""
    while True:
        logits, p = draw(), float(rng.uniform(low, high))
        sums = np.cumsum(-np.sort(-_softmax(logits, -1), axis=-1), axis=-1)
        if np.abs(sums - p).min() > 1e-4:
            return logits, p
