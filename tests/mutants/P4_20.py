# %% setup
import numpy as np

# %% right: the formula
def softmax_backward(weights, upstream):
    return weights * (upstream - np.sum(weights * upstream, axis=-1, keepdims=True))

# %% right: expanded product
def softmax_backward(weights, upstream):
    product = weights * upstream
    return product - weights * product.sum(-1)[..., None]

# %% right: full Jacobian
def softmax_backward(weights, upstream):
    eye = np.eye(weights.shape[-1])
    jacobian = weights[..., :, None] * (eye - weights[..., None, :])
    return (jacobian.swapaxes(-1, -2) @ upstream[..., None])[..., 0]

# %% right: row by row
def softmax_backward(weights, upstream):
    w, u = weights.reshape(-1, weights.shape[-1]), upstream.reshape(-1, upstream.shape[-1])
    rows = [(np.diag(a) - np.outer(a, a)) @ b for a, b in zip(w, u)]
    return np.array(rows).reshape(weights.shape)

# %% right: einsum
def softmax_backward(weights, upstream):
    return weights * upstream - np.einsum("...i,...j,...j->...i", weights, weights, upstream)

# %% wrong: diagonal only -> only the diagonal
def softmax_backward(weights, upstream):
    return upstream * weights * (1 - weights)

# %% wrong: no row term -> row's own sum is missing
def softmax_backward(weights, upstream):
    return weights * upstream

# %% wrong: plain mean -> plain mean
def softmax_backward(weights, upstream):
    return weights * (upstream - upstream.mean(axis=-1, keepdims=True))

# %% wrong: plain sum -> plain sum
def softmax_backward(weights, upstream):
    return weights * (upstream - upstream.sum(axis=-1, keepdims=True))

# %% wrong: sum over queries -> sum runs over queries
def softmax_backward(weights, upstream):
    if weights.ndim == 1:
        return weights * upstream
    return weights * (upstream - (weights * upstream).sum(axis=-2, keepdims=True))

# %% wrong: first axis -> P4.20
def softmax_backward(weights, upstream):
    return weights * (upstream - (weights * upstream).sum(axis=0, keepdims=True))

# %% wrong: whole table -> whole table
def softmax_backward(weights, upstream):
    return weights * (upstream - (weights * upstream).sum())

# %% wrong: not weighted -> not multiplied by the weights
def softmax_backward(weights, upstream):
    return upstream - (weights * upstream).sum(axis=-1, keepdims=True)

# %% wrong: sign -> sign is wrong
def softmax_backward(weights, upstream):
    return weights * ((weights * upstream).sum(axis=-1, keepdims=True) - upstream)

# %% wrong: softmax taken again -> already its result
def softmax_backward(weights, upstream):
    e = np.exp(weights - weights.max(axis=-1, keepdims=True))
    w = e / e.sum(axis=-1, keepdims=True)
    return w * (upstream - (w * upstream).sum(axis=-1, keepdims=True))

# %% wrong: only two dimensions
def softmax_backward(weights, upstream):
    return weights * (upstream - np.sum(weights * upstream, axis=1).reshape(-1, 1))

# %% wrong: in place -> changed in place
def softmax_backward(weights, upstream):
    upstream -= np.sum(weights * upstream, axis=-1, keepdims=True)
    return weights * upstream

# %% wrong: float32 accumulator
def softmax_backward(weights, upstream):
    w, u = weights.astype(np.float16), upstream.astype(np.float16)
    return w * (u - np.sum(w * u, axis=-1, keepdims=True))

# %% wrong: weights squared
def softmax_backward(weights, upstream):
    return weights * (upstream - np.sum(weights**2 * upstream, axis=-1, keepdims=True))

# %% right: torch autograd through the logarithm
import torch
def softmax_backward(weights, upstream):
    w, u = torch.tensor(weights), torch.tensor(upstream)
    return w * (u - (w * u).sum(-1, keepdim=True))

# %% right: matrix of every row by lists
def softmax_backward(weights, upstream):
    w, u = np.asarray(weights), np.asarray(upstream)
    flat = [np.diag(a) @ b - a * a.dot(b) for a, b in zip(w.reshape(-1, w.shape[-1]), u.reshape(-1, u.shape[-1]))]
    return np.array(flat).reshape(w.shape).tolist()

# %% right: a lambda with vecdot by inner sums
softmax_backward = lambda weights, upstream: np.multiply(weights, upstream - np.add.reduce(np.multiply(weights, upstream), axis=-1, keepdims=True))

# %% wrong: weights renormalised
def softmax_backward(weights, upstream):
    w = weights / (weights.sum(-1, keepdims=True) + 1e-3)
    return w * (upstream - (w * upstream).sum(-1, keepdims=True))

# %% wrong: derivative of a sigmoid -> only the diagonal
def softmax_backward(weights, upstream):
    return weights * (1 - weights) * upstream

# %% wrong: derivative of log softmax -> slope of log softmax
def softmax_backward(weights, upstream):
    return upstream - weights * upstream.sum(-1, keepdims=True)

# %% wrong: sum over all axes but the first
def softmax_backward(weights, upstream):
    axes = tuple(range(1, weights.ndim)) or -1
    return weights * (upstream - (weights * upstream).sum(axes, keepdims=True))

# %% wrong: small entries dropped
def softmax_backward(weights, upstream):
    g = weights * (upstream - (weights * upstream).sum(-1, keepdims=True))
    return np.where(weights < 0.05, 0, g)

# %% wrong: divided by the width
def softmax_backward(weights, upstream):
    return weights * (upstream - (weights * upstream).sum(-1, keepdims=True)) / weights.shape[-1] ** 0.5

# %% wrong: upper triangle zeroed
def softmax_backward(weights, upstream):
    g = weights * (upstream - (weights * upstream).sum(-1, keepdims=True))
    return np.tril(g) if g.ndim > 1 else g

# %% wrong: float16 sum
def softmax_backward(weights, upstream):
    return weights * (upstream - (weights * upstream).astype(np.float16).sum(-1, keepdims=True))

# %% wrong: cumulative sum
def softmax_backward(weights, upstream):
    return weights * (upstream - np.cumsum(weights * upstream, -1))

# %% wrong: axis forgotten -> whole table
def softmax_backward(weights, upstream):
    return weights * (upstream - (weights * upstream).sum())

# %% wrong: first axis, as in a batch of one -> first axis
def softmax_backward(weights, upstream):
    return weights * (upstream - np.sum(weights * upstream, axis=0, keepdims=True))

# %% wrong: slope of the log-probabilities -> slope of log softmax
def softmax_backward(weights, upstream):
    return upstream - weights * np.sum(upstream, axis=-1, keepdims=True)

# %% wrong: delta forgotten -> the diagonal of the Jacobian is missing
def softmax_backward(weights, upstream):
    return -weights * np.sum(weights * upstream, axis=-1, keepdims=True)

# %% wrong: weights times upstream only -> row's own sum is missing
def softmax_backward(weights, upstream):
    return np.multiply(weights, upstream)

# %% wrong: mean for the weighted sum -> plain mean
def softmax_backward(weights, upstream):
    return weights * (upstream - np.mean(upstream, axis=-1, keepdims=True))

# %% right: Jacobian with eye
def softmax_backward(weights, upstream):
    w = np.asarray(weights)
    jacobian = w[..., :, None] * (np.eye(w.shape[-1]) - w[..., None, :])
    return np.einsum("...ij,...i->...j", jacobian, upstream)

# %% right: inner product per row
def softmax_backward(weights, upstream):
    inner = np.einsum("...s,...s->...", weights, upstream)
    return weights * upstream - weights * inner[..., np.newaxis]

# %% right: upstream centred twice
def softmax_backward(weights, upstream):
    moved = upstream - upstream.mean(axis=-1, keepdims=True)
    return (moved - (weights * moved).sum(-1)[..., None]) * weights
