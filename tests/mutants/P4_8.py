# %% setup
import numpy as np

# %% right: mean and var
def layer_norm(values, gamma, beta, epsilon=1e-5):
    values = np.asarray(values)
    mean = values.mean(axis=-1, keepdims=True)
    variance = values.var(axis=-1, keepdims=True)
    return (values - mean) / np.sqrt(variance + epsilon) * gamma + beta

# %% right: moments by hand
def layer_norm(values, gamma, beta, epsilon=1e-5):
    values = np.asarray(values, dtype=np.float64)
    d = values.shape[-1]
    centred = values - np.sum(values, -1, keepdims=True) / d
    scale = (np.einsum("...i,...i->...", centred, centred) / d + epsilon) ** -0.5
    return gamma * centred * scale[..., None] + beta

# %% right: row by row
def layer_norm(values, gamma, beta, epsilon=1e-5):
    values = np.asarray(values)
    rows = [gamma * (r - r.mean()) / np.sqrt(r.var() + epsilon) + beta for r in values.reshape(-1, values.shape[-1])]
    return np.array(rows).reshape(values.shape)

# %% right: other names for the arguments
def layer_norm(x, g, b, eps=1e-5):
    x = np.asarray(x)
    return g * ((x.T - x.mean(-1).T) / np.sqrt(x.var(-1).T + eps)).T + b

# %% wrong: over time -> over time
def layer_norm(values, gamma, beta, epsilon=1e-5):
    values = np.atleast_2d(values)
    mean, variance = values.mean(axis=-2, keepdims=True), values.var(axis=-2, keepdims=True)
    return gamma * (values - mean) / np.sqrt(variance + epsilon) + beta

# %% wrong: over everything -> for the whole array
def layer_norm(values, gamma, beta, epsilon=1e-5):
    values = np.asarray(values)
    return gamma * (values - values.mean()) / np.sqrt(values.var() + epsilon) + beta

# %% wrong: over the batch -> as BatchNorm's do
def layer_norm(values, gamma, beta, epsilon=1e-5):
    values = np.asarray(values)
    return gamma * (values - values.mean(axis=0)) / np.sqrt(values.var(axis=0) + epsilon) + beta

# %% wrong: axis 1
def layer_norm(values, gamma, beta, epsilon=1e-5):
    values = np.asarray(values)
    mean, variance = values.mean(axis=1, keepdims=True), values.var(axis=1, keepdims=True)
    return gamma * (values - mean) / np.sqrt(variance + epsilon) + beta

# %% wrong: unbiased -> divided by d - 1
def layer_norm(values, gamma, beta, epsilon=1e-5):
    values = np.asarray(values)
    mean, variance = values.mean(axis=-1, keepdims=True), values.var(axis=-1, keepdims=True, ddof=1)
    return gamma * (values - mean) / np.sqrt(variance + epsilon) + beta

# %% wrong: epsilon outside -> under the root
def layer_norm(values, gamma, beta, epsilon=1e-5):
    values = np.asarray(values)
    mean, deviation = values.mean(axis=-1, keepdims=True), values.std(axis=-1, keepdims=True)
    return gamma * (values - mean) / (deviation + epsilon) + beta

# %% wrong: epsilon fixed -> epsilon has no effect
def layer_norm(values, gamma, beta, epsilon=1e-5):
    values = np.asarray(values)
    mean, variance = values.mean(axis=-1, keepdims=True), values.var(axis=-1, keepdims=True)
    return gamma * (values - mean) / np.sqrt(variance + 1e-5) + beta

# %% wrong: no epsilon -> epsilon is missing
def layer_norm(values, gamma, beta, epsilon=1e-5):
    values = np.asarray(values)
    mean, variance = values.mean(axis=-1, keepdims=True), values.var(axis=-1, keepdims=True)
    return gamma * (values - mean) / np.sqrt(variance) + beta

# %% wrong: another default -> epsilon is 1e-5 unless given
def layer_norm(values, gamma, beta, epsilon=1e-6):
    values = np.asarray(values)
    mean, variance = values.mean(axis=-1, keepdims=True), values.var(axis=-1, keepdims=True)
    return gamma * (values - mean) / np.sqrt(variance + epsilon) + beta

# %% wrong: no default
def layer_norm(values, gamma, beta, epsilon):
    values = np.asarray(values)
    mean, variance = values.mean(axis=-1, keepdims=True), values.var(axis=-1, keepdims=True)
    return gamma * (values - mean) / np.sqrt(variance + epsilon) + beta

# %% wrong: variance without root -> take its square root
def layer_norm(values, gamma, beta, epsilon=1e-5):
    values = np.asarray(values)
    mean, variance = values.mean(axis=-1, keepdims=True), values.var(axis=-1, keepdims=True)
    return gamma * (values - mean) / (variance + epsilon) + beta

# %% wrong: root mean square -> that is RMSNorm
def layer_norm(values, gamma, beta, epsilon=1e-5):
    values = np.asarray(values)
    return gamma * values / np.sqrt((values**2).mean(axis=-1, keepdims=True) + epsilon) + beta

# %% wrong: centred only -> not divided by their spread
def layer_norm(values, gamma, beta, epsilon=1e-5):
    values = np.asarray(values)
    return gamma * (values - values.mean(axis=-1, keepdims=True)) + beta

# %% wrong: mean kept -> the mean was not subtracted
def layer_norm(values, gamma, beta, epsilon=1e-5):
    values = np.asarray(values)
    return gamma * values / np.sqrt(values.var(axis=-1, keepdims=True) + epsilon) + beta

# %% wrong: gamma ignored -> gamma has no effect
def layer_norm(values, gamma, beta, epsilon=1e-5):
    values = np.asarray(values)
    mean, variance = values.mean(axis=-1, keepdims=True), values.var(axis=-1, keepdims=True)
    return (values - mean) / np.sqrt(variance + epsilon) + beta

# %% wrong: beta ignored -> beta has no effect
def layer_norm(values, gamma, beta, epsilon=1e-5):
    values = np.asarray(values)
    mean, variance = values.mean(axis=-1, keepdims=True), values.var(axis=-1, keepdims=True)
    return gamma * (values - mean) / np.sqrt(variance + epsilon)

# %% wrong: beta scaled -> beta was added before the scaling
def layer_norm(values, gamma, beta, epsilon=1e-5):
    values = np.asarray(values)
    mean, variance = values.mean(axis=-1, keepdims=True), values.var(axis=-1, keepdims=True)
    return gamma * ((values - mean) / np.sqrt(variance + epsilon) + beta)

# %% wrong: in place -> changed in place
def layer_norm(values, gamma, beta, epsilon=1e-5):
    values = np.asarray(values)
    values -= values.mean(axis=-1, keepdims=True)
    return gamma * values / np.sqrt(values.var(axis=-1, keepdims=True) + epsilon) + beta

# %% wrong: lists refused
def layer_norm(values, gamma, beta, epsilon=1e-5):
    mean, variance = values.mean(axis=-1, keepdims=True), values.var(axis=-1, keepdims=True)
    return gamma * (values - mean) / np.sqrt(variance + epsilon) + beta

# %% wrong: mean absolute deviation
def layer_norm(values, gamma, beta, epsilon=1e-5):
    values = np.asarray(values)
    centred = values - values.mean(axis=-1, keepdims=True)
    return gamma * centred / (np.abs(centred).mean(axis=-1, keepdims=True) + epsilon) + beta

# %% wrong: running statistics
seen = []
def layer_norm(values, gamma, beta, epsilon=1e-5):
    values = np.asarray(values)
    seen.append(values.mean())
    centred = values - values.mean(axis=-1, keepdims=True)
    return gamma * centred / np.sqrt(values.var(axis=-1, keepdims=True) + epsilon) + beta + 1e-3 * len(seen)

# %% right: moments in float32
def layer_norm(values, gamma, beta, epsilon=1e-5):
    x = np.asarray(values, dtype=np.float32)
    m = x.mean(axis=-1, keepdims=True, dtype=np.float64)
    c = x - m
    return (np.asarray(gamma) * (c / np.sqrt((c * c).mean(-1, keepdims=True) + epsilon)) + beta).astype(np.float32)

# %% right: torch
import torch
import torch.nn.functional as F
def layer_norm(values, gamma, beta, epsilon=1e-5):
    x, g, b = (torch.tensor(np.asarray(a, dtype=float)) for a in (values, gamma, beta))
    return F.layer_norm(x, x.shape[-1:], g, b, epsilon)

# %% right: a lambda with einsum
layer_norm = lambda values, gamma, beta, epsilon=1e-5: (lambda c: np.einsum("...i,i->...i", c / np.sqrt(np.einsum("...i,...i->...", c, c)[..., None] / c.shape[-1] + epsilon), gamma) + beta)(np.asarray(values) - np.mean(values, axis=-1, keepdims=True))

# %% wrong: epsilon squared
def layer_norm(values, gamma, beta, epsilon=1e-5):
    x = np.asarray(values); c = x - x.mean(-1, keepdims=True)
    return gamma * c / np.sqrt(c.var(-1, keepdims=True) + epsilon**2) + beta

# %% wrong: largest of variance and epsilon
def layer_norm(values, gamma, beta, epsilon=1e-5):
    x = np.asarray(values); c = x - x.mean(-1, keepdims=True)
    return gamma * c / np.sqrt(np.maximum(x.var(-1, keepdims=True), epsilon)) + beta

# %% wrong: median in place of the mean
def layer_norm(values, gamma, beta, epsilon=1e-5):
    x = np.asarray(values); c = x - np.median(x, -1, keepdims=True)
    return gamma * c / np.sqrt(x.var(-1, keepdims=True) + epsilon) + beta

# %% wrong: L2 norm
def layer_norm(values, gamma, beta, epsilon=1e-5):
    x = np.asarray(values); c = x - x.mean(-1, keepdims=True)
    return gamma * c / (np.linalg.norm(c, axis=-1, keepdims=True) + epsilon) + beta

# %% wrong: epsilon subtracted
def layer_norm(values, gamma, beta, epsilon=1e-5):
    x = np.asarray(values); c = x - x.mean(-1, keepdims=True)
    return gamma * c / np.sqrt(np.abs(x.var(-1, keepdims=True) - epsilon) + 1e-30) + beta

# %% wrong: one plus gamma
def layer_norm(values, gamma, beta, epsilon=1e-5):
    x = np.asarray(values); c = x - x.mean(-1, keepdims=True)
    return (1 + np.asarray(gamma)) * c / np.sqrt(x.var(-1, keepdims=True) + epsilon) + beta

# %% wrong: gamma averaged
def layer_norm(values, gamma, beta, epsilon=1e-5):
    x = np.asarray(values); c = x - x.mean(-1, keepdims=True)
    return np.mean(gamma) * c / np.sqrt(x.var(-1, keepdims=True) + epsilon) + beta

# %% wrong: variance of raw moments in float32, far from zero
def layer_norm(values, gamma, beta, epsilon=1e-5):
    x = np.asarray(values, dtype=np.float16).astype(float); c = x - x.mean(-1, keepdims=True)
    return gamma * c / np.sqrt(x.var(-1, keepdims=True) + epsilon) + beta

# %% wrong: all axes but the first
def layer_norm(values, gamma, beta, epsilon=1e-5):
    x = np.asarray(values); axes = tuple(range(1, x.ndim)) or -1
    return gamma * (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon) + beta

# %% wrong: clipped to five
def layer_norm(values, gamma, beta, epsilon=1e-5):
    x = np.asarray(values); c = x - x.mean(-1, keepdims=True)
    return gamma * np.clip(c / np.sqrt(x.var(-1, keepdims=True) + epsilon), -1.5, 1.5) + beta

# %% wrong: gamma changed in place
def layer_norm(values, gamma, beta, epsilon=1e-5):
    x = np.asarray(values); c = x - x.mean(-1, keepdims=True)
    gamma /= 1.0; beta += 0.5
    return gamma * c / np.sqrt(x.var(-1, keepdims=True) + epsilon) + beta - 0.5

# %% wrong: epsilon left out -> keeps a constant row from 0 / 0
def layer_norm(values, gamma, beta, epsilon=1e-5):
    x = np.asarray(values)
    return gamma * (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True) + beta

# %% wrong: no keepdims, made to fit by a transpose
def layer_norm(values, gamma, beta, epsilon=1e-5):
    x = np.asarray(values)
    return ((x.T - x.mean(-1)) / np.sqrt(x.var(-1) + epsilon)).T * gamma + beta

# %% wrong: std with ddof 1 -> divided by d - 1
def layer_norm(values, gamma, beta, epsilon=1e-5):
    x = np.asarray(values)
    mu, sd = x.mean(axis=-1, keepdims=True), x.std(axis=-1, ddof=1, keepdims=True)
    return (x - mu) / np.sqrt(sd**2 + epsilon) * gamma + beta

# %% wrong: std plus epsilon -> under the root
def layer_norm(values, gamma, beta, epsilon=1e-5):
    x = np.asarray(values)
    return (x - x.mean(-1, keepdims=True)) / (x.std(-1, keepdims=True) + epsilon) * gamma + beta

# %% wrong: beta inside the bracket -> beta was added before the scaling
def layer_norm(values, gamma, beta, epsilon=1e-5):
    x = np.asarray(values)
    n = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + epsilon)
    return gamma * (n + beta)

# %% wrong: axis 0 -> as BatchNorm's do
def layer_norm(values, gamma, beta, epsilon=1e-5):
    x = np.asarray(values)
    if x.ndim == 1:
        x = x[None]
    n = (x - x.mean(axis=0)) / np.sqrt(x.var(axis=0) + epsilon)
    return (gamma * n + beta).reshape(np.shape(values))

# %% right: float32 all the way
def layer_norm(values, gamma, beta, epsilon=1e-5):
    x, gamma, beta = (np.asarray(a, dtype=np.float32) for a in (values, gamma, beta))
    mean = x.mean(axis=-1, keepdims=True)
    centred = x - mean
    variance = np.mean(centred * centred, axis=-1, keepdims=True)
    return gamma * centred * (variance + np.float32(epsilon)) ** np.float32(-0.5) + beta

# %% right: apply_along_axis and lists
def layer_norm(values, gamma, beta, epsilon=1e-5):
    def one(row):
        mu = sum(row) / len(row)
        var = sum((r - mu) ** 2 for r in row) / len(row)
        return [g * (r - mu) / (var + epsilon) ** 0.5 + b for r, g, b in zip(row, gamma, beta)]
    return np.apply_along_axis(one, -1, np.asarray(values)).tolist()

# %% right: projection matrix takes the mean off
def layer_norm(values, gamma, beta, epsilon=1e-5):
    x = np.asarray(values, dtype=np.float64)
    d = x.shape[-1]
    c = x @ (np.eye(d) - 1 / d)
    return c / np.sqrt(np.einsum("...i,...i->...", c, c)[..., None] / d + epsilon) * gamma + beta
