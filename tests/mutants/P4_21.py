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

# %% wrong: only d_value -> query and key get no gradient
def attention_backward(query, key, value, upstream):
    w = causal_weights(query, key, query.shape[-1] ** -0.5)
    return np.zeros_like(query), np.zeros_like(key), np.swapaxes(w, -1, -2) @ upstream

# %% wrong: scale from the value's width -> root of the query's width
def attention_backward(query, key, value, upstream):
    scale = value.shape[-1] ** -0.5
    w = causal_weights(query, key, scale)
    ds = softmax_backward(w, upstream @ np.swapaxes(value, -1, -2)) * scale
    return ds @ key, np.swapaxes(ds, -1, -2) @ query, np.swapaxes(w, -1, -2) @ upstream

# %% wrong: strict mask, the diagonal hidden too -> diagonal is hidden too
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

# %% right: torch autograd
import torch
def attention_backward(query, key, value, upstream):
    q, k, v = (torch.tensor(a, requires_grad=True) for a in (query, key, value))
    s = q @ k.mT / q.shape[-1] ** 0.5
    a = s.masked_fill(torch.ones(s.shape[-2:]).triu(1).bool(), float("-inf")).softmax(-1)
    (a @ v * torch.tensor(upstream)).sum().backward()
    return q.grad, k.grad, v.grad

# %% right: query by query
def attention_backward(query, key, value, upstream):
    dq, dk, dv = np.zeros_like(query), np.zeros_like(key), np.zeros_like(value)
    r = query.shape[-1] ** -0.5
    for i in range(query.shape[-2]):
        k, v = key[..., : i + 1, :], value[..., : i + 1, :]
        s = np.einsum("...w,...sw->...s", query[..., i, :], k) * r
        e = np.exp(s - s.max(-1, keepdims=True)); w = e / e.sum(-1, keepdims=True)
        u = upstream[..., i, :]
        dw = np.einsum("...v,...sv->...s", u, v); ds = softmax_backward(w, dw) * r
        dq[..., i, :] = np.einsum("...s,...sw->...w", ds, k)
        dk[..., : i + 1, :] += ds[..., None] * query[..., i : i + 1, :]
        dv[..., : i + 1, :] += w[..., None] * u[..., None, :]
    return dq, dk, dv

# %% right: a class returning lists
class Back:
    def __call__(self, query, key, value, upstream):
        r = query.shape[-1] ** -0.5
        w = causal_weights(query, key, r)
        ds = softmax_backward(w, np.matmul(upstream, np.moveaxis(value, -1, -2))) * r
        return [(ds @ key).tolist(), (np.swapaxes(ds, -1, -2) @ query).tolist(), (np.swapaxes(w, -1, -2) @ upstream).tolist()]
attention_backward = Back()

# %% wrong: scores masked after softmax -> mask came after softmax
def attention_backward(query, key, value, upstream):
    r = query.shape[-1] ** -0.5; s = query @ key.swapaxes(-1, -2) * r
    w = np.exp(s); w = np.tril(w / w.sum(-1, keepdims=True))
    ds = softmax_backward(w, upstream @ value.swapaxes(-1, -2)) * r
    return ds @ key, ds.swapaxes(-1, -2) @ query, w.swapaxes(-1, -2) @ upstream

# %% wrong: gradient of the score masked with ones on the diagonal only
def attention_backward(query, key, value, upstream):
    r = query.shape[-1] ** -0.5; w = causal_weights(query, key, r)
    ds = softmax_backward(w, upstream @ value.swapaxes(-1, -2)) * r * np.eye(query.shape[-2])
    return ds @ key, ds.swapaxes(-1, -2) @ query, w.swapaxes(-1, -2) @ upstream

# %% wrong: output in place of upstream for values
def attention_backward(query, key, value, upstream):
    r = query.shape[-1] ** -0.5; w = causal_weights(query, key, r)
    ds = softmax_backward(w, upstream @ value.swapaxes(-1, -2)) * r
    return ds @ key, ds.swapaxes(-1, -2) @ query, w.swapaxes(-1, -2) @ (w @ value)

# %% wrong: d_query of the first position zero
def attention_backward(query, key, value, upstream):
    r = query.shape[-1] ** -0.5; w = causal_weights(query, key, r)
    ds = softmax_backward(w, upstream @ value.swapaxes(-1, -2)) * r
    dv = w.swapaxes(-1, -2) @ upstream; dv[..., -1, :] = 0
    return ds @ key, ds.swapaxes(-1, -2) @ query, dv

# %% wrong: averaged over leading axes
def attention_backward(query, key, value, upstream):
    r = query.shape[-1] ** -0.5; w = causal_weights(query, key, r)
    ds = softmax_backward(w, upstream @ value.swapaxes(-1, -2)) * r
    dv = w.swapaxes(-1, -2) @ upstream
    return ds @ key, ds.swapaxes(-1, -2) @ query, dv.mean(0, keepdims=True) + 0 * dv if dv.ndim > 2 else dv

# %% wrong: results in the order value, key, query -> another order
def attention_backward(query, key, value, upstream):
    r = query.shape[-1] ** -0.5; w = causal_weights(query, key, r)
    ds = softmax_backward(w, upstream @ value.swapaxes(-1, -2)) * r
    return w.swapaxes(-1, -2) @ upstream, ds.swapaxes(-1, -2) @ query, ds @ key

# %% wrong: scale of time
def attention_backward(query, key, value, upstream):
    r = query.shape[-2] ** -0.5; w = causal_weights(query, key, r)
    ds = softmax_backward(w, upstream @ value.swapaxes(-1, -2)) * r
    return ds @ key, ds.swapaxes(-1, -2) @ query, w.swapaxes(-1, -2) @ upstream

# %% wrong: weights detached -> query and key get no gradient
def attention_backward(query, key, value, upstream):
    w = causal_weights(query, key, query.shape[-1] ** -0.5)
    return np.zeros_like(query), np.zeros_like(key), w.swapaxes(-1, -2) @ upstream

# %% wrong: float32 inside
def attention_backward(query, key, value, upstream):
    query, key, value, upstream = (a.astype(np.float32) for a in (query, key, value, upstream))
    r = query.shape[-1] ** -0.5; w = causal_weights(query, key, r)
    ds = softmax_backward(w, upstream @ value.swapaxes(-1, -2)) * r
    return ds @ key, ds.swapaxes(-1, -2) @ query, w.swapaxes(-1, -2) @ upstream

# %% wrong: query and key treated as constants -> query and key get no gradient
def attention_backward(query, key, value, upstream):
    w = causal_weights(query, key, query.shape[-1] ** -0.5)
    return np.zeros_like(query), np.zeros_like(key), np.swapaxes(w, -1, -2) @ upstream

# %% wrong: scale of the values' width -> root of the query's width
def attention_backward(query, key, value, upstream):
    scale = 1 / np.sqrt(value.shape[-1])
    w = causal_weights(query, key, scale)
    ds = softmax_backward(w, upstream @ np.swapaxes(value, -1, -2)) * scale
    return ds @ key, np.swapaxes(ds, -1, -2) @ query, np.swapaxes(w, -1, -2) @ upstream

# %% wrong: value first -> another order
def attention_backward(query, key, value, upstream):
    scale = 1 / np.sqrt(query.shape[-1])
    w = causal_weights(query, key, scale)
    ds = softmax_backward(w, upstream @ np.swapaxes(value, -1, -2)) * scale
    return np.swapaxes(w, -1, -2) @ upstream, np.swapaxes(ds, -1, -2) @ query, ds @ key

# %% wrong: scale twice on the way back -> not by its root
def attention_backward(query, key, value, upstream):
    scale = 1 / np.sqrt(query.shape[-1])
    w = causal_weights(query, key, scale)
    ds = softmax_backward(w, upstream @ np.swapaxes(value, -1, -2)) * scale
    return ds @ key * scale, np.swapaxes(ds, -1, -2) @ query * scale, np.swapaxes(w, -1, -2) @ upstream

# %% wrong: weights times the mask -> the mask came after softmax
def attention_backward(query, key, value, upstream):
    scale = 1 / np.sqrt(query.shape[-1])
    s = query @ np.swapaxes(key, -1, -2) * scale
    e = np.exp(s - s.max(-1, keepdims=True))
    w = e / e.sum(-1, keepdims=True) * np.tri(s.shape[-1])
    ds = softmax_backward(w, upstream @ np.swapaxes(value, -1, -2)) * scale
    return ds @ key, np.swapaxes(ds, -1, -2) @ query, np.swapaxes(w, -1, -2) @ upstream

# %% wrong: d_value through the transposed values -> d_value lacks a transpose
def attention_backward(query, key, value, upstream):
    scale = 1 / np.sqrt(query.shape[-1])
    w = causal_weights(query, key, scale)
    ds = softmax_backward(w, upstream @ np.swapaxes(value, -1, -2)) * scale
    return ds @ key, np.swapaxes(ds, -1, -2) @ query, w @ upstream

# %% right: einsum names
def attention_backward(query, key, value, upstream):
    scale = query.shape[-1] ** -0.5
    w = causal_weights(query, key, scale)
    dw = np.einsum("...iv,...jv->...ij", upstream, value)
    ds = w * (dw - np.einsum("...ij,...ij->...i", w, dw)[..., None])
    return (np.einsum("...ij,...jc->...ic", ds, key) * scale,
            np.einsum("...ij,...ic->...jc", ds, query) * scale,
            np.einsum("...ij,...iv->...jv", w, upstream))

# %% right: row term from the output
def attention_backward(query, key, value, upstream):
    scale = query.shape[-1] ** -0.5
    w = causal_weights(query, key, scale)
    row = np.sum(upstream * (w @ value), axis=-1, keepdims=True)
    ds = w * (upstream @ value.swapaxes(-1, -2) - row) * scale
    return [ds @ key, ds.swapaxes(-1, -2) @ query, w.swapaxes(-1, -2) @ upstream]

# %% right: key by key
def attention_backward(query, key, value, upstream):
    scale = query.shape[-1] ** -0.5
    w = causal_weights(query, key, scale)
    ds = softmax_backward(w, upstream @ np.moveaxis(value, -1, -2)) * scale
    dq, dk, dv = np.zeros(query.shape), np.zeros(key.shape), np.zeros(value.shape)
    for j in range(key.shape[-2]):
        dq += ds[..., :, j, None] * key[..., j, None, :]
        dk[..., j, :] = (ds[..., :, j, None] * query).sum(-2)
        dv[..., j, :] = (w[..., :, j, None] * upstream).sum(-2)
    return dq, dk, dv
