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

# %% wrong: gamma multiplied last
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

# %% wrong: summed over the first axis only
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

# %% wrong: d_gamma with the raw values
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

# %% wrong: divided by the variance
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
