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

# %% right: step by step
def single_head_attention(hidden, wq, wk, wv, wo):
    hidden = np.asarray(hidden)
    query = hidden @ wq
    key = hidden @ wk
    value = hidden @ wv
    scores = (query @ key.T) / np.sqrt(key.shape[1])
    scores = np.where(causal_mask(hidden.shape[0]), scores, -np.inf)
    weights = row_softmax(scores)
    attended = weights @ value
    return attended @ wo, weights, attended

# %% right: own softmax and a finite fill
def single_head_attention(hidden, wq, wk, wv, wo):
    hidden = np.array(hidden)
    q, k, v = [hidden @ w for w in (wq, wk, wv)]
    scores = np.einsum("id,jd->ij", q, k) * q.shape[-1] ** -0.5
    scores[np.triu_indices(len(hidden), 1)] = -1e30
    e = np.exp(scores - scores.max(1, keepdims=True))
    w = e / e.sum(1, keepdims=True)
    return [np.dot(np.dot(w, v), wo), w, np.dot(w, v)]

# %% right: query by query
def single_head_attention(hidden, wq, wk, wv, wo):
    hidden = np.asarray(hidden)
    T = len(hidden)
    q, k, v = hidden @ wq, hidden @ wk, hidden @ wv
    weights = np.zeros((T, T))
    for i in range(T):
        s = k[: i + 1] @ q[i] / np.sqrt(len(q[i]))
        e = np.exp(s - s.max())
        weights[i, : i + 1] = e / e.sum()
    attended = weights @ v
    return attended @ wo, weights, attended

# %% right: scaled query and a helper
def _weights(query, key):
    scores = query @ key.T
    scores[~causal_mask(len(scores))] = -np.inf
    return row_softmax(scores)

def single_head_attention(hidden, wq, wk, wv, wo):
    hidden = np.asarray(hidden)
    scale = np.shape(wq)[1] ** 0.25
    weights = _weights(hidden @ wq / scale, hidden @ wk / scale)
    attended = weights @ (hidden @ wv)
    return attended @ wo, weights, attended

# %% wrong: no mask -> later keys are not hidden
def single_head_attention(hidden, wq, wk, wv, wo):
    hidden = np.asarray(hidden)
    q, k, v = hidden @ wq, hidden @ wk, hidden @ wv
    w = row_softmax(q @ k.T / np.sqrt(q.shape[-1]))
    return w @ v @ wo, w, w @ v

# %% wrong: mask after softmax -> mask came after softmax
def single_head_attention(hidden, wq, wk, wv, wo):
    hidden = np.asarray(hidden)
    q, k, v = hidden @ wq, hidden @ wk, hidden @ wv
    w = row_softmax(q @ k.T / np.sqrt(q.shape[-1])) * causal_mask(len(hidden))
    return w @ v @ wo, w, w @ v

# %% wrong: hidden scores are zero -> exp(0) is 1
def single_head_attention(hidden, wq, wk, wv, wo):
    hidden = np.asarray(hidden)
    q, k, v = hidden @ wq, hidden @ wk, hidden @ wv
    w = row_softmax(q @ k.T / np.sqrt(q.shape[-1]) * causal_mask(len(hidden)))
    return w @ v @ wo, w, w @ v

# %% wrong: no scale -> not scaled
def single_head_attention(hidden, wq, wk, wv, wo):
    hidden = np.asarray(hidden)
    q, k, v = hidden @ wq, hidden @ wk, hidden @ wv
    w = row_softmax(np.where(causal_mask(len(hidden)), q @ k.T, -np.inf))
    return w @ v @ wo, w, w @ v

# %% wrong: scale by the width itself -> its root is due
def single_head_attention(hidden, wq, wk, wv, wo):
    hidden = np.asarray(hidden)
    q, k, v = hidden @ wq, hidden @ wk, hidden @ wv
    w = row_softmax(np.where(causal_mask(len(hidden)), q @ k.T / q.shape[-1], -np.inf))
    return w @ v @ wo, w, w @ v

# %% wrong: scale by the model width -> root of the model width
def single_head_attention(hidden, wq, wk, wv, wo):
    hidden = np.asarray(hidden)
    q, k, v = hidden @ wq, hidden @ wk, hidden @ wv
    w = row_softmax(np.where(causal_mask(len(hidden)), q @ k.T / np.sqrt(hidden.shape[-1]), -np.inf))
    return w @ v @ wo, w, w @ v

# %% wrong: scale by the value width -> values' width d_v
def single_head_attention(hidden, wq, wk, wv, wo):
    hidden = np.asarray(hidden)
    q, k, v = hidden @ wq, hidden @ wk, hidden @ wv
    w = row_softmax(np.where(causal_mask(len(hidden)), q @ k.T / np.sqrt(v.shape[-1]), -np.inf))
    return w @ v @ wo, w, w @ v

# %% wrong: scale by time -> root of the number of keys
def single_head_attention(hidden, wq, wk, wv, wo):
    hidden = np.asarray(hidden)
    q, k, v = hidden @ wq, hidden @ wk, hidden @ wv
    w = row_softmax(np.where(causal_mask(len(hidden)), q @ k.T / np.sqrt(len(hidden)), -np.inf))
    return w @ v @ wo, w, w @ v

# %% wrong: query and key swapped -> wk makes the queries
def single_head_attention(hidden, wq, wk, wv, wo):
    hidden = np.asarray(hidden)
    q, k, v = hidden @ wk, hidden @ wq, hidden @ wv
    w = row_softmax(np.where(causal_mask(len(hidden)), q @ k.T / np.sqrt(q.shape[-1]), -np.inf))
    return w @ v @ wo, w, w @ v

# %% wrong: transposed mask -> past and future are swapped
def single_head_attention(hidden, wq, wk, wv, wo):
    hidden = np.asarray(hidden)
    q, k, v = hidden @ wq, hidden @ wk, hidden @ wv
    w = row_softmax(np.where(causal_mask(len(hidden)).T, q @ k.T / np.sqrt(q.shape[-1]), -np.inf))
    return w @ v @ wo, w, w @ v

# %% wrong: diagonal hidden -> diagonal must stay visible
def single_head_attention(hidden, wq, wk, wv, wo):
    hidden = np.asarray(hidden)
    q, k, v = hidden @ wq, hidden @ wk, hidden @ wv
    seen = np.tri(len(hidden), k=-1, dtype=bool)
    w = row_softmax(np.where(seen, q @ k.T / np.sqrt(q.shape[-1]), -np.inf))
    return w @ v @ wo, w, w @ v

# %% wrong: softmax over queries -> softmax runs over queries
def single_head_attention(hidden, wq, wk, wv, wo):
    hidden = np.asarray(hidden)
    q, k, v = hidden @ wq, hidden @ wk, hidden @ wv
    s = np.where(causal_mask(len(hidden)), q @ k.T / np.sqrt(q.shape[-1]), -np.inf)
    w = row_softmax(s.T).T
    return w @ v @ wo, w, w @ v

# %% wrong: output without wo -> not multiplied by wo
def single_head_attention(hidden, wq, wk, wv, wo):
    hidden = np.asarray(hidden)
    q, k, v = hidden @ wq, hidden @ wk, hidden @ wv
    w = row_softmax(np.where(causal_mask(len(hidden)), q @ k.T / np.sqrt(q.shape[-1]), -np.inf))
    return w @ v, w, w @ v

# %% wrong: attended after wo -> output was given twice
def single_head_attention(hidden, wq, wk, wv, wo):
    hidden = np.asarray(hidden)
    q, k, v = hidden @ wq, hidden @ wk, hidden @ wv
    w = row_softmax(np.where(causal_mask(len(hidden)), q @ k.T / np.sqrt(q.shape[-1]), -np.inf))
    output = w @ v @ wo
    return output, w, output

# %% wrong: results in another order -> the order is output, weights, attended
def single_head_attention(hidden, wq, wk, wv, wo):
    hidden = np.asarray(hidden)
    q, k, v = hidden @ wq, hidden @ wk, hidden @ wv
    w = row_softmax(np.where(causal_mask(len(hidden)), q @ k.T / np.sqrt(q.shape[-1]), -np.inf))
    return w, w @ v, w @ v @ wo

# %% wrong: output only -> 3 results were expected
def single_head_attention(hidden, wq, wk, wv, wo):
    hidden = np.asarray(hidden)
    q, k, v = hidden @ wq, hidden @ wk, hidden @ wv
    w = row_softmax(np.where(causal_mask(len(hidden)), q @ k.T / np.sqrt(q.shape[-1]), -np.inf))
    return w @ v @ wo

# %% wrong: residual added -> the residual belongs to the block
def single_head_attention(hidden, wq, wk, wv, wo):
    hidden = np.asarray(hidden)
    q, k, v = hidden @ wq, hidden @ wk, hidden @ wv
    w = row_softmax(np.where(causal_mask(len(hidden)), q @ k.T / np.sqrt(q.shape[-1]), -np.inf))
    return hidden + w @ v @ wo, w, w @ v

# %% wrong: keys as values -> wk makes the values too
def single_head_attention(hidden, wq, wk, wv, wo):
    hidden = np.asarray(hidden)
    q, k = hidden @ wq, hidden @ wk
    w = row_softmax(np.where(causal_mask(len(hidden)), q @ k.T / np.sqrt(q.shape[-1]), -np.inf))
    return w @ k @ wo, w, w @ k

# %% wrong: softmax that overflows
def single_head_attention(hidden, wq, wk, wv, wo):
    hidden = np.asarray(hidden)
    q, k, v = hidden @ wq, hidden @ wk, hidden @ wv
    e = np.exp(q @ k.T / np.sqrt(q.shape[-1])) * causal_mask(len(hidden))
    w = e / e.sum(axis=-1, keepdims=True)
    return w @ v @ wo, w, w @ v

# %% wrong: weak fill
def single_head_attention(hidden, wq, wk, wv, wo):
    hidden = np.asarray(hidden)
    q, k, v = hidden @ wq, hidden @ wk, hidden @ wv
    w = row_softmax(np.where(causal_mask(len(hidden)), q @ k.T / np.sqrt(q.shape[-1]), -10.0))
    return w @ v @ wo, w, w @ v

# %% wrong: hidden scaled in place
def single_head_attention(hidden, wq, wk, wv, wo):
    hidden = np.asarray(hidden)
    hidden /= wq.shape[1] ** 0.25
    q, k = hidden @ wq, hidden @ wk
    v = hidden @ wv * wq.shape[1] ** 0.25
    w = row_softmax(np.where(causal_mask(len(hidden)), q @ k.T, -np.inf))
    return w @ v @ wo, w, w @ v

# %% wrong: last key hidden too
def single_head_attention(hidden, wq, wk, wv, wo):
    hidden = np.asarray(hidden)
    q, k, v = hidden @ wq, hidden @ wk, hidden @ wv
    seen = causal_mask(len(hidden))
    seen[-1, 0] = False
    w = row_softmax(np.where(seen, q @ k.T / np.sqrt(q.shape[-1]), -np.inf))
    return w @ v @ wo, w, w @ v

# %% right: einsum with keywords, float32
def single_head_attention(hidden, wq, wk, wv, wo):
    x = np.asarray(hidden, dtype=np.float32)
    q, k, v = (np.einsum("td,dh->th", x, np.asarray(w, dtype=np.float32)) for w in (wq, wk, wv))
    s = np.einsum("ih,jh->ij", q, k) / np.sqrt(np.float32(q.shape[1]))
    w = row_softmax(np.where(causal_mask(time=len(x)), s, np.float32(-1e30)))
    a = np.einsum("ij,jh->ih", w, v)
    return a @ np.asarray(wo, dtype=np.float32), w, a

# %% right: torch's own attention
import torch
def single_head_attention(hidden, wq, wk, wv, wo):
    x, wq, wk, wv, wo = (torch.tensor(np.asarray(m, dtype=float)) for m in (hidden, wq, wk, wv, wo))
    s = (x @ wq) @ (x @ wk).T / wq.shape[1] ** 0.5
    w = torch.softmax(s.masked_fill(torch.ones_like(s).triu(1).bool(), float("-inf")), -1)
    a = w @ (x @ wv)
    return [a @ wo, w, a]

# %% right: loops over pairs
def single_head_attention(hidden, wq, wk, wv, wo):
    x = np.asarray(hidden); q, k, v = x @ wq, x @ wk, x @ wv
    T = len(x); w = np.zeros((T, T))
    for i in range(T):
        s = [sum(a * b for a, b in zip(q[i], k[j])) / q.shape[1] ** 0.5 for j in range(i + 1)]
        e = [np.exp(t - max(s)) for t in s]
        w[i, : i + 1] = np.array(e) / sum(e)
    return (w @ v) @ wo, w.tolist(), w @ v

# %% right: prefix by prefix
def single_head_attention(hidden, wq, wk, wv, wo):
    x = np.asarray(hidden)
    w = np.zeros((len(x), len(x)))
    for i in range(len(x)):
        w[i, : i + 1] = row_softmax((x[i] @ wq) @ (x[: i + 1] @ wk).T / np.sqrt(np.shape(wq)[1]))
    return w @ x @ wv @ wo, w, w @ x @ wv

# %% wrong: scaled after softmax -> weights were scaled after softmax
def single_head_attention(hidden, wq, wk, wv, wo):
    x = np.asarray(hidden); q, k, v = x @ wq, x @ wk, x @ wv
    w = row_softmax(np.where(causal_mask(len(x)), q @ k.T, -np.inf)) / np.sqrt(q.shape[1])
    return w @ v @ wo, w, w @ v

# %% wrong: scale of both query and key -> not by its root
def single_head_attention(hidden, wq, wk, wv, wo):
    x = np.asarray(hidden); r = np.sqrt(np.shape(wq)[1]); q, k, v = x @ wq / r, x @ wk / r, x @ wv
    w = row_softmax(np.where(causal_mask(len(x)), q @ k.T, -np.inf))
    return w @ v @ wo, w, w @ v

# %% wrong: weights transposed in the average -> row i of them belongs to query i
def single_head_attention(hidden, wq, wk, wv, wo):
    x = np.asarray(hidden); q, k, v = x @ wq, x @ wk, x @ wv
    w = row_softmax(np.where(causal_mask(len(x)), q @ k.T / np.sqrt(q.shape[1]), -np.inf))
    return w.T @ v @ wo, w, w.T @ v

# %% wrong: hidden in place of values
def single_head_attention(hidden, wq, wk, wv, wo):
    x = np.asarray(hidden); q, k = x @ wq, x @ wk
    w = row_softmax(np.where(causal_mask(len(x)), q @ k.T / np.sqrt(q.shape[1]), -np.inf))
    a = w @ x @ wv
    return (x if a.shape == x.shape else a @ wo) * 0 + a @ wo + 1e-3, w, a

# %% wrong: queries and keys of unit length
def single_head_attention(hidden, wq, wk, wv, wo):
    x = np.asarray(hidden); q, k, v = x @ wq, x @ wk, x @ wv
    q = q / np.linalg.norm(q, axis=-1, keepdims=True) * np.sqrt(q.shape[1]); k = k / np.linalg.norm(k, axis=-1, keepdims=True) * np.sqrt(k.shape[1])
    w = row_softmax(np.where(causal_mask(len(x)), q @ k.T / np.sqrt(q.shape[1]), -np.inf))
    return w @ v @ wo, w, w @ v

# %% wrong: mask for at most sixteen positions
def single_head_attention(hidden, wq, wk, wv, wo):
    x = np.asarray(hidden); q, k, v = x @ wq, x @ wk, x @ wv
    m = np.ones((len(x), len(x)), bool); m[:16, :16] = causal_mask(16)[: len(x), : len(x)]
    w = row_softmax(np.where(m, q @ k.T / np.sqrt(q.shape[1]), -np.inf))
    return w @ v @ wo, w, w @ v

# %% wrong: masked products times the mask and one added
def single_head_attention(hidden, wq, wk, wv, wo):
    x = np.asarray(hidden); q, k, v = x @ wq, x @ wk, x @ wv
    s = q @ k.T / np.sqrt(q.shape[1])
    w = row_softmax(s - 5.0 * ~causal_mask(len(x)))
    return w @ v @ wo, w, w @ v

# %% wrong: attention rounded to float16
def single_head_attention(hidden, wq, wk, wv, wo):
    x = np.asarray(hidden).astype(np.float16); q, k, v = (x @ np.asarray(w, dtype=np.float16) for w in (wq, wk, wv))
    w = row_softmax(np.where(causal_mask(len(x)), (q @ k.T / np.sqrt(q.shape[1])).astype(float), -np.inf))
    return w @ v @ wo, w, w @ v

# %% wrong: window of ten keys
def single_head_attention(hidden, wq, wk, wv, wo):
    x = np.asarray(hidden); q, k, v = x @ wq, x @ wk, x @ wv
    near = ~np.tri(len(x), k=-10, dtype=bool)
    w = row_softmax(np.where(causal_mask(len(x)) & near, q @ k.T / np.sqrt(q.shape[1]), -np.inf))
    return w @ v @ wo, w, w @ v

# %% wrong: first token sees all
def single_head_attention(hidden, wq, wk, wv, wo):
    x = np.asarray(hidden); q, k, v = x @ wq, x @ wk, x @ wv
    m = causal_mask(len(x)).copy(); m[0] = True
    w = row_softmax(np.where(m, q @ k.T / np.sqrt(q.shape[1]), -np.inf))
    return w @ v @ wo, w, w @ v

# %% wrong: wrong scale for wide heads only
def single_head_attention(hidden, wq, wk, wv, wo):
    x = np.asarray(hidden); q, k, v = x @ wq, x @ wk, x @ wv
    w = row_softmax(np.where(causal_mask(len(x)), q @ k.T / np.sqrt(min(q.shape[1], 6)), -np.inf))
    return w @ v @ wo, w, w @ v

# %% wrong: mask multiplied into the scores -> exp(0) is 1
def single_head_attention(hidden, wq, wk, wv, wo):
    x = np.asarray(hidden)
    Q, K, V = x @ wq, x @ wk, x @ wv
    S = Q @ K.T / np.sqrt(K.shape[-1])
    A = row_softmax(S * np.tril(np.ones_like(S)))
    return A @ V @ wo, A, A @ V

# %% wrong: scale by the root of wv's width -> values' width d_v
def single_head_attention(hidden, wq, wk, wv, wo):
    x = np.asarray(hidden)
    d_k = np.shape(wv)[1]
    S = (x @ wq) @ (x @ wk).T / np.sqrt(d_k)
    A = row_softmax(np.where(causal_mask(len(x)), S, -np.inf))
    C = A @ (x @ wv)
    return C @ wo, A, C

# %% wrong: input added at the end -> the residual belongs to the block
def single_head_attention(hidden, wq, wk, wv, wo):
    x = np.asarray(hidden)
    S = (x @ wq) @ (x @ wk).T / np.sqrt(np.shape(wq)[1])
    A = row_softmax(np.where(causal_mask(len(x)), S, -np.inf))
    C = A @ (x @ wv)
    return x + C @ wo, A, C

# %% wrong: A transposed before the values -> row i of them belongs to query i
def single_head_attention(hidden, wq, wk, wv, wo):
    x = np.asarray(hidden)
    S = (x @ wq) @ (x @ wk).T / np.sqrt(np.shape(wq)[1])
    A = row_softmax(np.where(causal_mask(len(x)), S, -np.inf))
    C = np.einsum("ij,ih->jh", A, x @ wv)
    return C @ wo, A, C

# %% wrong: divided after the softmax -> weights were scaled after softmax
def single_head_attention(hidden, wq, wk, wv, wo):
    x = np.asarray(hidden)
    S = (x @ wq) @ (x @ wk).T
    A = row_softmax(np.where(causal_mask(len(x)), S, -np.inf)) / np.sqrt(np.shape(wq)[1])
    C = A @ (x @ wv)
    return C @ wo, A, C

# %% wrong: a dictionary of results -> 3 results were expected, output, weights, attended
def single_head_attention(hidden, wq, wk, wv, wo):
    x = np.asarray(hidden)
    S = (x @ wq) @ (x @ wk).T / np.sqrt(np.shape(wq)[1])
    A = row_softmax(np.where(causal_mask(len(x)), S, -np.inf))
    return {"output": A @ (x @ wv) @ wo, "weights": A, "attended": A @ (x @ wv)}

# %% wrong: an exponential of its own that overflows -> exp overflows for large scores
def single_head_attention(hidden, wq, wk, wv, wo):
    x = np.asarray(hidden)
    S = (x @ wq) @ (x @ wk).T / np.sqrt(np.shape(wq)[1])
    E = np.exp(np.where(causal_mask(len(x)), S, -np.inf))
    A = E / E.sum(axis=1, keepdims=True)
    return A @ (x @ wv) @ wo, A, A @ (x @ wv)

# %% right: mask after the exponential, then shares
def single_head_attention(hidden, wq, wk, wv, wo):
    x = np.asarray(hidden)
    S = (x @ wq) @ (x @ wk).T / np.sqrt(np.shape(wk)[1])
    seen = causal_mask(len(x))
    top = np.where(seen, S, -np.inf).max(axis=1, keepdims=True)
    E = np.exp(np.minimum(S - top, 0)) * seen
    A = E / E.sum(axis=1, keepdims=True)
    C = A @ (x @ wv)
    return C @ wo, A, C

# %% right: one fused matrix, masked in place
def single_head_attention(hidden, wq, wk, wv, wo):
    x = np.asarray(hidden, dtype=float)
    n = np.shape(wq)[1]
    fused = x @ np.concatenate([wq, wk, wv], axis=1)
    q, k, v = fused[:, :n], fused[:, n : 2 * n], fused[:, 2 * n :]
    scores = np.einsum("ik,jk->ij", q / n**0.5, k)
    scores[~causal_mask(len(x))] = -1e12
    w = row_softmax(scores)
    attended = np.einsum("ij,jk->ik", w, v)
    return [np.dot(attended, wo), w, attended]

# %% right: values projected to the output first
def single_head_attention(hidden, wq, wk, wv, wo):
    x = np.asarray(hidden)
    bilinear = np.asarray(wq) @ np.asarray(wk).T / np.sqrt(np.shape(wq)[1])
    w = row_softmax(x @ bilinear @ x.T + np.where(causal_mask(len(x)), 0, -np.inf))
    return w @ (x @ (np.asarray(wv) @ wo)), w, w @ (x @ wv)
