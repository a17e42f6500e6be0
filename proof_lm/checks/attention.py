"""What is to be proved of softmax, mask, heads, attention, batch and rotary positions.

A candidate has the signature of its namesake in proof_lm.attention. Every function here makes a property for given
sizes, so that a lesson proves it on small ones and a grader on many.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from proof_lm.attention import (
    batched_multi_head_attention,
    causal_mask,
    merge_heads,
    multi_head_attention,
    rope,
    row_softmax,
    single_head_attention,
    split_heads,
)
from proof_lm.checks.attention_mistakes import (
    WRONG_ATTENTION,
    WRONG_MASK,
    WRONG_MASKED_ROW,
    WRONG_MERGE,
    WRONG_MULTI_HEAD,
    WRONG_ROPE,
    WRONG_SPLIT,
    WRONG_STABILITY,
)
from proof_lm.checks.core import Case, OtherForm, Property, kind
from proof_lm.checks.general import Cases, matches, refuses

Shape = tuple[int, ...]
TOLERANCE = 1e-5
ROUNDING = "1e-5 on numbers of order one: room for a float32 answer, far below what any mistake does"


@dataclass(frozen=True)
class Sizes:
    """Sizes of one call: no heads means single-head attention, no batch means one sequence."""

    time: int
    width: int
    heads: int = 0
    batch: int = 0
    head_width: int = 0  # of a single head whose width is not d
    value_width: int = 0  # of a single head whose values are not as wide as its queries

    def __str__(self) -> str:
        named = {"B": self.batch, "T": self.time, "d": self.width, "h": self.heads, "d_h": self.head_width}
        named["d_v"] = self.value_width
        return ", ".join(f"{name} = {size}" for name, size in named.items() if size)

    def draw(self, rng: Generator) -> tuple:
        """hidden, wq, wk, wv, wo and, where there are heads, their number; queries and keys of unit size."""
        hidden = rng.normal(size=(self.batch or 1, self.time, self.width))
        inner = self.head_width or self.width
        outer = self.value_width or inner
        shapes = [(self.width, inner)] * 2 + [(self.width, outer), (outer, self.width)]
        weights = (rng.normal(scale=shape[0] ** -0.5, size=shape) for shape in shapes)
        return (hidden if self.batch else hidden[0], *weights, *([self.heads] if self.heads else []))


SINGLE = (Sizes(5, 6), Sizes(4, 7, head_width=3))
MULTI = (Sizes(5, 6, heads=2), Sizes(4, 15, heads=3))
BATCHED = (Sizes(5, 12, heads=3, batch=2), Sizes(4, 10, heads=2, batch=3))


def _first(wrong: NDArray) -> list[int]:
    return np.argwhere(wrong)[0].tolist()


def _unequal(left: NDArray, right: NDArray) -> NDArray:
    return ~(np.abs(left - right) <= TOLERANCE)  # NaN is unequal to everything


# Softmax and mask --------------------------------------------------------------------------------------

SOFTMAX_LESSON = "lesson 01, Scores become weights"
STABLE_LESSON = "lesson 01, Numbers that overflow"
MASK_LESSON = "lesson 01, The mask"


def rows_sum_to_one(shapes: Sequence[Shape] = ((5,), (3, 4), (2, 3, 5))) -> Property:
    """Of row_softmax."""

    def cases(rng: Generator) -> list[Case]:
        return [Case(f"values of shape {shape}", ((rng.normal(scale=2, size=shape),),)) for shape in shapes]

    def judge(case: Case, values: list) -> str | None:
        return _row_sums(np.asarray(values[0]))

    meaning = "Each row holds shares of one whole: none is negative, and over the last axis they sum to one."
    return Property("rows sum to one over keys", meaning, cases, judge, ROUNDING, SOFTMAX_LESSON)


def _row_sums(weights: NDArray) -> str | None:
    """What is wrong with weights whose rows should sum to one, and over which axis they do instead."""
    if not (weights >= 0).all():
        return f"the weight {_first(~(weights >= 0))} is negative or NaN"
    wrong = _unequal(weights.sum(axis=-1), 1)
    if not wrong.any():
        return None
    text = f"row {_first(wrong)} does not sum to one"
    if weights.ndim > 1 and not _unequal(weights.sum(axis=-2), 1).any():
        return f"{text}: columns sum to one but rows do not, so softmax runs over queries"
    if weights.ndim > 2 and not _unequal(weights.sum(axis=-3), 1).any():
        return f"{text}: sums over the axis before them are one, so softmax runs over heads or sequences"
    if not _unequal(weights.sum(), 1):
        return f"{text}: all entries together do, so softmax runs over the whole table"
    return text


def softmax_is_stable(shapes: Sequence[Shape] = ((2, 2), (3, 4))) -> Property:
    """Of row_softmax, on values that are large, very negative, or far apart from row to row."""

    def cases(rng: Generator) -> list[Case]:
        made = [Case("values [[1000, 0], [0, -1000]]", ((np.array([[1000.0, 0.0], [0.0, -1000.0]]),),))]
        for shape in shapes:
            for level in (0.0, 2e3, -2e3):
                made.append(Case(f"shape {shape}, around {level:g}", ((level + rng.normal(size=shape),),)))
            steps = np.linspace(-4e3, 4e3, shape[-2])[:, None]
            made.append(Case(f"shape {shape}, rows far apart", ((steps + rng.normal(size=shape),),)))
        return made

    return matches(
        row_softmax,
        cases,
        name="softmax is stable",
        meaning="Only differences within a row count, so no size of the values gives an infinity or NaN.",
        rtol=1e-3,
        atol=TOLERANCE,
        tolerance="1e-3 of each weight: float32 holds values near 2000 to about 1e-4",
        lesson=STABLE_LESSON,
        mistakes=WRONG_STABILITY,
    )


def masked_row_is_zero(shapes: Sequence[Shape] = ((1, 3), (3, 4))) -> Property:
    """Of row_softmax: a row of nothing but -inf gives zeros, and the other rows stay what they are."""

    def cases(rng: Generator) -> list[Case]:
        made = []
        for shape in shapes:
            values = rng.normal(size=shape)
            values[..., 0, :] = -np.inf
            made.append(Case(f"shape {shape}, first row fully masked", ((values,),)))
        return made

    return matches(
        row_softmax,
        cases,
        name="a fully masked row is zero",
        meaning="A query that may see no key attends to nothing, and sends no NaN into the weights.",
        rtol=0,
        atol=TOLERANCE,
        tolerance=ROUNDING,
        lesson=STABLE_LESSON,
        mistakes=WRONG_MASKED_ROW,
    )


def _time_cases(times: Sequence[int]) -> Cases:
    return lambda rng: [Case(f"T = {time}", ((time,),)) for time in times]


def mask_shows_past_and_present(times: Sequence[int] = (1, 2, 5)) -> Property:
    """Of causal_mask."""
    return matches(
        causal_mask,
        _time_cases(times),
        name="the mask shows past and present",
        meaning="True in row i (the query) and column j (the key) exactly where j <= i.",
        tolerance="exact",
        lesson=MASK_LESSON,
        mistakes=WRONG_MASK,
    )


def mask_refuses_no_time(times: Sequence[int] = (0, -3)) -> Property:
    """Of causal_mask."""
    return refuses(
        _time_cases(times),
        error="ValueError",
        name="a time below one is refused",
        meaning="An empty table would hide a mistake made further up.",
        lesson=MASK_LESSON,
    )


# Attention ---------------------------------------------------------------------------------------------

CAUSAL_LESSON = "lesson 01, The future has no vote"
SCALE_LESSON = "lesson 01, Why the root"
MULTI_HEAD_LESSON = "lesson 02, All heads in one product"
OUTPUT_LESSON = "lesson 02, Why there is an output matrix"
BATCH_LESSON = "lesson 02, Many sequences at once"
POSITION_LESSON = "lesson 02, Positions that turn"


def _plain(sizes: Sequence[Sizes]) -> Cases:
    return lambda rng: [Case(str(each), (each.draw(rng),)) for each in sizes]


def _interventions(sizes: Sequence[Sizes]) -> Cases:
    """A drawn call, then the same with each row of hidden in turn replaced by random numbers."""

    def case(rng: Generator, each: Sizes) -> Case:
        hidden, *others = each.draw(rng)
        places = list(np.ndindex(hidden.shape[:-1]))
        changed = [hidden.copy() for _ in places]
        for place, copy in zip(places, changed, strict=True):
            copy[place] = rng.normal(size=each.width)
        calls = tuple((array, *others) for array in (hidden, *changed))
        return Case(f"{each}, every position replaced in turn", calls, facts=places)

    return lambda rng: [case(rng, each) for each in sizes]


def _output(case: Case, value: tuple) -> NDArray:
    """The first of what an attention function returned, whatever stands behind it."""
    if isinstance(value, (tuple, list)) and value and np.shape(value[0]) == case.calls[0][0].shape:
        return np.asarray(value[0], dtype=float)
    return _results(case, value)[0]  # says what is missing


def result_names(batched: bool, heads: bool) -> tuple[str, ...]:
    """What an attention function returns, in order."""
    return ("output", "weights") if batched else ("output", "weights", "merged" if heads else "attended")


def _results(case: Case, value: tuple) -> tuple[NDArray, NDArray]:
    """Output and weights of what an attention function returned; OtherForm unless all is there in its shape."""
    hidden, _, _, wv, _, *heads = case.calls[0]
    *leading, time, _ = hidden.shape
    wanted = hidden.shape, (*leading, *heads, time, time), (time, wv.shape[-1])
    shapes = dict(zip(result_names(bool(leading), bool(heads)), wanted, strict=False))
    if not isinstance(value, (tuple, list)) or len(value) != len(shapes):
        raise OtherForm(f"{len(shapes)} results were expected, {', '.join(shapes)}, in this order; {kind(value)} came")
    came = [np.shape(item) for item in value]
    for (name, shape), other in zip(shapes.items(), came, strict=True):
        if shape != other:
            order = f"; the order is {', '.join(shapes)}" if sorted(came) == sorted(shapes.values()) else ""
            raise OtherForm(f"{name} of shape {shape} was expected, shape {other} came{order}")
    return np.asarray(value[0], dtype=float), np.asarray(value[1], dtype=float)


def _changes(case: Case, values: list) -> list[tuple[Shape, NDArray]]:
    """For each replaced place, at which positions the output changed: booleans (T,) or (B, T)."""
    original, *others = (_output(case, value) for value in values)
    moved = (_unequal(other, original).any(axis=-1) for other in others)
    return list(zip(case.facts, moved, strict=True))


def attention_rows_sum_to_one(sizes: Sequence[Sizes]) -> Property:
    """Of the weights that an attention function returns; those of later keys must be zero."""

    def judge(case: Case, values: list) -> str | None:
        _, weights = _results(case, values[0])
        leak = ~causal_mask(weights.shape[-1]) & _unequal(weights, 0)
        if leak.any():
            *_, query, key = _first(leak)
            return f"query {query} gives a weight to the later key {key}"
        text, sums = _row_sums(weights), weights.sum(axis=-1)
        if not text or ":" in text:
            return text
        if not _unequal(sums, sums.flat[0]).any():
            return f"{text}: every row sums to {sums.flat[0]:.3g}, so the weights were scaled after softmax"
        if not _unequal(sums[..., -1], 1).any() and (sums <= 1 + TOLERANCE).all():
            return f"{text}: hidden keys took their share first, so the mask came after softmax"
        return text

    meaning = "Every query spreads one unit of attention over the keys it may see, and over no other."
    return Property("attention rows sum to one", meaning, _plain(sizes), judge, ROUNDING, SOFTMAX_LESSON)


def future_is_hidden(sizes: Sequence[Sizes]) -> Property:
    """Of an attention function: replacing a position changes no output before it."""

    def judge(case: Case, values: list) -> str | None:
        for (*row, position), moved in _changes(case, values):
            early = np.flatnonzero(moved[tuple(row)][:position])
            if len(early):
                return f"replacing position {position} changed the output at the earlier position {early[0]}"
        return None

    meaning = "What stands later reaches no earlier output, neither by scores nor weights nor values."
    return Property("the future is hidden", meaning, _interventions(sizes), judge, ROUNDING, CAUSAL_LESSON)


def past_is_seen(sizes: Sequence[Sizes]) -> Property:
    """Of an attention function: replacing a position changes its own output and every later one."""

    def judge(case: Case, values: list) -> str | None:
        for (*row, position), moved in _changes(case, values):
            blind = position + np.flatnonzero(~moved[tuple(row)][position:])
            if len(blind):
                own = " (the diagonal must stay visible)" if blind[0] == position else ""
                return f"replacing position {position} left the output at position {blind[0]} unchanged{own}"
        return None

    meaning = "A query sees itself and all that came before: hiding too much is as wrong as too little."
    name = "past and present are seen"
    return Property(name, meaning, _interventions(sizes), judge, ROUNDING, CAUSAL_LESSON)


def sequences_are_separate(sizes: Sequence[Sizes] = BATCHED) -> Property:
    """Of batched attention: replacing a position of one sequence changes no output of another."""

    def judge(case: Case, values: list) -> str | None:
        for (row, position), moved in _changes(case, values):
            others = np.setdiff1d(np.flatnonzero(moved.any(axis=-1)), row)
            if len(others):
                return f"replacing position {position} of sequence {row} changed sequence {others[0]}"
        return None

    meaning = "Sequences share a batch to save time, never information."
    return Property("no sequence sees another", meaning, _interventions(sizes), judge, ROUNDING, BATCH_LESSON)


def scale_is_root_of_head_width(sizes: Sequence[Sizes]) -> Property:
    """Of an attention function: what scores were divided by, measured from its weights, is sqrt(d_h)."""

    def judge(case: Case, values: list) -> str | None:
        hidden, wq, wk, wv, _, *heads = case.calls[0]
        query, key = (split_heads(hidden @ weight, *heads or [1]) for weight in (wq, wk))
        time, head_width = query.shape[-2:]
        compared = causal_mask(time) & (np.arange(time) > 0)  # each visible key with the first one
        weights = _results(case, values[0])[1].reshape(*query.shape[:-1], time)
        products = query @ key.swapaxes(-2, -1)
        if not (weights[..., causal_mask(time)] > 0).all():
            return "a visible key has no weight"
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = (np.log(weights) - np.log(weights[..., :1]))[..., compared]
        products = (products - products[..., :1])[..., compared]
        slope = (logs * products).sum() / (products**2).sum()
        if not np.allclose(logs, slope * products, atol=1e-3) or abs(slope) < 1e-6:
            return "ratios of weights do not follow from products of queries and keys"
        return _divisor(1 / slope, head_width, hidden.shape[-1], wv.shape[-1], time, *heads)

    meaning = "A sum of d_h products spreads like the root of d_h: dividing by it keeps softmax soft at any width."
    return Property(
        "scale is the root of the head width",
        meaning,
        _plain(sizes),
        judge,
        "1e-3 of the divisor: it is measured from logarithms of weights, which float32 holds to 1e-5",
        SCALE_LESSON,
    )


def _divisor(
    measured: float, head_width: int, width: int, value_width: int, time: int, heads: int = 1
) -> str | None:
    """None for the root of the head width, else the measured divisor and what it is, where that is known."""
    known = {
        None: head_width**0.5,
        "they are not scaled": 1.0,
        "that is d_h itself, its root is due": head_width,
        "that is the root of the model width d": width**0.5,
        "that is the root of the values' width d_v": value_width**0.5,
        "that is the root of the number of keys": time**0.5,
        "that is the root of the number of heads": heads**0.5,
        "they are multiplied by the root": head_width**-0.5,
    }
    found = [text for text, size in known.items() if abs(measured / size - 1) <= 1e-3]
    if None in found:
        return None
    likely = f": {found[0]}" if found else ""
    return f"scores are divided by {measured:.3f}, not by the root of d_h = {head_width}{likely}"


def output_is_projected_average(sizes: Sequence[Sizes]) -> Property:
    """Of an attention function: its output follows from its own weights, the values and wo."""

    def judge(case: Case, values: list) -> str | None:
        hidden, _, _, wv, wo, *heads = case.calls[0]
        (output, weights), value = _results(case, values[0]), hidden @ wv
        expected = (merge_heads(weights @ split_heads(value, *heads)) if heads else weights @ value) @ wo
        wrong = _unequal(output, expected)
        if not wrong.any():
            return None
        unprojected = output.shape == value.shape and not _unequal(output @ wo, expected).any()
        likely = ": it is not multiplied by wo" if unprojected else ""
        return f"the output {_first(wrong)} is not the weighted average of values times wo{likely}"

    meaning = "Weights average the values, heads are laid side by side in their order, and wo mixes them."
    name = "output is the projected average"
    return Property(name, meaning, _plain(sizes), judge, ROUNDING, OUTPUT_LESSON)


def attention_equals_definition(sizes: Sequence[Sizes]) -> Property:
    """Of an attention function: all that it returns, with the known mistakes of the chapter to compare."""
    if sizes[0].batch:
        reference = batched_multi_head_attention
    else:
        reference = multi_head_attention if sizes[0].heads else single_head_attention
    return matches(
        reference,
        _plain(sizes),
        name="attention equals its definition",
        meaning="softmax(Q K^T / sqrt(d_h), the future hidden) V, heads merged, times wo.",
        rtol=TOLERANCE,
        atol=TOLERANCE,
        tolerance=ROUNDING,
        lesson=MULTI_HEAD_LESSON if sizes[0].heads else "lesson 01, The function",
        mistakes=WRONG_ATTENTION + (WRONG_MULTI_HEAD if sizes[0].heads else ()),
        results=result_names(batched=bool(sizes[0].batch), heads=bool(sizes[0].heads)),
    )


def _same_output(name: str, meaning: str, moved: Callable, part: Callable, lesson: str) -> Callable:
    """A property of two calls, drawn and moved(rng, call), that must give the same part of the output."""

    def of(sizes: Sequence[Sizes]) -> Property:
        def cases(rng: Generator) -> list[Case]:
            drawn = [(each, each.draw(rng)) for each in sizes]
            return [Case(str(each), (call, moved(rng, *call))) for each, call in drawn]

        def judge(case: Case, values: list) -> str | None:
            first, second = (part(_output(case, value)) for value in values)
            wrong = _unequal(first, second)
            return f"the output changed, first at {_first(wrong)}" if wrong.any() else None

        return Property(name, meaning, cases, judge, ROUNDING, lesson)

    return of


def _shuffle_past(rng: Generator, hidden: NDArray, *others: NDArray) -> tuple:
    order = np.arange(hidden.shape[-2])
    order[:-1] = np.roll(order[:-1], int(rng.integers(1, len(order) - 1)))
    return hidden[..., order, :], *others


def _reorder_heads(
    rng: Generator, hidden: NDArray, wq: NDArray, wk: NDArray, wv: NDArray, wo: NDArray, heads: int
) -> tuple:
    slices = np.arange(hidden.shape[-1]).reshape(heads, -1)
    order = np.roll(slices, int(rng.integers(1, heads)), axis=0).ravel()
    return hidden, wq[:, order], wk[:, order], wv[:, order], wo[order], heads


past_order_is_invisible = _same_output(
    "order of the past is invisible",
    "Attention averages a set: without information on positions, the last output misses a shuffled past.",
    _shuffle_past,
    lambda output: output[..., -1, :],
    POSITION_LESSON,
)
heads_may_be_reordered = _same_output(
    "heads may be reordered",
    "A head is its own slice of wq, wk, wv and its own rows of wo: no head's place is special.",
    _reorder_heads,
    lambda output: output,
    OUTPUT_LESSON,
)


# Heads and batch ---------------------------------------------------------------------------------------

HEADS_LESSON = "lesson 02, Cut and put together"


def _split_cases(shapes: Sequence[Shape]) -> Cases:
    """From shapes (..., T, d, h)."""

    def cases(rng: Generator) -> list[Case]:
        made = [(tuple(shape), heads) for *shape, heads in shapes]
        return [Case(f"shape {shape}, h = {heads}", ((rng.normal(size=shape), heads),)) for shape, heads in made]

    return cases


def heads_hold_neighbouring_features(shapes: Sequence[Shape] = ((5, 6, 2), (4, 15, 3))) -> Property:
    """Of split_heads, for shapes (T, d, h)."""
    return matches(
        split_heads,
        _split_cases(shapes),
        name="heads hold neighbouring features",
        meaning="Head k holds d_h neighbouring features, from k d_h on, of every position; its axis comes first.",
        rtol=0,
        atol=TOLERANCE,
        tolerance=ROUNDING,
        lesson=HEADS_LESSON,
        mistakes=WRONG_SPLIT,
    )


def heads_merge_back(shapes: Sequence[Shape] = ((5, 6, 2), (4, 15, 3))) -> Property:
    """Of merge_heads, for shapes (T, d, h)."""

    def cases(rng: Generator) -> list[Case]:
        drawn = _split_cases(shapes)(rng)
        return [Case(case.label, ((split_heads(*case.calls[0]),),)) for case in drawn]

    return matches(
        merge_heads,
        cases,
        name="heads merge back",
        meaning="Merging undoes splitting: every position gets its own features back, in their old order.",
        rtol=0,
        atol=TOLERANCE,
        tolerance=ROUNDING,
        lesson=HEADS_LESSON,
        mistakes=WRONG_MERGE,
    )


def split_refuses_what_does_not_divide(shapes: Sequence[Shape] = ((5, 6, 4), (3, 5, 2))) -> Property:
    """Of split_heads, for shapes (T, d, h)."""
    return refuses(
        _split_cases(shapes),
        error="ValueError",
        name="heads that do not divide the width are refused",
        meaning="d = h d_h must come out even: anything else would drop or mix features.",
        lesson=HEADS_LESSON,
    )


def batch_refuses_other_shapes(shapes: Sequence[Shape] = ((5, 6), (2, 3, 5, 6))) -> Property:
    """Of batched attention, for shapes of hidden_batch that are not (B, T, d)."""

    def cases(rng: Generator) -> list[Case]:
        weights = {shape: rng.normal(size=(4, shape[-1], shape[-1])) for shape in shapes}
        calls = {shape: (rng.normal(size=shape), *weights[shape], 1) for shape in shapes}
        return [Case(f"hidden_batch of shape {shape}", (call,)) for shape, call in calls.items()]

    return refuses(
        cases,
        error="ValueError",
        name="what is not a batch is refused",
        meaning="A sequence taken for a batch would be read along the wrong axis.",
        lesson=BATCH_LESSON,
    )


# Rotary positions --------------------------------------------------------------------------------------


def rotation_keeps_lengths(shapes: Sequence[Shape] = ((5, 6), (2, 3, 4))) -> Property:
    """Of rope, for values of these shapes (..., T, d_h): no interleaved pair changes its length."""

    def cases(rng: Generator) -> list[Case]:
        calls = {shape: (rng.normal(size=shape), np.arange(1, 1 + shape[-2])) for shape in shapes}
        return [Case(f"values of shape {shape}", (call,)) for shape, call in calls.items()]

    def judge(case: Case, values: list) -> str | None:
        before, after = case.calls[0][0], np.asarray(values[0])
        if before.shape != after.shape:
            return f"shape {before.shape} was expected, shape {after.shape} came"
        lengths = (np.hypot(array[..., 0::2], array[..., 1::2]) for array in (before, after))
        wrong = _unequal(*lengths)
        return f"the pair {_first(wrong)} (..., position, pair) has another length" if wrong.any() else None

    meaning = "Each pair of neighbouring features turns: its direction changes, its length does not."
    return Property("rotation keeps lengths", meaning, cases, judge, ROUNDING, POSITION_LESSON)


def rotation_depends_on_distance_only(widths: Sequence[int] = (2, 6)) -> Property:
    """Of rope: products of turned queries and keys agree at equal distances, and differ at others."""
    places = ((5, 2), (8, 5), (43, 40), (6, 2))  # distance 3 three times, then 4

    def cases(rng: Generator) -> list[Case]:
        made = []
        for width in widths:
            query, key = rng.normal(size=(2, 1, width))
            calls = [(row, np.array([at])) for place in places for row, at in zip((query, key), place, strict=True)]
            made.append(Case(f"d_h = {width}, three pairs 3 apart and one 4 apart", tuple(calls)))
        return made

    def judge(case: Case, values: list) -> str | None:
        rows = [np.asarray(value, dtype=float).ravel() for value in values]
        near, shifted, far, other = (query @ key for query, key in zip(rows[::2], rows[1::2], strict=True))
        if not max(abs(shifted - near), abs(far - near)) <= 1e-4:
            return "the product of a query and a key changed when both moved by the same number of positions"
        return None if abs(other - near) > 1e-4 else "the product does not depend on the distance at all"

    meaning = "Both turn by their position, so only the difference of angles is left: how far, not where."
    return Property(
        "rotation depends on distance only",
        meaning,
        cases,
        judge,
        "1e-4: a float32 angle at position 43 is good to 1e-5",
        POSITION_LESSON,
    )


def rotation_equals_definition(
    shapes: Sequence[Shape] = ((5, 6), (2, 3, 4)), bases: Sequence[float] = (10000.0, 50.0)
) -> Property:
    """Of rope, for values of these shapes (..., T, d_h), from position 0 and from another."""

    def cases(rng: Generator) -> list[Case]:
        return [
            Case(
                f"values of shape {shape}, positions from {start}, base {base:g}",
                ((rng.normal(size=shape), np.arange(start, start + shape[-2]), base),),
            )
            for shape in shapes
            for base in bases
            for start in (0, 7)
        ]

    return matches(
        rope,
        cases,
        name="rotation equals its definition",
        meaning="Pair p of the vector at position m turns by m base^(-2p / d_h), counter-clockwise.",
        rtol=0,
        atol=TOLERANCE * 10,
        tolerance="1e-4: float32 angles of a few dozen radians are good to 1e-5",
        lesson=POSITION_LESSON,
        mistakes=WRONG_ROPE,
    )
