# %% setup
import numpy as np

def top_k_filter(logits, k):
    logits = np.asarray(logits, dtype=float)
    if k < 1:
        raise ValueError("k")
    rank = np.argsort(np.argsort(-logits, axis=-1, kind="stable"), axis=-1)
    return np.where(rank < k, logits, -np.inf)

def top_p_filter(logits, p):
    logits = np.asarray(logits, dtype=float)
    if not 0 < p <= 1:
        raise ValueError("p")
    if p == 1:
        return logits
    order = np.argsort(-logits, axis=-1, kind="stable")
    ordered = np.take_along_axis(logits, order, axis=-1)
    shares = np.exp(ordered - ordered[..., :1])
    shares /= shares.sum(axis=-1, keepdims=True)
    kept = np.cumsum(shares, axis=-1) - shares < p
    kept[..., 0] = True
    result = np.full(logits.shape, -np.inf)
    np.put_along_axis(result, order, np.where(kept, ordered, -np.inf), axis=-1)
    return result

# %% right: put_along_axis and the smallest number for a fill
def top_k_filter(logits, k):
    if k <= 0:
        raise ValueError("k must be positive")
    logits = np.asarray(logits)
    ids = np.argsort(-logits, axis=-1, kind="stable")[..., : min(k, logits.shape[-1])]
    result = np.full(logits.shape, np.finfo(np.float32).min)
    np.put_along_axis(result, ids, np.take_along_axis(logits, ids, -1), -1)
    return result

# %% right: row by row with sorted
def top_k_filter(logits, k):
    if k < 1:
        raise ValueError
    logits = np.array(logits, dtype=float)
    for row in logits.reshape(-1, logits.shape[-1]):
        ids = sorted(range(len(row)), key=lambda i: (-row[i], i))
        for i in ids[k:]:
            row[i] = -1e9
    return logits

# %% right: float32 in and out
def top_k_filter(logits, k):
    if k < 1:
        raise ValueError(k)
    x = np.asarray(logits, dtype=np.float32)
    order = np.argsort(-x.astype(float), axis=-1, kind="mergesort")
    keep = np.zeros(x.shape, dtype=bool)
    np.put_along_axis(keep, order[..., :k], True, axis=-1)
    return np.where(keep, x, np.float32(-np.inf))

# %% right: walk down from the likeliest
def top_p_filter(logits, p):
    if p <= 0 or p > 1:
        raise ValueError(f"p must lie in (0, 1], got {p}")
    logits = np.array(logits, dtype=float)
    if p == 1:
        return logits
    for row in logits.reshape(-1, logits.shape[-1]):
        probabilities = np.exp(row - row.max())
        probabilities /= probabilities.sum()
        total = 0.0
        for i in np.argsort(-row, kind="stable"):
            if total >= p:
                row[i] = -np.inf
            total += probabilities[i]
    return logits

# %% right: how many are needed, then top-k
def top_p_filter(logits, p):
    x = np.asarray(logits)
    if not 0 < p <= 1:
        raise ValueError("p")
    if p == 1:
        return x.copy()
    q = np.exp(x - x.max(-1, keepdims=True))
    q = q / q.sum(-1, keepdims=True)
    down = -np.sort(-q, axis=-1)
    needed = (np.cumsum(down, axis=-1) < p).sum(axis=-1, keepdims=True) + 1
    place = np.argsort(np.argsort(-x, axis=-1, kind="stable"), axis=-1, kind="stable")
    return np.where(place < needed, x, -np.inf)

# %% right: searchsorted on one row at a time
def top_p_filter(logits, p):
    if not 0 < p <= 1:
        raise ValueError("p")

    def one(row):
        order = np.argsort(-row, kind="stable")
        share = np.exp(row[order] - np.logaddexp.reduce(row))
        n = len(row) if p == 1 else min(np.searchsorted(np.cumsum(share), p) + 1, len(row))
        out = np.full(len(row), -np.inf)
        out[order[:n]] = row[order[:n]]
        return out

    return np.apply_along_axis(one, -1, np.asarray(logits, dtype=float))

# %% right: counting what is likelier
def top_p_filter(logits, p):
    if not 0 < p <= 1:
        raise ValueError("p")
    x = np.asarray(logits, dtype=float)
    if p >= 1:
        return x + 0.0
    s = np.exp(x - x.max(axis=-1, keepdims=True))
    s = s / s.sum(axis=-1, keepdims=True)
    ids = np.arange(x.shape[-1])
    before = (x[..., None, :] > x[..., :, None]) | ((x[..., None, :] == x[..., :, None]) & (ids[None, :] < ids[:, None]))
    likelier = np.where(before, s[..., None, :], 0).sum(axis=-1)
    return np.where(likelier < p, x, -1e30)

# %% wrong: threshold keeps ties -> all tokens equal to the last one kept
def top_k_filter(logits, k):
    logits = np.asarray(logits, dtype=float)
    if k < 1:
        raise ValueError("k")
    k = min(k, logits.shape[-1])
    edge = np.sort(logits, axis=-1)[..., -k][..., None]
    return np.where(logits >= edge, logits, -np.inf)

# %% wrong: strictly above the threshold
def top_k_filter(logits, k):
    logits = np.asarray(logits, dtype=float)
    if k < 1:
        raise ValueError("k")
    k = min(k, logits.shape[-1])
    edge = np.sort(logits, axis=-1)[..., -k][..., None]
    return np.where(logits > edge, logits, -np.inf)

# %% wrong: highest ids of equals -> highest ids were kept
def top_k_filter(logits, k):
    logits = np.asarray(logits, dtype=float)
    if k < 1:
        raise ValueError("k")
    ids = np.argsort(logits, axis=-1, kind="stable")[..., ::-1][..., :k]
    result = np.full(logits.shape, -np.inf)
    np.put_along_axis(result, ids, np.take_along_axis(logits, ids, -1), -1)
    return result

# %% wrong: argpartition decides between equals
def top_k_filter(logits, k):
    logits = np.asarray(logits, dtype=float)
    if k < 1:
        raise ValueError("k")
    if k >= logits.shape[-1]:
        return logits
    ids = np.argpartition(logits, -k, axis=-1)[..., -k:]
    result = np.full(logits.shape, -np.inf)
    np.put_along_axis(result, ids, np.take_along_axis(logits, ids, -1), -1)
    return result

# %% wrong: k beyond the vocabulary fails
def top_k_filter(logits, k):
    logits = np.asarray(logits, dtype=float)
    if k < 1:
        raise ValueError("k")
    ids = np.argpartition(-logits, k - 1, axis=-1)
    ids = np.argsort(-logits, axis=-1, kind="stable")[..., :k]
    result = np.full(logits.shape, -np.inf)
    np.put_along_axis(result, ids, np.take_along_axis(logits, ids, -1), -1)
    return result

# %% wrong: k beyond the vocabulary refused
def top_k_filter(logits, k, whole=top_k_filter):
    if k > np.shape(logits)[-1]:
        raise ValueError("k is larger than the vocabulary")
    return whole(logits, k)

# %% wrong: smallest kept -> unlikeliest tokens were kept
def top_k_filter(logits, k, whole=top_k_filter):
    return -np.where(np.isinf(whole(-np.asarray(logits), k)), np.inf, -np.asarray(logits, dtype=float))

# %% wrong: zero for a fill -> have logit 0
def top_k_filter(logits, k, whole=top_k_filter):
    kept = whole(logits, k)
    return np.where(np.isfinite(kept), kept, 0.0)

# %% wrong: fill not low enough
def top_k_filter(logits, k, whole=top_k_filter):
    kept = whole(logits, k)
    return np.where(np.isfinite(kept), kept, -1e4)

# %% wrong: one too many -> one token too many
def top_k_filter(logits, k, whole=top_k_filter):
    if k < 1:
        raise ValueError("k")
    return whole(logits, k + 1)

# %% wrong: one too few -> one token too few
def top_k_filter(logits, k, whole=top_k_filter):
    if k < 1:
        raise ValueError("k")
    return whole(logits, max(k - 1, 1))

# %% wrong: over the whole batch -> ranked together
def top_k_filter(logits, k, whole=top_k_filter):
    logits = np.asarray(logits, dtype=float)
    return whole(logits.ravel(), k).reshape(logits.shape)

# %% wrong: along the first axis -> runs over the first axis
def top_k_filter(logits, k):
    logits = np.asarray(logits, dtype=float)
    if k < 1:
        raise ValueError("k")
    rank = np.argsort(np.argsort(-logits, axis=0, kind="stable"), axis=0)
    return np.where(rank < k, logits, -np.inf)

# %% wrong: first row's choice for all rows
def top_k_filter(logits, k):
    logits = np.asarray(logits, dtype=float)
    if k < 1:
        raise ValueError("k")
    first = logits.reshape(-1, logits.shape[-1])[0]
    keep = np.zeros(len(first), dtype=bool)
    keep[np.argsort(-first, kind="stable")[:k]] = True
    return np.where(keep, logits, -np.inf)

# %% wrong: a ranking instead of places
def top_k_filter(logits, k):
    logits = np.asarray(logits, dtype=float)
    if k < 1:
        raise ValueError("k")
    return np.where(np.argsort(-logits, axis=-1, kind="stable") < k, logits, -np.inf)

# %% wrong: k below one passes
def top_k_filter(logits, k):
    logits = np.asarray(logits, dtype=float)
    rank = np.argsort(np.argsort(-logits, axis=-1, kind="stable"), axis=-1)
    return np.where(rank < max(k, 1), logits, -np.inf)

# %% wrong: top-k in place
def top_k_filter(logits, k):
    logits = np.asarray(logits, dtype=float)
    if k < 1:
        raise ValueError("k")
    rank = np.argsort(np.argsort(-logits, axis=-1, kind="stable"), axis=-1)
    logits[rank >= k] = -np.inf
    return logits

# %% wrong: top-k gives probabilities -> probabilities came
def top_k_filter(logits, k, whole=top_k_filter):
    kept = whole(logits, k)
    shares = np.exp(kept - kept.max(axis=-1, keepdims=True))
    return shares / shares.sum(axis=-1, keepdims=True)

# %% wrong: crossing token dropped -> the token that crosses p was dropped
def top_p_filter(logits, p):
    logits = np.asarray(logits, dtype=float)
    if not 0 < p <= 1:
        raise ValueError("p")
    if p == 1:
        return logits
    order = np.argsort(-logits, axis=-1, kind="stable")
    ordered = np.take_along_axis(logits, order, axis=-1)
    shares = np.exp(ordered - ordered[..., :1])
    shares /= shares.sum(axis=-1, keepdims=True)
    kept = np.cumsum(shares, axis=-1) < p
    kept[..., 0] = True
    result = np.full(logits.shape, -np.inf)
    np.put_along_axis(result, order, np.where(kept, ordered, -np.inf), axis=-1)
    return result

# %% wrong: nothing kept for a tiny p -> nothing is kept
def top_p_filter(logits, p):
    logits = np.asarray(logits, dtype=float)
    if not 0 < p <= 1:
        raise ValueError("p")
    if p == 1:
        return logits
    order = np.argsort(-logits, axis=-1, kind="stable")
    ordered = np.take_along_axis(logits, order, axis=-1)
    shares = np.exp(ordered - ordered[..., :1])
    shares /= shares.sum(axis=-1, keepdims=True)
    kept = np.cumsum(shares, axis=-1) < p
    result = np.full(logits.shape, -np.inf)
    np.put_along_axis(result, order, np.where(kept, ordered, -np.inf), axis=-1)
    return result

# %% wrong: p = 1 drops shares that round to zero -> rounds to zero was dropped
def top_p_filter(logits, p):
    logits = np.asarray(logits, dtype=float)
    if not 0 < p <= 1:
        raise ValueError("p")
    order = np.argsort(-logits, axis=-1, kind="stable")
    ordered = np.take_along_axis(logits, order, axis=-1)
    shares = np.exp(ordered - ordered[..., :1])
    shares /= shares.sum(axis=-1, keepdims=True)
    kept = np.cumsum(shares, axis=-1) - shares < p
    result = np.full(logits.shape, -np.inf)
    np.put_along_axis(result, order, np.where(kept, ordered, -np.inf), axis=-1)
    return result

# %% wrong: own share at least p -> own probability
def top_p_filter(logits, p):
    logits = np.asarray(logits, dtype=float)
    if not 0 < p <= 1:
        raise ValueError("p")
    shares = np.exp(logits - logits.max(axis=-1, keepdims=True))
    shares /= shares.sum(axis=-1, keepdims=True)
    kept = (shares >= p) | (np.arange(logits.shape[-1]) == shares.argmax(axis=-1)[..., None])
    return np.where(kept, logits, -np.inf)

# %% wrong: share relative to the likeliest
def top_p_filter(logits, p):
    logits = np.asarray(logits, dtype=float)
    if not 0 < p <= 1:
        raise ValueError("p")
    return np.where(logits - logits.max(axis=-1, keepdims=True) >= np.log(p), logits, -np.inf)

# %% wrong: threshold keeps equals -> all tokens equal to the last one kept
def top_p_filter(logits, p, whole=top_p_filter):
    kept = whole(logits, p)
    edge = np.where(np.isfinite(kept), kept, np.inf).min(axis=-1, keepdims=True)
    return np.where(np.asarray(logits) >= edge, logits, -np.inf)

# %% wrong: from the unlikeliest up -> unlikeliest tokens were kept
def top_p_filter(logits, p):
    logits = np.asarray(logits, dtype=float)
    if not 0 < p <= 1:
        raise ValueError("p")
    shares = np.exp(logits - logits.max(axis=-1, keepdims=True))
    shares /= shares.sum(axis=-1, keepdims=True)
    order = np.argsort(logits, axis=-1, kind="stable")
    ordered = np.take_along_axis(shares, order, axis=-1)
    kept = np.zeros(logits.shape, dtype=bool)
    np.put_along_axis(kept, order, np.cumsum(ordered, axis=-1) - ordered < p, axis=-1)
    return np.where(kept, logits, -np.inf)

# %% wrong: not brought back to the ids
def top_p_filter(logits, p):
    logits = np.asarray(logits, dtype=float)
    if not 0 < p <= 1:
        raise ValueError("p")
    if p == 1:
        return logits
    ordered = -np.sort(-logits, axis=-1)
    shares = np.exp(ordered - ordered[..., :1])
    shares /= shares.sum(axis=-1, keepdims=True)
    return np.where(np.cumsum(shares, axis=-1) - shares < p, logits, -np.inf)

# %% wrong: order applied instead of undone
def top_p_filter(logits, p):
    logits = np.asarray(logits, dtype=float)
    if not 0 < p <= 1:
        raise ValueError("p")
    if p == 1:
        return logits
    order = np.argsort(-logits, axis=-1, kind="stable")
    ordered = np.take_along_axis(logits, order, axis=-1)
    shares = np.exp(ordered - ordered[..., :1])
    shares /= shares.sum(axis=-1, keepdims=True)
    kept = np.cumsum(shares, axis=-1) - shares < p
    return np.where(np.take_along_axis(kept, order, axis=-1), logits, -np.inf)

# %% wrong: exp without shift
def top_p_filter(logits, p):
    logits = np.asarray(logits, dtype=float)
    if not 0 < p <= 1:
        raise ValueError("p")
    if p == 1:
        return logits
    order = np.argsort(-logits, axis=-1, kind="stable")
    ordered = np.take_along_axis(logits, order, axis=-1)
    shares = np.exp(ordered)
    shares /= shares.sum(axis=-1, keepdims=True)
    kept = np.cumsum(shares, axis=-1) - shares < p
    kept[..., 0] = True
    result = np.full(logits.shape, -np.inf)
    np.put_along_axis(result, order, np.where(kept, ordered, -np.inf), axis=-1)
    return result

# %% wrong: logits summed
def top_p_filter(logits, p):
    logits = np.asarray(logits, dtype=float)
    if not 0 < p <= 1:
        raise ValueError("p")
    if p == 1:
        return logits
    order = np.argsort(-logits, axis=-1, kind="stable")
    ordered = np.take_along_axis(logits, order, axis=-1)
    kept = np.cumsum(ordered, axis=-1) - ordered < p
    result = np.full(logits.shape, -np.inf)
    np.put_along_axis(result, order, np.where(kept, ordered, -np.inf), axis=-1)
    return result

# %% wrong: over the whole batch (top-p) -> ranked together
def top_p_filter(logits, p, whole=top_p_filter):
    logits = np.asarray(logits, dtype=float)
    return whole(logits.ravel(), p).reshape(logits.shape)

# %% wrong: shares of each row summed over the whole batch
def top_p_filter(logits, p, whole=top_p_filter):
    logits = np.asarray(logits, dtype=float)
    shares = np.exp(logits - logits.max(axis=-1, keepdims=True))
    shares = (shares / shares.sum(axis=-1, keepdims=True)).ravel()
    if not 0 < p <= 1:
        raise ValueError("p")
    order = np.argsort(-logits.ravel(), kind="stable")
    before = np.cumsum(shares[order]) - shares[order]
    kept = np.zeros(logits.size, dtype=bool)
    kept[order] = before < p
    kept[order[0]] = True
    return np.where(kept.reshape(logits.shape), logits, -np.inf)

# %% wrong: highest ids of equals (top-p) -> highest ids were kept
def top_p_filter(logits, p, whole=top_p_filter):
    return whole(np.asarray(logits, dtype=float)[..., ::-1], p)[..., ::-1]

# %% wrong: any p passes
def top_p_filter(logits, p, whole=top_p_filter):
    return whole(logits, min(max(p, 1e-12), 1))

# %% wrong: p of zero refused, p above one not
def top_p_filter(logits, p, whole=top_p_filter):
    if p <= 0:
        raise ValueError("p")
    return whole(logits, min(p, 1))

# %% wrong: top-p in place
def top_p_filter(logits, p, whole=top_p_filter):
    logits = np.asarray(logits, dtype=float)
    logits[np.isinf(whole(logits.copy(), p))] = -np.inf
    return logits

# %% wrong: sorted logits returned
def top_p_filter(logits, p, whole=top_p_filter):
    return -np.sort(-whole(logits, p), axis=-1)

# %% wrong: kept logits renormalised
def top_p_filter(logits, p, whole=top_p_filter):
    kept = whole(logits, p)
    return kept - np.logaddexp.reduce(kept, axis=-1, keepdims=True)

# %% wrong: NaN for a fill
def top_k_filter(logits, k, whole=top_k_filter):
    kept = whole(logits, k)
    return np.where(np.isinf(kept), np.nan, kept)

# %% wrong: duplicates counted once
def top_k_filter(logits, k):
    x = np.asarray(logits, dtype=float)
    if k < 1:
        raise ValueError("k")
    def one(row):
        different = np.unique(row)[::-1]
        return np.where(row >= different[min(k, len(different)) - 1], row, -np.inf)
    return np.apply_along_axis(one, -1, x)

# %% wrong: as many for all rows as one needs
def top_p_filter(logits, p, whole=top_p_filter, k=top_k_filter):
    return k(logits, int(np.isfinite(whole(logits, p)).sum(axis=-1).max()))

# %% right: a mask by counting equals before
def top_k_filter(logits, k):
    logits = np.asarray(logits, dtype=float)
    if k < 1:
        raise ValueError("k")
    one, other = logits[..., :, None], logits[..., None, :]
    earlier = np.tri(logits.shape[-1], k=-1, dtype=bool)
    ahead = ((other > one) | ((other == one) & earlier)).sum(axis=-1)
    return np.where(ahead < k, logits, -np.inf)

# %% wrong: p of the sum of logits' shares without softmax of -inf
def top_p_filter(logits, p):
    logits = np.asarray(logits, dtype=float)
    if not 0 < p <= 1:
        raise ValueError("p")
    order = np.argsort(-logits, axis=-1, kind="stable")
    ordered = np.take_along_axis(logits, order, axis=-1)
    shares = np.exp(ordered - ordered[..., :1])
    kept = np.cumsum(shares, axis=-1) - shares < p
    result = np.full(logits.shape, -np.inf)
    np.put_along_axis(result, order, np.where(kept, ordered, -np.inf), axis=-1)
    return result
