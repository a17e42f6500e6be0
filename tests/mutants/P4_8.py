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

# %% wrong: no epsilon
def layer_norm(values, gamma, beta, epsilon=1e-5):
    values = np.asarray(values)
    mean, variance = values.mean(axis=-1, keepdims=True), values.var(axis=-1, keepdims=True)
    return gamma * (values - mean) / np.sqrt(variance) + beta

# %% wrong: another default
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
