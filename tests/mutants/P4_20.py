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
