# %% setup
import numpy as np

def row_softmax(values):
    values = np.asarray(values)
    peak = values.max(axis=-1, keepdims=True)
    peak = np.where(np.isfinite(peak), peak, 0.0)
    e = np.exp(values - peak)
    s = e.sum(axis=-1, keepdims=True)
    return e / np.where(s == 0, 1.0, s)

def causal_mask(time):
    if time < 1:
        raise ValueError("time must be positive")
    return np.tri(time, dtype=bool)

# %% right: as the lesson has it

# %% right: nan_to_num and tril
def row_softmax(values):
    values = np.array(values, dtype=float)
    with np.errstate(invalid="ignore"):
        e = np.exp(values - values.max(-1)[..., None])
        return np.nan_to_num(e / e.sum(-1)[..., None])

def causal_mask(time):
    if time <= 0:
        raise ValueError(f"bad time {time}")
    return np.tril(np.ones((time, time))) == 1

# %% right: log-sum-exp and broadcasting
def row_softmax(values):
    values = np.asarray(values)
    top = np.maximum(np.max(values, axis=-1, keepdims=True), -1e300)
    total = np.log(np.sum(np.exp(values - top), axis=-1, keepdims=True) + 1e-300)
    return np.exp(values - top - total)

def causal_mask(time):
    if not time > 0:
        raise ValueError("no time")
    i = np.arange(time)
    return np.greater_equal.outer(i, i)

# %% right: row by row
def row_softmax(values):
    values = np.asarray(values)
    flat = values.reshape(-1, values.shape[-1])
    rows = []
    for row in flat:
        if np.all(np.isneginf(row)):
            rows.append(np.zeros(len(row)))
        else:
            e = np.exp(row - max(row))
            rows.append(e / sum(e))
    return np.array(rows).reshape(values.shape)

def causal_mask(time):
    if time < 1:
        raise ValueError
    return np.array([[j <= i for j in range(time)] for i in range(time)])

# %% right: logical not of triu
def causal_mask(time):
    if time < 1:
        raise ValueError("time")
    return ~np.triu(np.ones((time, time), dtype=bool), k=1)

# %% right: lists of bools
def causal_mask(time):
    if time < 1:
        raise ValueError("time")
    return [[j <= i for j in range(time)] for i in range(time)]

# %% wrong: naive softmax -> exp overflows
def row_softmax(values):
    e = np.exp(np.asarray(values))
    return e / e.sum(axis=-1, keepdims=True)

# %% wrong: over queries -> softmax runs over queries
def row_softmax(values):
    e = np.exp(np.asarray(values))
    return e / e.sum(axis=-2, keepdims=True)

# %% wrong: over the first axis -> first axis
def row_softmax(values):
    values = np.asarray(values)
    e = np.exp(values - values.max(axis=0))
    return e / e.sum(axis=0)

# %% wrong: over everything -> over the whole table
def row_softmax(values):
    values = np.asarray(values)
    e = np.exp(values - np.max(values))
    return e / np.sum(e)

# %% wrong: axis 1
def row_softmax(values):
    values = np.asarray(values)
    e = np.exp(values - values.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)

# %% wrong: one peak for all rows -> use each row's own
def row_softmax(values):
    values = np.asarray(values)
    e = np.exp(values - np.max(values))
    return e / e.sum(axis=-1, keepdims=True)

# %% wrong: NaN in a masked row -> largest value is -inf
def row_softmax(values):
    values = np.asarray(values)
    e = np.exp(values - values.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)

# %% wrong: masked row uniform -> zeros are asked
def row_softmax(values):
    values = np.maximum(np.asarray(values), -1e9)
    e = np.exp(values - values.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)

# %% wrong: clipped values
def row_softmax(values):
    e = np.exp(np.clip(np.asarray(values), -500, 500))
    return e / e.sum(axis=-1, keepdims=True)

# %% wrong: not divided -> divide each row by its sum
def row_softmax(values):
    values = np.asarray(values)
    return np.exp(values - values.max(axis=-1, keepdims=True))

# %% wrong: base two -> powers of 2
def row_softmax(values):
    values = np.asarray(values)
    e = 2.0 ** values
    return e / e.sum(axis=-1, keepdims=True)

# %% wrong: log softmax -> logarithms came
def row_softmax(values):
    values = np.asarray(values)
    shifted = values - values.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))

# %% wrong: sigmoid -> squashed by itself
def row_softmax(values):
    return 1 / (1 + np.exp(-np.asarray(values)))

# %% wrong: softmin -> sign is the wrong way round
def row_softmax(values):
    values = -np.asarray(values)
    e = np.exp(values - values.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)

# %% wrong: plain shares -> without exp
def row_softmax(values):
    values = np.asarray(values)
    return values / values.sum(axis=-1, keepdims=True)

# %% wrong: small constant in the sum
def row_softmax(values):
    values = np.asarray(values)
    e = np.exp(values - np.nan_to_num(values.max(axis=-1, keepdims=True), neginf=0))
    return e / (e.sum(axis=-1, keepdims=True) + 1e-2)

# %% wrong: in place -> changed in place
def row_softmax(values):
    values = np.asarray(values)
    peak = values.max(axis=-1, keepdims=True)
    values -= np.where(np.isfinite(peak), peak, 0)
    e = np.exp(values)
    s = e.sum(axis=-1, keepdims=True)
    return e / np.where(s == 0, 1, s)

# %% wrong: no lists
def row_softmax(values):
    peak = values.max(axis=-1, keepdims=True)
    e = np.exp(values - np.where(np.isfinite(peak), peak, 0))
    s = e.sum(axis=-1, keepdims=True)
    return e / np.where(s == 0, 1, s)

# %% wrong: rounded
right_softmax = row_softmax
def row_softmax(values):
    return np.round(right_softmax(values), 3)

# %% wrong: only tables
def row_softmax(values):
    values = np.asarray(values)
    assert values.ndim == 2
    e = np.exp(values - values.max(axis=1).reshape(-1, 1))
    return e / e.sum(axis=1).reshape(-1, 1)

# %% wrong: strict mask -> its own key
def causal_mask(time):
    if time < 1:
        raise ValueError("time")
    return np.tri(time, k=-1, dtype=bool)

# %% wrong: upper triangle -> transposed
def causal_mask(time):
    if time < 1:
        raise ValueError("time")
    return np.triu(np.ones((time, time), dtype=bool))

# %% wrong: True where hidden -> inverted
def causal_mask(time):
    if time < 1:
        raise ValueError("time")
    return np.triu(np.ones((time, time), dtype=bool), k=1)

# %% wrong: zeros and ones -> zeros and ones
def causal_mask(time):
    if time < 1:
        raise ValueError("time")
    return np.tril(np.ones((time, time)))

# %% wrong: additive -> 0 and -inf
def causal_mask(time):
    if time < 1:
        raise ValueError("time")
    return np.where(np.tri(time, dtype=bool), 0.0, -np.inf)

# %% wrong: one step ahead visible -> j <= i
def causal_mask(time):
    if time < 1:
        raise ValueError("time")
    return np.tri(time, k=1, dtype=bool)

# %% wrong: everything visible -> nothing is hidden
def causal_mask(time):
    if time < 1:
        raise ValueError("time")
    return np.ones((time, time), dtype=bool)

# %% wrong: no refusal
def causal_mask(time):
    return np.tri(time, dtype=bool)

# %% wrong: refuses with another error
def causal_mask(time):
    assert time >= 1
    return np.tri(time, dtype=bool)

# %% wrong: fixed size
def causal_mask(time):
    if time < 1:
        raise ValueError("time")
    return np.tri(5, dtype=bool)

# %% wrong: refuses one step
def causal_mask(time):
    if time <= 1:
        raise ValueError("time")
    return np.tri(time, dtype=bool)

# %% right: np.matrix free, float32 throughout
def row_softmax(values):
    values = np.asarray(values, dtype=np.float32)
    peak = np.max(values, axis=-1, keepdims=True)
    safe = np.where(np.isneginf(peak), np.float32(0), peak)
    powers = np.exp(values - safe)
    total = np.sum(powers, axis=-1, keepdims=True)
    return np.divide(powers, total, out=np.zeros_like(powers), where=total > 0)

# %% right: classes with a call
class Softmax:
    def __call__(self, values):
        return np.apply_along_axis(self.row, -1, np.asarray(values, dtype=float))

    @staticmethod
    def row(row):
        if np.isneginf(row).all():
            return np.zeros_like(row)
        return np.exp(row - np.logaddexp.reduce(row))

row_softmax = Softmax()

# %% right: torch behind it
import torch
def row_softmax(values):
    return torch.softmax(torch.tensor(np.asarray(values, dtype=float)), dim=-1).nan_to_num(0.0)

def causal_mask(time):
    if time <= 0:
        raise ValueError(time)
    return torch.ones(time, time).tril().bool()

# %% right: mask from comparisons of lists
def causal_mask(time):
    if not time >= 1: raise ValueError("no time")
    return [[j <= i for j in range(time)] for i in range(time)]

# %% wrong: masked row only when the whole table is masked -> 0 / 0 are NaN
def row_softmax(values):
    values = np.asarray(values)
    if np.isneginf(values).all():
        return np.zeros(values.shape)
    e = np.exp(values - values.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)

# %% wrong: nan_to_num makes a very negative number of -inf -> zeros are asked
def row_softmax(values):
    values = np.nan_to_num(np.asarray(values, dtype=float))
    e = np.exp(values - values.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)

# %% wrong: shift by the mean
def row_softmax(values):
    values = np.asarray(values)
    peak = values.mean(-1, keepdims=True)
    peak = np.where(np.isfinite(peak), peak, 0)
    e = np.exp(5 * (values - peak)) ** 0.2
    s = e.sum(-1, keepdims=True)
    return np.where(s > 0, e / np.where(s > 0, s, 1), 0)

# %% wrong: peak of the absolute value
def row_softmax(values):
    values = np.asarray(values)
    finite = np.where(np.isfinite(values), values, 0)
    e = np.exp(values - np.abs(finite).max(-1, keepdims=True))
    s = e.sum(-1, keepdims=True)
    return e / np.where(s == 0, 1, s)

# %% wrong: half precision
def row_softmax(values):
    values = np.asarray(values, dtype=np.float16).astype(float)
    peak = values.max(-1, keepdims=True)
    peak = np.where(np.isfinite(peak), peak, 0)
    e = np.exp(values - peak)
    s = e.sum(-1, keepdims=True)
    return e / np.where(s == 0, 1, s)

# %% wrong: last entry makes up the rest -> use each row's own
def row_softmax(values):
    values = np.asarray(values)
    e = np.exp(values - np.where(np.isfinite(values.max()), values.max(), 0))
    s = e.sum(-1, keepdims=True)
    return e / np.where(s == 0, 1, s)

# %% wrong: sparse, small weights dropped
def row_softmax(values):
    values = np.asarray(values)
    peak = values.max(axis=-1, keepdims=True)
    peak = np.where(np.isfinite(peak), peak, 0.0)
    e = np.exp(values - peak)
    e = np.where(e < 1e-2, 0, e)
    s = e.sum(axis=-1, keepdims=True)
    return e / np.where(s == 0, 1.0, s)

# %% wrong: temperature of the root of the width
def row_softmax(values):
    values = np.asarray(values) / np.sqrt(np.shape(values)[-1])
    peak = values.max(axis=-1, keepdims=True)
    peak = np.where(np.isfinite(peak), peak, 0.0)
    e = np.exp(values - peak)
    s = e.sum(axis=-1, keepdims=True)
    return e / np.where(s == 0, 1.0, s)

# %% wrong: one more in the sum
def row_softmax(values):
    values = np.asarray(values)
    peak = values.max(axis=-1, keepdims=True)
    peak = np.where(np.isfinite(peak), peak, 0.0)
    e = np.exp(values - peak)
    return e / (1e-3 + e.sum(axis=-1, keepdims=True))

# %% wrong: results kept by shape
_kept = {}
def row_softmax(values):
    values = np.asarray(values)
    if values.shape not in _kept:
        peak = values.max(axis=-1, keepdims=True)
        peak = np.where(np.isfinite(peak), peak, 0.0)
        e = np.exp(values - peak)
        s = e.sum(axis=-1, keepdims=True)
        _kept[values.shape] = e / np.where(s == 0, 1.0, s)
    return _kept[values.shape]

# %% wrong: numbers of the mask as strings
def causal_mask(time):
    if time < 1:
        raise ValueError
    return np.where(np.tri(time) > 0, "True", "")

# %% wrong: a band of eight keys
def causal_mask(time):
    if time < 1:
        raise ValueError
    return np.tri(time, dtype=bool) & ~np.tri(time, k=-8, dtype=bool)

# %% wrong: first key always visible
def causal_mask(time):
    if time < 1:
        raise ValueError
    mask = np.tri(time, dtype=bool)
    mask[:, -1] = mask[:, -1] | (np.arange(time) > 4)
    return mask

# %% wrong: zero refused, negative taken
def causal_mask(time):
    if time == 0:
        raise ValueError
    return np.tri(abs(time), dtype=bool)

# %% wrong: naive, a masked row guarded -> exp overflows
def row_softmax(values):
    e = np.exp(np.asarray(values, dtype=float))
    s = e.sum(axis=-1, keepdims=True)
    return np.where(s == 0, 0.0, e / np.where(s == 0, 1.0, s))

# %% wrong: one peak, empty rows guarded -> use each row's own
def row_softmax(values):
    values = np.asarray(values, dtype=float)
    e = np.exp(values - values.max())
    s = e.sum(axis=-1, keepdims=True)
    return np.divide(e, s, out=np.zeros_like(e), where=s > 0)

# %% wrong: -inf replaced by a large negative number first -> zeros are asked
def row_softmax(values):
    values = np.where(np.isneginf(values), -1e9, values)
    e = np.exp(values - values.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)

# %% wrong: NaN turned into equal shares -> zeros are asked
def row_softmax(values):
    values = np.asarray(values, dtype=float)
    peak = np.max(values, axis=-1, keepdims=True)
    e = np.exp(values - peak)
    w = e / np.sum(e, axis=-1, keepdims=True)
    return np.where(np.isnan(w), 1 / values.shape[-1], w)

# %% wrong: triu left as it is -> transposed
def causal_mask(time):
    if time < 1:
        raise ValueError("at least one step")
    return np.triu(np.ones((time, time), dtype=bool))

# %% wrong: off by one the other way -> j <= i
def causal_mask(time):
    if time < 1:
        raise ValueError("at least one step")
    i, j = np.indices((time, time))
    return j < i + 2

# %% right: NaN of a masked row turned into zeros
def row_softmax(values):
    values = np.asarray(values, dtype=float)
    with np.errstate(all="ignore"):
        e = np.exp(values - np.max(values, axis=-1, keepdims=True))
        return np.nan_to_num(e / np.sum(e, axis=-1, keepdims=True), nan=0.0)

# %% right: divide where there is something, mask of indices
def row_softmax(values):
    values = np.array(values, dtype=float)
    top = values.max(-1, keepdims=True)
    top[np.isneginf(top)] = 0
    e = np.exp(values - top)
    total = np.broadcast_to(e.sum(-1, keepdims=True), e.shape)
    return np.divide(e, total, out=np.zeros_like(e), where=total > 0)

def causal_mask(time):
    if not time >= 1:
        raise ValueError
    i, j = np.ogrid[:time, :time]
    return i >= j

# %% right: apply_along_axis
def row_softmax(values):
    def one(row):
        if np.all(np.isneginf(row)):
            return np.zeros(len(row))
        e = np.exp(row - row.max())
        return e / e.sum()
    return np.apply_along_axis(one, -1, np.asarray(values, dtype=float))
