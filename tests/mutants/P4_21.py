# %% setup
import numpy as np


def causal_weights(query, key, scale):
    scores = query @ np.swapaxes(key, -1, -2) * scale
    scores = np.where(np.tril(np.ones(scores.shape[-2:], dtype=bool)), scores, -np.inf)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def softmax_backward(w, u):
    return w * (u - (w * u).sum(axis=-1, keepdims=True))

# %% right: step by step
def attention_backward(query, key, value, upstream):
    scale = 1 / np.sqrt(query.shape[-1])
    w = causal_weights(query, key, scale)
    ds = softmax_backward(w, upstream @ np.swapaxes(value, -1, -2)) * scale
    return ds @ key, np.swapaxes(ds, -1, -2) @ query, np.swapaxes(w, -1, -2) @ upstream

# %% right: einsum and a list
def attention_backward(query, key, value, upstream):
    root = query.shape[-1] ** 0.5
    w = causal_weights(query, key, 1 / root)
    dw = np.einsum("...tv,...sv->...ts", upstream, value)
    ds = softmax_backward(w, dw)
    dq = np.einsum("...ts,...sd->...td", ds, key) / root
    dk = np.einsum("...ts,...td->...sd", ds, query) / root
    return [dq, dk, np.einsum("...ts,...tv->...sv", w, upstream)]

# %% right: query scaled beforehand
def attention_backward(query, key, value, upstream):
    scale = query.shape[-1] ** -0.5
    q = query * scale
    w = causal_weights(q, key, 1.0)
    ds = softmax_backward(w, upstream @ value.swapaxes(-1, -2))
    return (ds @ key) * scale, ds.swapaxes(-1, -2) @ q, w.swapaxes(-1, -2) @ upstream

# %% right: a large negative number as mask, loop over leading axes
def attention_backward(query, key, value, upstream):
    lead, (t, d) = query.shape[:-2], query.shape[-2:]
    flat = [a.reshape(-1, *a.shape[-2:]) for a in (query, key, value, upstream)]
    results = []
    for q, k, v, u in zip(*flat):
        s = q @ k.T / np.sqrt(d) - 1e9 * np.triu(np.ones((t, t)), 1)
        e = np.exp(s - s.max(1, keepdims=True))
        w = e / e.sum(1, keepdims=True)
        ds = softmax_backward(w, u @ v.T) / np.sqrt(d)
        results.append((ds @ k, ds.T @ q, w.T @ u))
    return tuple(np.array(parts).reshape(*lead, *parts[0].shape) for parts in zip(*results))

# %% right: mask times exponentials
def attention_backward(query, key, value, upstream):
    scale = query.shape[-1] ** -0.5
    s = query @ key.swapaxes(-1, -2) * scale
    e = np.exp(s - s.max(axis=-1, keepdims=True)) * np.tri(s.shape[-1])
    w = e / e.sum(axis=-1, keepdims=True)
    delta = np.sum((w @ value) * upstream, axis=-1, keepdims=True)
    ds = w * (upstream @ value.swapaxes(-1, -2) - delta) * scale
    return ds @ key, ds.swapaxes(-1, -2) @ query, w.swapaxes(-1, -2) @ upstream

# %% wrong: scale lost on the way back -> not divided by the root of d_h
def attention_backward(query, key, value, upstream):
    w = causal_weights(query, key, query.shape[-1] ** -0.5)
    ds = softmax_backward(w, upstream @ np.swapaxes(value, -1, -2))
    return ds @ key, np.swapaxes(ds, -1, -2) @ query, np.swapaxes(w, -1, -2) @ upstream

# %% wrong: no scale at all -> not scaled by the root of d_h
def attention_backward(query, key, value, upstream):
    w = causal_weights(query, key, 1.0)
    ds = softmax_backward(w, upstream @ np.swapaxes(value, -1, -2))
    return ds @ key, np.swapaxes(ds, -1, -2) @ query, np.swapaxes(w, -1, -2) @ upstream

# %% wrong: divided by d_h on the way back -> not by its root
def attention_backward(query, key, value, upstream):
    d = query.shape[-1]
    w = causal_weights(query, key, d**-0.5)
    ds = softmax_backward(w, upstream @ np.swapaxes(value, -1, -2)) / d
    return ds @ key, np.swapaxes(ds, -1, -2) @ query, np.swapaxes(w, -1, -2) @ upstream

# %% wrong: no mask -> without the causal mask
def attention_backward(query, key, value, upstream):
    scale = query.shape[-1] ** -0.5
    e = np.exp(query @ np.swapaxes(key, -1, -2) * scale)
    w = e / e.sum(axis=-1, keepdims=True)
    ds = softmax_backward(w, upstream @ np.swapaxes(value, -1, -2)) * scale
    return ds @ key, np.swapaxes(ds, -1, -2) @ query, np.swapaxes(w, -1, -2) @ upstream

# %% wrong: softmax skipped -> softmax's backward is missing
def attention_backward(query, key, value, upstream):
    scale = query.shape[-1] ** -0.5
    w = causal_weights(query, key, scale)
    ds = upstream @ np.swapaxes(value, -1, -2) * scale
    return ds @ key, np.swapaxes(ds, -1, -2) @ query, np.swapaxes(w, -1, -2) @ upstream

# %% wrong: softmax's diagonal -> keeps only its diagonal
def attention_backward(query, key, value, upstream):
    scale = query.shape[-1] ** -0.5
    w = causal_weights(query, key, scale)
    ds = w * (upstream @ np.swapaxes(value, -1, -2)) * scale
    return ds @ key, np.swapaxes(ds, -1, -2) @ query, np.swapaxes(w, -1, -2) @ upstream

# %% wrong: d_query and d_key swapped -> swapped
def attention_backward(query, key, value, upstream):
    scale = query.shape[-1] ** -0.5
    w = causal_weights(query, key, scale)
    ds = softmax_backward(w, upstream @ np.swapaxes(value, -1, -2)) * scale
    return np.swapaxes(ds, -1, -2) @ query, ds @ key, np.swapaxes(w, -1, -2) @ upstream

# %% wrong: d_key without transpose -> d_key lacks a transpose
def attention_backward(query, key, value, upstream):
    scale = query.shape[-1] ** -0.5
    w = causal_weights(query, key, scale)
    ds = softmax_backward(w, upstream @ np.swapaxes(value, -1, -2)) * scale
    return ds @ key, ds @ query, np.swapaxes(w, -1, -2) @ upstream

# %% wrong: d_value without transpose -> d_value lacks a transpose
def attention_backward(query, key, value, upstream):
    scale = query.shape[-1] ** -0.5
    w = causal_weights(query, key, scale)
    ds = softmax_backward(w, upstream @ np.swapaxes(value, -1, -2)) * scale
    return ds @ key, np.swapaxes(ds, -1, -2) @ query, w @ upstream

# %% wrong: all axes turned round by .T
def attention_backward(query, key, value, upstream):
    scale = query.shape[-1] ** -0.5
    w = causal_weights(query, key, scale)
    ds = softmax_backward(w, upstream @ value.T) * scale
    return ds @ key, ds.T @ query, w.T @ upstream

# %% wrong: only d_value
def attention_backward(query, key, value, upstream):
    w = causal_weights(query, key, query.shape[-1] ** -0.5)
    return np.zeros_like(query), np.zeros_like(key), np.swapaxes(w, -1, -2) @ upstream

# %% wrong: scale from the value's width
def attention_backward(query, key, value, upstream):
    scale = value.shape[-1] ** -0.5
    w = causal_weights(query, key, scale)
    ds = softmax_backward(w, upstream @ np.swapaxes(value, -1, -2)) * scale
    return ds @ key, np.swapaxes(ds, -1, -2) @ query, np.swapaxes(w, -1, -2) @ upstream

# %% wrong: strict mask, the diagonal hidden too
def attention_backward(query, key, value, upstream):
    scale = query.shape[-1] ** -0.5
    s = query @ np.swapaxes(key, -1, -2) * scale
    e = np.exp(s - s.max(axis=-1, keepdims=True)) * np.tri(s.shape[-1], k=-1)
    w = e / (e.sum(axis=-1, keepdims=True) + 1e-12)
    ds = softmax_backward(w, upstream @ np.swapaxes(value, -1, -2)) * scale
    return ds @ key, np.swapaxes(ds, -1, -2) @ query, np.swapaxes(w, -1, -2) @ upstream

# %% wrong: sign -> wrong sign
def attention_backward(query, key, value, upstream):
    scale = query.shape[-1] ** -0.5
    w = causal_weights(query, key, scale)
    ds = softmax_backward(w, upstream @ np.swapaxes(value, -1, -2)) * scale
    return -(ds @ key), -(np.swapaxes(ds, -1, -2) @ query), -(np.swapaxes(w, -1, -2) @ upstream)

# %% wrong: the query scaled in place -> changed in place
def attention_backward(query, key, value, upstream):
    scale = query.shape[-1] ** -0.5
    query *= scale
    w = causal_weights(query, key, 1.0)
    ds = softmax_backward(w, upstream @ np.swapaxes(value, -1, -2))
    return ds @ key * scale, np.swapaxes(ds, -1, -2) @ query, np.swapaxes(w, -1, -2) @ upstream
