# %% setup
import numpy as np

# %% right: three terms
def layer_norm_backward(values, gamma, epsilon, upstream):
    mean = values.mean(axis=-1, keepdims=True)
    std = np.sqrt(values.var(axis=-1, keepdims=True) + epsilon)
    n = (values - mean) / std
    g = upstream * gamma
    dv = (g - g.mean(-1, keepdims=True) - n * (g * n).mean(-1, keepdims=True)) / std
    axes = tuple(range(values.ndim - 1))
    return dv, (upstream * n).sum(axis=axes), upstream.sum(axis=axes)

# %% right: multiplied by the width
def layer_norm_backward(values, gamma, epsilon, upstream):
    d = values.shape[-1]
    centred = values - values.mean(axis=-1, keepdims=True)
    inverse = 1.0 / np.sqrt((centred**2).sum(axis=-1, keepdims=True) / d + epsilon)
    n = centred * inverse
    g = upstream * gamma
    total = d * g - g.sum(-1, keepdims=True) - n * (g * n).sum(-1, keepdims=True)
    return total * inverse / d, (upstream * n).reshape(-1, d).sum(0), upstream.reshape(-1, d).sum(0)

# %% right: through variance and mean one by one
def layer_norm_backward(values, gamma, epsilon, upstream):
    d = values.shape[-1]
    mean = values.mean(-1, keepdims=True)
    variance = ((values - mean) ** 2).mean(-1, keepdims=True)
    g = upstream * gamma
    d_variance = (g * (values - mean) * -0.5 * (variance + epsilon) ** -1.5).sum(-1, keepdims=True)
    d_mean = -(g / np.sqrt(variance + epsilon)).sum(-1, keepdims=True)
    dv = g / np.sqrt(variance + epsilon) + d_variance * 2 * (values - mean) / d + d_mean / d
    n = (values - mean) / np.sqrt(variance + epsilon)
    return [dv, np.add.reduce((upstream * n).reshape(-1, d)), np.add.reduce(upstream.reshape(-1, d))]

# %% right: Jacobian row by row
def layer_norm_backward(values, gamma, epsilon, upstream):
    d = values.shape[-1]
    rows, ups = values.reshape(-1, d), upstream.reshape(-1, d)
    out, dg = [], np.zeros(d)
    for row, up in zip(rows, ups):
        s = np.sqrt(row.var() + epsilon)
        n = (row - row.mean()) / s
        jacobian = (np.eye(d) - 1 / d - np.outer(n, n) / d) / s
        out.append(jacobian @ (up * gamma))
        dg += up * n
    return np.array(out).reshape(values.shape), dg, ups.sum(axis=0)

# %% wrong: mean term missing -> term of the mean is missing
def layer_norm_backward(values, gamma, epsilon, upstream):
    std = np.sqrt(values.var(axis=-1, keepdims=True) + epsilon)
    n = (values - values.mean(axis=-1, keepdims=True)) / std
    g = upstream * gamma
    axes = tuple(range(values.ndim - 1))
    return (g - n * (g * n).mean(-1, keepdims=True)) / std, (upstream * n).sum(axes), upstream.sum(axes)

# %% wrong: deviation term missing -> term of the deviation is missing
def layer_norm_backward(values, gamma, epsilon, upstream):
    std = np.sqrt(values.var(axis=-1, keepdims=True) + epsilon)
    n = (values - values.mean(axis=-1, keepdims=True)) / std
    g = upstream * gamma
    axes = tuple(range(values.ndim - 1))
    return (g - g.mean(-1, keepdims=True)) / std, (upstream * n).sum(axes), upstream.sum(axes)

# %% wrong: mean and deviation constant -> taken as constants
def layer_norm_backward(values, gamma, epsilon, upstream):
    std = np.sqrt(values.var(axis=-1, keepdims=True) + epsilon)
    n = (values - values.mean(axis=-1, keepdims=True)) / std
    axes = tuple(range(values.ndim - 1))
    return upstream * gamma / std, (upstream * n).sum(axes), upstream.sum(axes)

# %% wrong: gamma missing -> gamma is missing
def layer_norm_backward(values, gamma, epsilon, upstream):
    std = np.sqrt(values.var(axis=-1, keepdims=True) + epsilon)
    n = (values - values.mean(axis=-1, keepdims=True)) / std
    g = upstream
    axes = tuple(range(values.ndim - 1))
    dv = (g - g.mean(-1, keepdims=True) - n * (g * n).mean(-1, keepdims=True)) / std
    return dv, (upstream * n).sum(axes), upstream.sum(axes)

# %% wrong: gamma multiplied last -> gamma multiplies the result
def layer_norm_backward(values, gamma, epsilon, upstream):
    std = np.sqrt(values.var(axis=-1, keepdims=True) + epsilon)
    n = (values - values.mean(axis=-1, keepdims=True)) / std
    g = upstream
    axes = tuple(range(values.ndim - 1))
    dv = gamma * (g - g.mean(-1, keepdims=True) - n * (g * n).mean(-1, keepdims=True)) / std
    return dv, (upstream * n).sum(axes), upstream.sum(axes)

# %% wrong: epsilon ignored -> epsilon is not used
def layer_norm_backward(values, gamma, epsilon, upstream):
    std = np.sqrt(values.var(axis=-1, keepdims=True) + 1e-5)
    n = (values - values.mean(axis=-1, keepdims=True)) / std
    g = upstream * gamma
    axes = tuple(range(values.ndim - 1))
    dv = (g - g.mean(-1, keepdims=True) - n * (g * n).mean(-1, keepdims=True)) / std
    return dv, (upstream * n).sum(axes), upstream.sum(axes)

# %% wrong: epsilon outside the root -> belongs inside the root
def layer_norm_backward(values, gamma, epsilon, upstream):
    std = values.std(axis=-1, keepdims=True) + epsilon
    n = (values - values.mean(axis=-1, keepdims=True)) / std
    g = upstream * gamma
    axes = tuple(range(values.ndim - 1))
    dv = (g - g.mean(-1, keepdims=True) - n * (g * n).mean(-1, keepdims=True)) / std
    return dv, (upstream * n).sum(axes), upstream.sum(axes)

# %% wrong: unbiased variance -> divides by d - 1
def layer_norm_backward(values, gamma, epsilon, upstream):
    std = np.sqrt(values.var(axis=-1, keepdims=True, ddof=1) + epsilon)
    n = (values - values.mean(axis=-1, keepdims=True)) / std
    g = upstream * gamma
    axes = tuple(range(values.ndim - 1))
    dv = (g - g.mean(-1, keepdims=True) - n * (g * n).mean(-1, keepdims=True)) / std
    return dv, (upstream * n).sum(axes), upstream.sum(axes)

# %% wrong: no sums over positions -> not summed
def layer_norm_backward(values, gamma, epsilon, upstream):
    std = np.sqrt(values.var(axis=-1, keepdims=True) + epsilon)
    n = (values - values.mean(axis=-1, keepdims=True)) / std
    g = upstream * gamma
    dv = (g - g.mean(-1, keepdims=True) - n * (g * n).mean(-1, keepdims=True)) / std
    return dv, upstream * n, upstream

# %% wrong: summed over the first axis only -> over the first axis alone
def layer_norm_backward(values, gamma, epsilon, upstream):
    std = np.sqrt(values.var(axis=-1, keepdims=True) + epsilon)
    n = (values - values.mean(axis=-1, keepdims=True)) / std
    g = upstream * gamma
    dv = (g - g.mean(-1, keepdims=True) - n * (g * n).mean(-1, keepdims=True)) / std
    return dv, (upstream * n).sum(axis=0), upstream.sum(axis=0)

# %% wrong: d_gamma and d_beta swapped -> swapped
def layer_norm_backward(values, gamma, epsilon, upstream):
    std = np.sqrt(values.var(axis=-1, keepdims=True) + epsilon)
    n = (values - values.mean(axis=-1, keepdims=True)) / std
    g = upstream * gamma
    axes = tuple(range(values.ndim - 1))
    dv = (g - g.mean(-1, keepdims=True) - n * (g * n).mean(-1, keepdims=True)) / std
    return dv, upstream.sum(axes), (upstream * n).sum(axes)

# %% wrong: d_gamma with the raw values -> values as they came
def layer_norm_backward(values, gamma, epsilon, upstream):
    std = np.sqrt(values.var(axis=-1, keepdims=True) + epsilon)
    n = (values - values.mean(axis=-1, keepdims=True)) / std
    g = upstream * gamma
    axes = tuple(range(values.ndim - 1))
    dv = (g - g.mean(-1, keepdims=True) - n * (g * n).mean(-1, keepdims=True)) / std
    return dv, (upstream * values).sum(axes), upstream.sum(axes)

# %% wrong: averaged over positions -> averaged over positions
def layer_norm_backward(values, gamma, epsilon, upstream):
    std = np.sqrt(values.var(axis=-1, keepdims=True) + epsilon)
    n = (values - values.mean(axis=-1, keepdims=True)) / std
    g = upstream * gamma
    axes = tuple(range(values.ndim - 1))
    dv = (g - g.mean(-1, keepdims=True) - n * (g * n).mean(-1, keepdims=True)) / std
    return dv, (upstream * n).mean(axes), upstream.mean(axes)

# %% wrong: statistics over positions
def layer_norm_backward(values, gamma, epsilon, upstream):
    std = np.sqrt(values.var(axis=0, keepdims=True) + epsilon)
    n = (values - values.mean(axis=0, keepdims=True)) / std
    g = upstream * gamma
    axes = tuple(range(values.ndim - 1))
    dv = (g - g.mean(0, keepdims=True) - n * (g * n).mean(0, keepdims=True)) / std
    return dv, (upstream * n).sum(axes), upstream.sum(axes)

# %% wrong: divided by the variance -> divided by the variance
def layer_norm_backward(values, gamma, epsilon, upstream):
    variance = values.var(axis=-1, keepdims=True) + epsilon
    n = (values - values.mean(axis=-1, keepdims=True)) / np.sqrt(variance)
    g = upstream * gamma
    axes = tuple(range(values.ndim - 1))
    dv = (g - g.mean(-1, keepdims=True) - n * (g * n).mean(-1, keepdims=True)) / variance
    return dv, (upstream * n).sum(axes), upstream.sum(axes)

# %% wrong: zero spread divided by zero -> constant rows
def layer_norm_backward(values, gamma, epsilon, upstream):
    variance = values.var(axis=-1, keepdims=True)
    std = np.sqrt(variance + epsilon)
    n = (values - values.mean(axis=-1, keepdims=True)) / std
    g = upstream * gamma
    axes = tuple(range(values.ndim - 1))
    along = n * (g * n).mean(-1, keepdims=True)
    with np.errstate(all="ignore"):
        dv = (g - g.mean(-1, keepdims=True) - along) / std * (variance / variance)
    return dv, (upstream * n).sum(axes), upstream.sum(axes)

# %% right: torch autograd
import torch
def layer_norm_backward(values, gamma, epsilon, upstream):
    x, g = torch.tensor(values, requires_grad=True), torch.tensor(gamma, requires_grad=True)
    b = torch.zeros(len(gamma), dtype=torch.float64, requires_grad=True)
    (torch.nn.functional.layer_norm(x, x.shape[-1:], g, b, epsilon) * torch.tensor(upstream)).sum().backward()
    return x.grad, g.grad, b.grad

# %% right: einsum and lists
def layer_norm_backward(values, gamma, epsilon, upstream):
    c = values - np.mean(values, -1, keepdims=True); s = np.sqrt(np.einsum("...d,...d->...", c, c)[..., None] / c.shape[-1] + epsilon)
    n = c / s; g = np.einsum("...d,d->...d", upstream, gamma)
    dx = (g - np.mean(g, -1, keepdims=True) - n * np.mean(g * n, -1, keepdims=True)) / s
    return [dx, np.einsum("nd,nd->d", upstream.reshape(-1, n.shape[-1]), n.reshape(-1, n.shape[-1])), upstream.reshape(-1, upstream.shape[-1]).sum(0)]

# %% right: flattened rows and a projection matrix
def layer_norm_backward(values, gamma, epsilon, upstream):
    d = values.shape[-1]; x, u = values.reshape(-1, d), upstream.reshape(-1, d)
    dx = np.empty_like(x); dg = np.zeros(d)
    for i in range(len(x)):
        c = x[i] - x[i].mean(); s = np.sqrt(c @ c / d + epsilon); n = c / s
        dx[i] = (np.eye(d) - 1 / d - np.outer(n, n) / d) @ (u[i] * gamma) / s; dg += u[i] * n
    return dx.reshape(values.shape), dg, u.sum(0)

# %% wrong: epsilon only forward
def layer_norm_backward(values, gamma, epsilon, upstream):
    c = values - values.mean(-1, keepdims=True); s = np.sqrt(values.var(-1, keepdims=True) + epsilon); s0 = np.sqrt(values.var(-1, keepdims=True) + 1e-12)
    n = c / s; g = upstream * gamma
    return (g - g.mean(-1, keepdims=True) - n * (g * n).mean(-1, keepdims=True)) / s0, (upstream * n).reshape(-1, len(gamma)).sum(0), upstream.reshape(-1, len(gamma)).sum(0)

# %% wrong: normalised with gamma and beta
def layer_norm_backward(values, gamma, epsilon, upstream):
    c = values - values.mean(-1, keepdims=True); s = np.sqrt(values.var(-1, keepdims=True) + epsilon)
    n = gamma * c / s; g = upstream * gamma
    return (g - g.mean(-1, keepdims=True) - n * (g * n).mean(-1, keepdims=True)) / s, (upstream * c / s).reshape(-1, len(gamma)).sum(0), upstream.reshape(-1, len(gamma)).sum(0)

# %% wrong: sums in place of means -> sums stand where means belong
def layer_norm_backward(values, gamma, epsilon, upstream):
    c = values - values.mean(-1, keepdims=True); s = np.sqrt(values.var(-1, keepdims=True) + epsilon)
    n = c / s; g = upstream * gamma
    return (g - g.sum(-1, keepdims=True) - n * (g * n).sum(-1, keepdims=True)) / s, (upstream * n).reshape(-1, len(gamma)).sum(0), upstream.reshape(-1, len(gamma)).sum(0)

# %% wrong: sign of the third term -> third term has the wrong sign
def layer_norm_backward(values, gamma, epsilon, upstream):
    c = values - values.mean(-1, keepdims=True); s = np.sqrt(values.var(-1, keepdims=True) + epsilon)
    n = c / s; g = upstream * gamma
    return (g - g.mean(-1, keepdims=True) + n * (g * n).mean(-1, keepdims=True)) / s, (upstream * n).reshape(-1, len(gamma)).sum(0), upstream.reshape(-1, len(gamma)).sum(0)

# %% wrong: d_gamma times gamma -> contains gamma
def layer_norm_backward(values, gamma, epsilon, upstream):
    c = values - values.mean(-1, keepdims=True); s = np.sqrt(values.var(-1, keepdims=True) + epsilon)
    n = c / s; g = upstream * gamma
    return (g - g.mean(-1, keepdims=True) - n * (g * n).mean(-1, keepdims=True)) / s, (g * n).reshape(-1, len(gamma)).sum(0), upstream.reshape(-1, len(gamma)).sum(0)

# %% wrong: d_beta times gamma -> contains gamma
def layer_norm_backward(values, gamma, epsilon, upstream):
    c = values - values.mean(-1, keepdims=True); s = np.sqrt(values.var(-1, keepdims=True) + epsilon)
    n = c / s; g = upstream * gamma
    return (g - g.mean(-1, keepdims=True) - n * (g * n).mean(-1, keepdims=True)) / s, (upstream * n).reshape(-1, len(gamma)).sum(0), g.reshape(-1, len(gamma)).sum(0)

# %% wrong: rms norm's backward
def layer_norm_backward(values, gamma, epsilon, upstream):
    s = np.sqrt((values**2).mean(-1, keepdims=True) + epsilon)
    n = values / s; g = upstream * gamma
    return (g - n * (g * n).mean(-1, keepdims=True)) / s, (upstream * n).reshape(-1, len(gamma)).sum(0), upstream.reshape(-1, len(gamma)).sum(0)

# %% wrong: order gamma, beta, values -> in this order
def layer_norm_backward(values, gamma, epsilon, upstream):
    c = values - values.mean(-1, keepdims=True); s = np.sqrt(values.var(-1, keepdims=True) + epsilon)
    n = c / s; g = upstream * gamma
    return (upstream * n).reshape(-1, len(gamma)).sum(0), upstream.reshape(-1, len(gamma)).sum(0), (g - g.mean(-1, keepdims=True) - n * (g * n).mean(-1, keepdims=True)) / s

# %% wrong: last axis of a batch only
def layer_norm_backward(values, gamma, epsilon, upstream):
    c = values - values.mean(-1, keepdims=True); s = np.sqrt(values.var(-1, keepdims=True) + epsilon)
    n = c / s; g = upstream * gamma
    dg, db = upstream * n, upstream
    while dg.ndim > 1: dg, db = dg[-1] if dg.ndim > 2 else dg.sum(0), db.sum(0)
    return (g - g.mean(-1, keepdims=True) - n * (g * n).mean(-1, keepdims=True)) / s, dg, db

# %% wrong: d_beta and d_gamma with gamma -> d_gamma or d_beta contains gamma
def layer_norm_backward(values, gamma, epsilon, upstream):
    std = np.sqrt(values.var(axis=-1, keepdims=True) + epsilon)
    n = (values - values.mean(axis=-1, keepdims=True)) / std
    g = upstream * gamma
    dv = (g - g.mean(-1, keepdims=True) - n * (g * n).mean(-1, keepdims=True)) / std
    axes = tuple(range(values.ndim - 1))
    return dv, (g * n).sum(axis=axes), g.sum(axis=axes)

# %% wrong: d_gamma and d_beta summed over features -> summed over features
def layer_norm_backward(values, gamma, epsilon, upstream):
    std = np.sqrt(values.var(axis=-1, keepdims=True) + epsilon)
    n = (values - values.mean(axis=-1, keepdims=True)) / std
    g = upstream * gamma
    dv = (g - g.mean(-1, keepdims=True) - n * (g * n).mean(-1, keepdims=True)) / std
    return dv, (upstream * n).sum(axis=-1), upstream.sum(axis=-1)

# %% wrong: summed over axis 0 -> summed over the first axis alone
def layer_norm_backward(values, gamma, epsilon, upstream):
    std = np.sqrt(values.var(axis=-1, keepdims=True) + epsilon)
    n = (values - values.mean(axis=-1, keepdims=True)) / std
    g = upstream * gamma
    dv = (g - g.mean(-1, keepdims=True) - n * (g * n).mean(-1, keepdims=True)) / std
    return dv, np.sum(upstream * n, axis=0), np.sum(upstream, axis=0)

# %% wrong: gamma at the end -> gamma multiplies the result
def layer_norm_backward(values, gamma, epsilon, upstream):
    std = np.sqrt(values.var(axis=-1, keepdims=True) + epsilon)
    n = (values - values.mean(axis=-1, keepdims=True)) / std
    dv = (upstream - upstream.mean(-1, keepdims=True) - n * (upstream * n).mean(-1, keepdims=True)) / std * gamma
    axes = tuple(range(values.ndim - 1))
    return dv, (upstream * n).sum(axis=axes), upstream.sum(axis=axes)

# %% wrong: sums without dividing by d -> sums stand where means belong
def layer_norm_backward(values, gamma, epsilon, upstream):
    std = np.sqrt(values.var(axis=-1, keepdims=True) + epsilon)
    n = (values - values.mean(axis=-1, keepdims=True)) / std
    g = upstream * gamma
    dv = (g - g.sum(-1, keepdims=True) - n * (g * n).sum(-1, keepdims=True)) / std
    axes = tuple(range(values.ndim - 1))
    return dv, (upstream * n).sum(axis=axes), upstream.sum(axis=axes)

# %% wrong: sign of the deviation's term -> third term has the wrong sign
def layer_norm_backward(values, gamma, epsilon, upstream):
    std = np.sqrt(values.var(axis=-1, keepdims=True) + epsilon)
    n = (values - values.mean(axis=-1, keepdims=True)) / std
    g = upstream * gamma
    dv = (g - g.mean(-1, keepdims=True) + n * (g * n).mean(-1, keepdims=True)) / std
    axes = tuple(range(values.ndim - 1))
    return dv, (upstream * n).sum(axis=axes), upstream.sum(axis=axes)

# %% wrong: raw values for gamma -> takes the values as they came
def layer_norm_backward(values, gamma, epsilon, upstream):
    std = np.sqrt(values.var(axis=-1, keepdims=True) + epsilon)
    n = (values - values.mean(axis=-1, keepdims=True)) / std
    g = upstream * gamma
    dv = (g - g.mean(-1, keepdims=True) - n * (g * n).mean(-1, keepdims=True)) / std
    axes = tuple(range(values.ndim - 1))
    return dv, (upstream * values).sum(axis=axes), upstream.sum(axis=axes)

# %% right: rows stacked, einsum sums
def layer_norm_backward(values, gamma, epsilon, upstream):
    x, u = values.reshape(-1, values.shape[-1]), upstream.reshape(-1, values.shape[-1])
    c = x - x.mean(1, keepdims=True)
    inv = ((c * c).mean(1, keepdims=True) + epsilon) ** -0.5
    g = u * gamma
    dx = inv * (g - g.mean(1, keepdims=True)) - c * inv**3 * (g * c).mean(1, keepdims=True)
    return dx.reshape(values.shape), np.einsum("nd,nd->d", u, c * inv), np.ones(len(u)) @ u

# %% right: repeated sums until one axis is left
def layer_norm_backward(values, gamma, epsilon, upstream):
    inv = 1 / np.sqrt(np.var(values, -1) + epsilon)[..., None]
    n = (values - np.mean(values, -1)[..., None]) * inv
    g = upstream * gamma
    dv = inv * (g - np.mean(g, -1)[..., None] - n * np.mean(g * n, -1)[..., None])
    dg, db = upstream * n, upstream
    while dg.ndim > 1:
        dg, db = dg.sum(0), db.sum(0)
    return [dv, dg, db]

# %% right: d_values by the chain through centring
def layer_norm_backward(values, gamma, epsilon, upstream):
    d = values.shape[-1]
    centre = np.eye(d) - 1 / d
    c = values @ centre
    s = np.sqrt((c**2).mean(-1, keepdims=True) + epsilon)
    dn = upstream * gamma
    dc = dn / s - c * (dn * c).sum(-1, keepdims=True) / (d * s**3)
    axes = tuple(range(values.ndim - 1))
    return dc @ centre, np.sum(upstream * c / s, axis=axes), np.sum(upstream, axis=axes)
