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

def split_heads(values, heads):
    values = np.asarray(values)
    time, width = values.shape
    if width % heads:
        raise ValueError("heads must divide the width")
    return values.reshape(time, heads, width // heads).transpose(1, 0, 2)

def merge_heads(values):
    values = np.asarray(values)
    heads, time, width = values.shape
    return values.transpose(1, 0, 2).reshape(time, heads * width)

# %% right: from the parts
def multi_head_attention(hidden, wq, wk, wv, wo, heads):
    hidden = np.asarray(hidden)
    q = split_heads(hidden @ wq, heads)
    k = split_heads(hidden @ wk, heads)
    v = split_heads(hidden @ wv, heads)
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    weights = row_softmax(np.where(causal_mask(len(hidden)), scores, -np.inf))
    merged = merge_heads(weights @ v)
    return merged @ wo, weights, merged

# %% right: a loop over heads
def multi_head_attention(hidden, wq, wk, wv, wo, heads):
    hidden = np.asarray(hidden)
    T, d = hidden.shape
    size = d // heads
    all_weights, parts = [], []
    for h in range(heads):
        cut = slice(h * size, (h + 1) * size)
        q, k, v = hidden @ wq[:, cut], hidden @ wk[:, cut], hidden @ wv[:, cut]
        s = q @ k.T / size**0.5 + np.where(causal_mask(T), 0, -1e30)
        w = row_softmax(s)
        all_weights.append(w)
        parts.append(w @ v)
    merged = np.concatenate(parts, axis=1)
    return merged @ wo, np.array(all_weights), merged

# %% right: einsum
def multi_head_attention(hidden, wq, wk, wv, wo, heads):
    hidden = np.asarray(hidden)
    T, d = hidden.shape
    q, k, v = [(hidden @ np.asarray(w)).reshape(T, heads, -1) for w in (wq, wk, wv)]
    s = np.einsum("ihc,jhc->hij", q, k) * (d // heads) ** -0.5
    s[:, ~np.tri(T, dtype=bool)] = -np.inf
    e = np.exp(s - s.max(-1, keepdims=True))
    w = e / e.sum(-1, keepdims=True)
    merged = np.einsum("hij,jhc->ihc", w, v).reshape(T, d)
    return [merged @ wo, w, merged]

# %% right: one fused projection
def multi_head_attention(hidden, wq, wk, wv, wo, heads):
    hidden = np.asarray(hidden)
    q, k, v = (split_heads(p, heads) for p in np.split(hidden @ np.hstack([wq, wk, wv]), 3, axis=1))
    s = np.matmul(q, k.transpose(0, 2, 1)) / np.sqrt(k.shape[2])
    s += np.where(causal_mask(len(hidden)), 0.0, -np.inf)[None]
    w = row_softmax(s)
    m = merge_heads(w @ v)
    return m.dot(wo), w, m

# %% wrong: scaled by the model width -> root of the model width
def multi_head_attention(hidden, wq, wk, wv, wo, heads):
    hidden = np.asarray(hidden)
    q, k, v = (split_heads(hidden @ w, heads) for w in (wq, wk, wv))
    s = q @ k.swapaxes(-1, -2) / np.sqrt(hidden.shape[-1])
    w = row_softmax(np.where(causal_mask(len(hidden)), s, -np.inf))
    m = merge_heads(w @ v)
    return m @ wo, w, m

# %% wrong: scaled by the number of heads -> root of the number of heads
def multi_head_attention(hidden, wq, wk, wv, wo, heads):
    hidden = np.asarray(hidden)
    q, k, v = (split_heads(hidden @ w, heads) for w in (wq, wk, wv))
    s = q @ k.swapaxes(-1, -2) / np.sqrt(heads)
    w = row_softmax(np.where(causal_mask(len(hidden)), s, -np.inf))
    m = merge_heads(w @ v)
    return m @ wo, w, m

# %% wrong: not scaled -> not scaled
def multi_head_attention(hidden, wq, wk, wv, wo, heads):
    hidden = np.asarray(hidden)
    q, k, v = (split_heads(hidden @ w, heads) for w in (wq, wk, wv))
    s = q @ k.swapaxes(-1, -2)
    w = row_softmax(np.where(causal_mask(len(hidden)), s, -np.inf))
    m = merge_heads(w @ v)
    return m @ wo, w, m

# %% wrong: heads ignored -> heads has no effect
def multi_head_attention(hidden, wq, wk, wv, wo, heads):
    hidden = np.asarray(hidden)
    q, k, v = (split_heads(hidden @ w, 1) for w in (wq, wk, wv))
    s = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    w = row_softmax(np.where(causal_mask(len(hidden)), s, -np.inf))
    m = merge_heads(w @ v)
    return m @ wo, w, m

# %% wrong: no mask -> later keys are not hidden
def multi_head_attention(hidden, wq, wk, wv, wo, heads):
    hidden = np.asarray(hidden)
    q, k, v = (split_heads(hidden @ w, heads) for w in (wq, wk, wv))
    w = row_softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]))
    m = merge_heads(w @ v)
    return m @ wo, w, m

# %% wrong: mask on the first head only
def multi_head_attention(hidden, wq, wk, wv, wo, heads):
    hidden = np.asarray(hidden)
    q, k, v = (split_heads(hidden @ w, heads) for w in (wq, wk, wv))
    s = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    s[0][~causal_mask(len(hidden))] = -np.inf
    w = row_softmax(s)
    m = merge_heads(w @ v)
    return m @ wo, w, m

# %% wrong: mask after softmax -> mask came after softmax
def multi_head_attention(hidden, wq, wk, wv, wo, heads):
    hidden = np.asarray(hidden)
    q, k, v = (split_heads(hidden @ w, heads) for w in (wq, wk, wv))
    w = row_softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) * causal_mask(len(hidden))
    m = merge_heads(w @ v)
    return m @ wo, w, m

# %% wrong: softmax over heads -> softmax runs over heads
def multi_head_attention(hidden, wq, wk, wv, wo, heads):
    hidden = np.asarray(hidden)
    q, k, v = (split_heads(hidden @ w, heads) for w in (wq, wk, wv))
    s = np.where(causal_mask(len(hidden)), q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]), -np.inf)
    w = np.moveaxis(row_softmax(np.moveaxis(s, 0, -1)), -1, 0)
    m = merge_heads(w @ v)
    return m @ wo, w, m

# %% wrong: softmax over queries -> softmax runs over queries
def multi_head_attention(hidden, wq, wk, wv, wo, heads):
    hidden = np.asarray(hidden)
    q, k, v = (split_heads(hidden @ w, heads) for w in (wq, wk, wv))
    s = np.where(causal_mask(len(hidden)), q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]), -np.inf)
    w = row_softmax(s.swapaxes(-1, -2)).swapaxes(-1, -2)
    m = merge_heads(w @ v)
    return m @ wo, w, m

# %% wrong: merged by reshape -> where heads are merged
def multi_head_attention(hidden, wq, wk, wv, wo, heads):
    hidden = np.asarray(hidden)
    q, k, v = (split_heads(hidden @ w, heads) for w in (wq, wk, wv))
    s = np.where(causal_mask(len(hidden)), q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]), -np.inf)
    w = row_softmax(s)
    m = (w @ v).reshape(hidden.shape)
    return m @ wo, w, m

# %% wrong: reshape both ways -> reshape alone
def multi_head_attention(hidden, wq, wk, wv, wo, heads):
    hidden = np.asarray(hidden)
    q, k, v = ((hidden @ w).reshape(heads, len(hidden), -1) for w in (wq, wk, wv))
    s = np.where(causal_mask(len(hidden)), q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]), -np.inf)
    w = row_softmax(s)
    m = (w @ v).reshape(hidden.shape)
    return m @ wo, w, m

# %% wrong: output without wo -> not multiplied by wo
def multi_head_attention(hidden, wq, wk, wv, wo, heads):
    hidden = np.asarray(hidden)
    q, k, v = (split_heads(hidden @ w, heads) for w in (wq, wk, wv))
    s = np.where(causal_mask(len(hidden)), q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]), -np.inf)
    w = row_softmax(s)
    m = merge_heads(w @ v)
    return m, w, m

# %% wrong: merged after wo -> the output was given twice
def multi_head_attention(hidden, wq, wk, wv, wo, heads):
    hidden = np.asarray(hidden)
    q, k, v = (split_heads(hidden @ w, heads) for w in (wq, wk, wv))
    s = np.where(causal_mask(len(hidden)), q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]), -np.inf)
    w = row_softmax(s)
    output = merge_heads(w @ v) @ wo
    return output, w, output

# %% wrong: weights averaged over heads -> weights of shape (2, 5, 5) was expected
def multi_head_attention(hidden, wq, wk, wv, wo, heads):
    hidden = np.asarray(hidden)
    q, k, v = (split_heads(hidden @ w, heads) for w in (wq, wk, wv))
    s = np.where(causal_mask(len(hidden)), q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]), -np.inf)
    w = row_softmax(s)
    m = merge_heads(w @ v)
    return m @ wo, w.mean(axis=0), m

# %% wrong: query and key swapped -> wk makes the queries
def multi_head_attention(hidden, wq, wk, wv, wo, heads):
    hidden = np.asarray(hidden)
    q, k, v = (split_heads(hidden @ w, heads) for w in (wk, wq, wv))
    s = np.where(causal_mask(len(hidden)), q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]), -np.inf)
    w = row_softmax(s)
    m = merge_heads(w @ v)
    return m @ wo, w, m

# %% wrong: wo transposed -> wo was transposed
def multi_head_attention(hidden, wq, wk, wv, wo, heads):
    hidden = np.asarray(hidden)
    q, k, v = (split_heads(hidden @ w, heads) for w in (wq, wk, wv))
    s = np.where(causal_mask(len(hidden)), q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]), -np.inf)
    w = row_softmax(s)
    m = merge_heads(w @ v)
    return m @ wo.T, w, m

# %% wrong: heads take the full width
def multi_head_attention(hidden, wq, wk, wv, wo, heads):
    hidden = np.asarray(hidden)
    q, k, v = hidden @ wq, hidden @ wk, hidden @ wv
    s = np.where(causal_mask(len(hidden)), q @ k.T / np.sqrt(hidden.shape[-1] / heads), -np.inf)
    w = row_softmax(s)
    return w @ v @ wo, np.stack([w] * heads), w @ v

# %% wrong: two heads whatever is asked
def multi_head_attention(hidden, wq, wk, wv, wo, heads):
    hidden = np.asarray(hidden)
    q, k, v = (split_heads(hidden @ w, 2) for w in (wq, wk, wv))
    s = np.where(causal_mask(len(hidden)), q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]), -np.inf)
    w = row_softmax(s)
    m = merge_heads(w @ v)
    return m @ wo, w, m

# %% wrong: heads in reverse order
def multi_head_attention(hidden, wq, wk, wv, wo, heads):
    hidden = np.asarray(hidden)
    q, k, v = (split_heads(hidden @ w, heads)[::-1] for w in (wq, wk, wv))
    s = np.where(causal_mask(len(hidden)), q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]), -np.inf)
    w = row_softmax(s)
    m = merge_heads(w @ v)
    return m @ wo, w, m

# %% right: heads as a batch of single heads, keywords
def multi_head_attention(hidden, wq, wk, wv, wo, heads):
    x = np.asarray(hidden); d = x.shape[1]; w = d // heads
    outs, ws = [], []
    for k in range(heads):
        cols = slice(k * w, (k + 1) * w)
        q, kk, v = (x @ np.asarray(m)[:, cols] for m in (wq, wk, wv))
        s = np.full((len(x), len(x)), -np.inf)
        for i in range(len(x)):
            s[i, : i + 1] = kk[: i + 1] @ q[i] / np.sqrt(w)
        a = row_softmax(values=s); ws.append(a); outs.append(a @ v)
    merged = np.concatenate(outs, axis=-1)
    return merged @ wo, ws, merged

# %% right: torch kernel and float32
import torch
def multi_head_attention(hidden, wq, wk, wv, wo, heads):
    x, wq, wk, wv, wo = (torch.tensor(np.asarray(m, dtype=np.float64)) for m in (hidden, wq, wk, wv, wo))
    q, k, v = ((x @ m).unflatten(-1, (heads, -1)).transpose(0, 1) for m in (wq, wk, wv))
    s = (q @ k.mT) * q.shape[-1] ** -0.5
    w = s.masked_fill(torch.ones(s.shape[-2:]).triu(1) > 0, -1e9).softmax(-1)
    m = (w @ v).transpose(0, 1).flatten(1)
    return m @ wo, w, m

# %% right: one call of tensordot per product, a class
class Attention:
    def __call__(self, hidden, wq, wk, wv, wo, heads):
        x = np.asarray(hidden)
        q, k, v = (np.tensordot(x, np.asarray(m).reshape(x.shape[1], heads, -1), 1) for m in (wq, wk, wv))
        s = np.einsum("ihw,jhw->hij", q, k) / np.sqrt(q.shape[-1])
        w = row_softmax(s + np.where(causal_mask(len(x)), 0, -np.inf))
        m = np.einsum("hij,jhw->ihw", w, v).reshape(x.shape)
        return m @ wo, w, m

multi_head_attention = Attention()

# %% wrong: weights of the last head for all
def multi_head_attention(hidden, wq, wk, wv, wo, heads):
    x = np.asarray(hidden); q, k, v = (split_heads(x @ m, heads) for m in (wq, wk, wv))
    w = row_softmax(np.where(causal_mask(len(x)), q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1]), -np.inf))
    m = merge_heads(w[-1:] @ v)
    return m @ wo, w, m

# %% wrong: heads share keys of the first head
def multi_head_attention(hidden, wq, wk, wv, wo, heads):
    x = np.asarray(hidden); q, k, v = (split_heads(x @ m, heads) for m in (wq, wk, wv))
    w = row_softmax(np.where(causal_mask(len(x)), q @ k[:1].transpose(0, 2, 1) / np.sqrt(q.shape[-1]), -np.inf))
    m = merge_heads(w @ v)
    return m @ wo, w, m

# %% wrong: wo by heads, summed in the wrong rows
def multi_head_attention(hidden, wq, wk, wv, wo, heads):
    x = np.asarray(hidden); q, k, v = (split_heads(x @ m, heads) for m in (wq, wk, wv))
    w = row_softmax(np.where(causal_mask(len(x)), q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1]), -np.inf))
    a = w @ v; m = merge_heads(a)
    rows = np.asarray(wo).reshape(-1, heads, x.shape[1]).transpose(1, 0, 2)
    return (a @ rows).sum(0), w, m

# %% wrong: weight matrices split by rows
def multi_head_attention(hidden, wq, wk, wv, wo, heads):
    x = np.asarray(hidden); xs = split_heads(x, heads)
    q, k, v = (xs @ np.asarray(m).reshape(heads, -1, x.shape[1])[:, :, : x.shape[1] // heads] for m in (wq, wk, wv))
    w = row_softmax(np.where(causal_mask(len(x)), q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1]), -np.inf))
    m = merge_heads(w @ v)
    return m @ wo, w, m

# %% wrong: weights squared
def multi_head_attention(hidden, wq, wk, wv, wo, heads):
    x = np.asarray(hidden); q, k, v = (split_heads(x @ m, heads) for m in (wq, wk, wv))
    w = row_softmax(np.where(causal_mask(len(x)), q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1]), -np.inf))
    w = w**2 / (w**2).sum(-1, keepdims=True); m = merge_heads(w @ v)
    return m @ wo, w, m

# %% wrong: scale right for four heads only
def multi_head_attention(hidden, wq, wk, wv, wo, heads):
    x = np.asarray(hidden); q, k, v = (split_heads(x @ m, heads) for m in (wq, wk, wv))
    w = row_softmax(np.where(causal_mask(len(x)), q @ k.transpose(0, 2, 1) / np.sqrt(3.0), -np.inf))
    m = merge_heads(w @ v)
    return m @ wo, w, m

# %% wrong: merged and output swapped -> output is after wo
def multi_head_attention(hidden, wq, wk, wv, wo, heads):
    x = np.asarray(hidden); q, k, v = (split_heads(x @ m, heads) for m in (wq, wk, wv))
    w = row_softmax(np.where(causal_mask(len(x)), q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1]), -np.inf))
    m = merge_heads(w @ v)
    return m, w, m @ wo

# %% wrong: weights (T, h, T) -> weights of shape (2, 5, 5) was expected
def multi_head_attention(hidden, wq, wk, wv, wo, heads):
    x = np.asarray(hidden); q, k, v = (split_heads(x @ m, heads) for m in (wq, wk, wv))
    w = row_softmax(np.where(causal_mask(len(x)), q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1]), -np.inf))
    m = merge_heads(w @ v)
    return m @ wo, w.transpose(1, 0, 2), m

# %% wrong: value projection forgotten
def multi_head_attention(hidden, wq, wk, wv, wo, heads):
    x = np.asarray(hidden); q, k = (split_heads(x @ m, heads) for m in (wq, wk)); v = split_heads(x, heads)
    w = row_softmax(np.where(causal_mask(len(x)), q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1]), -np.inf))
    m = merge_heads(w @ v)
    return m @ wo, w, m

# %% wrong: mask of every second head turned round
def multi_head_attention(hidden, wq, wk, wv, wo, heads):
    x = np.asarray(hidden); q, k, v = (split_heads(x @ m, heads) for m in (wq, wk, wv))
    mask = np.stack([causal_mask(len(x)) if i % 2 == 0 else causal_mask(len(x)).T for i in range(heads)])
    w = row_softmax(np.where(mask, q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1]), -np.inf))
    m = merge_heads(w @ v)
    return m @ wo, w, m

# %% wrong: dropout of small weights
def multi_head_attention(hidden, wq, wk, wv, wo, heads):
    x = np.asarray(hidden); q, k, v = (split_heads(x @ m, heads) for m in (wq, wk, wv))
    w = row_softmax(np.where(causal_mask(len(x)), q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1]), -np.inf))
    w = np.where(w < 0.02, 0, w); m = merge_heads(w @ v)
    return m @ wo, w, m

# %% wrong: scale by the root of the number of heads -> root of the number of heads
def multi_head_attention(hidden, wq, wk, wv, wo, heads):
    x = np.asarray(hidden)
    q, k, v = (split_heads(x @ w, heads) for w in (wq, wk, wv))
    s = np.where(causal_mask(len(x)), q @ k.swapaxes(1, 2) / np.sqrt(q.shape[0]), -np.inf)
    w = row_softmax(s)
    merged = merge_heads(w @ v)
    return merged @ wo, w, merged

# %% wrong: softmax along axis 0 -> softmax runs over heads
def multi_head_attention(hidden, wq, wk, wv, wo, heads):
    x = np.asarray(hidden)
    q, k, v = (split_heads(x @ w, heads) for w in (wq, wk, wv))
    s = np.where(causal_mask(len(x)), q @ k.swapaxes(1, 2) / np.sqrt(q.shape[-1]), -np.inf)
    w = np.moveaxis(row_softmax(np.moveaxis(s, 0, -1)), -1, 0)
    merged = merge_heads(w @ v)
    return merged @ wo, w, merged

# %% wrong: wo the wrong way round -> wo was transposed
def multi_head_attention(hidden, wq, wk, wv, wo, heads):
    x = np.asarray(hidden)
    q, k, v = (split_heads(x @ w, heads) for w in (wq, wk, wv))
    w = row_softmax(np.where(causal_mask(len(x)), q @ k.swapaxes(1, 2) / np.sqrt(q.shape[-1]), -np.inf))
    merged = merge_heads(w @ v)
    return merged @ np.asarray(wo).T, w, merged

# %% wrong: merged first, output last -> output is after wo
def multi_head_attention(hidden, wq, wk, wv, wo, heads):
    x = np.asarray(hidden)
    q, k, v = (split_heads(x @ w, heads) for w in (wq, wk, wv))
    w = row_softmax(np.where(causal_mask(len(x)), q @ k.swapaxes(1, 2) / np.sqrt(q.shape[-1]), -np.inf))
    merged = merge_heads(w @ v)
    return merged, w, merged @ wo

# %% wrong: hidden scores zeroed -> exp(0) is 1
def multi_head_attention(hidden, wq, wk, wv, wo, heads):
    x = np.asarray(hidden)
    q, k, v = (split_heads(x @ w, heads) for w in (wq, wk, wv))
    w = row_softmax(np.where(causal_mask(len(x)), q @ k.swapaxes(1, 2) / np.sqrt(q.shape[-1]), 0))
    merged = merge_heads(w @ v)
    return merged @ wo, w, merged

# %% wrong: heads left unmerged -> merged of shape (5, 8) was expected
def multi_head_attention(hidden, wq, wk, wv, wo, heads):
    x = np.asarray(hidden)
    q, k, v = (split_heads(x @ w, heads) for w in (wq, wk, wv))
    w = row_softmax(np.where(causal_mask(len(x)), q @ k.swapaxes(1, 2) / np.sqrt(q.shape[-1]), -np.inf))
    return merge_heads(w @ v) @ wo, w, w @ v

# %% right: heads one by one, outputs added up
def multi_head_attention(hidden, wq, wk, wv, wo, heads):
    x = np.asarray(hidden); wq, wk, wv, wo = map(np.asarray, (wq, wk, wv, wo))
    n = x.shape[1] // heads
    output, weights, merged = 0, [], []
    for h in range(heads):
        part = slice(h * n, (h + 1) * n)
        s = (x @ wq[:, part]) @ (x @ wk[:, part]).T / n**0.5
        s[~causal_mask(len(x))] = -np.inf
        weights.append(row_softmax(s))
        merged.append(weights[-1] @ (x @ wv[:, part]))
        output = output + merged[-1] @ wo[part]
    return output, np.array(weights), np.hstack(merged)

# %% right: four axes and einsum
def multi_head_attention(hidden, wq, wk, wv, wo, heads):
    x = np.asarray(hidden)
    T, d = x.shape
    q, k, v = ((x @ w).reshape(T, heads, d // heads) for w in (wq, wk, wv))
    s = np.einsum("ihc,jhc->hij", q, k) * (d // heads) ** -0.5 + np.where(causal_mask(T), 0, -1e9)
    w = row_softmax(s)
    merged = np.einsum("hij,jhc->ihc", w, v).reshape(T, d)
    return merged @ wo, w, merged

# %% right: results as lists
def multi_head_attention(hidden, wq, wk, wv, wo, heads):
    x = np.asarray(hidden)
    q, k, v = (split_heads(x @ w, heads) for w in (wq, wk, wv))
    w = [row_softmax(np.where(causal_mask(len(x)), a @ b.T / np.sqrt(a.shape[1]), -np.inf)) for a, b in zip(q, k)]
    merged = np.concatenate([a @ b for a, b in zip(w, v)], axis=1)
    return (merged @ wo).tolist(), w, merged
