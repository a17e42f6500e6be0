# %% setup
import numpy as np

def gelu(values):
    values = np.asarray(values)
    return 0.5 * values * (1 + np.tanh(np.sqrt(2 / np.pi) * (values + 0.044715 * values**3)))

def feed_forward(values, w1, b1, w2, b2):
    return gelu(np.asarray(values) @ w1 + b1) @ w2 + b2

# %% right: tanh form

# %% right: exact form
from math import erf
def gelu(values):
    values = np.asarray(values)
    return values * 0.5 * (1 + np.vectorize(erf)(values / np.sqrt(2)))

# %% right: sigmoid of twice the inner sum
def gelu(values):
    x = np.array(values)
    inner = 1.5957691216057308 * (x + 0.044715 * x * x * x)
    return x / (1 + np.exp(-np.clip(inner, -700, 700)))

def feed_forward(values, w1, b1, w2, b2):
    return np.add(np.dot(gelu(np.add(np.dot(values, w1), b1)), w2), b2)

# %% right: einsum and a helper
def _linear(x, w, b):
    return np.einsum("...i,ij->...j", x, w) + b

def feed_forward(values, w1, b1, w2, b2):
    return _linear(gelu(_linear(values, w1, b1)), w2, b2)

# %% wrong: ReLU -> that is ReLU
def gelu(values):
    return np.maximum(np.asarray(values), 0.0)

# %% wrong: SiLU -> that is SiLU
def gelu(values):
    values = np.asarray(values)
    return values / (1 + np.exp(-values))

# %% wrong: coarse sigmoid -> coarser stand-in
def gelu(values):
    values = np.asarray(values)
    return values / (1 + np.exp(-1.702 * values))

# %% wrong: gate only -> without the value
def gelu(values):
    values = np.asarray(values)
    return 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (values + 0.044715 * values**3)))

# %% wrong: half missing -> twice the value
def gelu(values):
    values = np.asarray(values)
    return values * (1 + np.tanh(np.sqrt(2 / np.pi) * (values + 0.044715 * values**3)))

# %% wrong: cube missing -> cubic term
def gelu(values):
    values = np.asarray(values)
    return 0.5 * values * (1 + np.tanh(np.sqrt(2 / np.pi) * values))

# %% wrong: square -> where x^3 belongs
def gelu(values):
    values = np.asarray(values)
    return 0.5 * values * (1 + np.tanh(np.sqrt(2 / np.pi) * (values + 0.044715 * values**2)))

# %% wrong: root missing -> not 2 / pi itself
def gelu(values):
    values = np.asarray(values)
    return 0.5 * values * (1 + np.tanh(2 / np.pi * (values + 0.044715 * values**3)))

# %% wrong: pi over two -> not of pi / 2
def gelu(values):
    values = np.asarray(values)
    return 0.5 * values * (1 + np.tanh(np.sqrt(np.pi / 2) * (values + 0.044715 * values**3)))

# %% wrong: tanh alone -> tanh of the inner sum alone
def gelu(values):
    values = np.asarray(values)
    return np.tanh(np.sqrt(2 / np.pi) * (values + 0.044715 * values**3))

# %% wrong: bracket misplaced -> a bracket closes too early
def gelu(values):
    values = np.asarray(values)
    return 0.5 * values * (1 + np.tanh(np.sqrt(2 / np.pi) * values + 0.044715 * values**3))

# %% wrong: exponentials overflow
def gelu(values):
    values = np.asarray(values)
    z = np.sqrt(2 / np.pi) * (values + 0.044715 * values**3)
    return 0.5 * values * (1 + (np.exp(z) - np.exp(-z)) / (np.exp(z) + np.exp(-z)))

# %% wrong: gelu in place
def gelu(values):
    values = np.asarray(values)
    values *= 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (values + 0.044715 * values**3)))
    return values

# %% wrong: leaky
def gelu(values):
    values = np.asarray(values)
    return np.where(values > 0, values, 0.01 * values)

# %% wrong: no activation -> there is no activation
def feed_forward(values, w1, b1, w2, b2):
    return (np.asarray(values) @ w1 + b1) @ w2 + b2

# %% wrong: ReLU between -> ReLU stands where GELU belongs
def feed_forward(values, w1, b1, w2, b2):
    return np.maximum(np.asarray(values) @ w1 + b1, 0) @ w2 + b2

# %% wrong: b1 ignored -> b1 has no effect
def feed_forward(values, w1, b1, w2, b2):
    return gelu(np.asarray(values) @ w1) @ w2 + b2

# %% wrong: b1 after gelu -> b1 was added after GELU
def feed_forward(values, w1, b1, w2, b2):
    return (gelu(np.asarray(values) @ w1) + b1) @ w2 + b2

# %% wrong: b2 ignored -> b2 has no effect
def feed_forward(values, w1, b1, w2, b2):
    return gelu(np.asarray(values) @ w1 + b1) @ w2

# %% wrong: gelu at the end -> GELU acts after the second map
def feed_forward(values, w1, b1, w2, b2):
    return gelu((np.asarray(values) @ w1 + b1) @ w2 + b2)

# %% wrong: gelu twice -> GELU acts on the result as well
def feed_forward(values, w1, b1, w2, b2):
    return gelu(gelu(np.asarray(values) @ w1 + b1) @ w2 + b2)

# %% wrong: residual inside -> the residual belongs to the block
def feed_forward(values, w1, b1, w2, b2):
    values = np.asarray(values)
    return values + gelu(values @ w1 + b1) @ w2 + b2

# %% wrong: mean over positions
def feed_forward(values, w1, b1, w2, b2):
    inner = gelu(np.asarray(values) @ w1 + b1)
    return (inner - inner.mean(axis=0)) @ w2 + b2

# %% wrong: tables only
def feed_forward(values, w1, b1, w2, b2):
    rows, width = np.shape(values)
    return gelu(np.asarray(values) @ w1 + b1) @ w2 + b2

# %% wrong: weights mixed up
def feed_forward(values, w1, b1, w2, b2):
    return gelu(np.asarray(values) @ w2.T + b1) @ w1.T + b2

# %% right: scipy-free erf by math, vectorised
import math
gelu = np.vectorize(lambda x: x * 0.5 * math.erfc(-x / math.sqrt(2)), otypes=[float])
def feed_forward(values, w1, b1, w2, b2):
    return np.dot(gelu(np.dot(np.asarray(values), w1) + b1), w2) + b2

# %% right: torch, both
import torch
def gelu(values):
    return torch.nn.functional.gelu(torch.tensor(np.asarray(values, dtype=float)))
def feed_forward(values, w1, b1, w2, b2):
    x, w1, b1, w2, b2 = (torch.tensor(np.asarray(a, dtype=float)) for a in (values, w1, b1, w2, b2))
    return gelu(x @ w1 + b1) @ w2 + b2

# %% right: float32 and position by position
def feed_forward(values, w1, b1, w2, b2):
    x = np.asarray(values, dtype=np.float32); flat = x.reshape(-1, x.shape[-1])
    rows = [np.asarray(w2).T @ gelu(np.asarray(w1).T @ row + b1) + b2 for row in flat]
    return np.array(rows, dtype=np.float32).reshape(x.shape)

# %% wrong: softplus
def gelu(values):
    return np.logaddexp(0, values) - np.log(2) * np.exp(-np.abs(values))

# %% wrong: hard gelu
def gelu(values):
    x = np.asarray(values)
    return x * np.clip(x / 3 + 0.5, 0, 1)

# %% wrong: elu
def gelu(values):
    x = np.asarray(values)
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))

# %% wrong: absolute value inside
def gelu(values):
    x = np.abs(np.asarray(values))
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))

# %% wrong: cut off at four
def gelu(values):
    x = np.clip(np.asarray(values), -4, 4)
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))

# %% wrong: a digit of the constant
def gelu(values):
    x = np.asarray(values)
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.44715 * x**3)))

# %% wrong: mish
def gelu(values):
    x = np.asarray(values)
    return x * np.tanh(np.logaddexp(0, x))

# %% wrong: integers stay integers
def gelu(values):
    x = np.asarray(values)
    return np.round(0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))), 1)

# %% wrong: w2 by its transpose when it fits
def feed_forward(values, w1, b1, w2, b2):
    return gelu(np.asarray(values) @ w1 + b1) @ np.asarray(w1).T + b2

# %% wrong: flattened over positions
def feed_forward(values, w1, b1, w2, b2):
    x = np.asarray(values)
    return (gelu(x @ w1 + b1) @ w2 + b2).reshape(-1, x.shape[-1])

# %% wrong: b2 inside the activation's sum
def feed_forward(values, w1, b1, w2, b2):
    return gelu(np.asarray(values) @ w1 + b1) @ (np.asarray(w2) + np.asarray(b2) / len(w2))

# %% wrong: bias of the mean only
def feed_forward(values, w1, b1, w2, b2):
    return gelu(np.asarray(values) @ w1 + np.mean(b1)) @ w2 + b2

# %% wrong: SiLU between
def feed_forward(values, w1, b1, w2, b2):
    h = np.asarray(values) @ w1 + b1
    return (h / (1 + np.exp(-h))) @ w2 + b2

# %% wrong: bracket of the root closed too early -> a bracket closes too early
def gelu(values):
    x = np.asarray(values)
    return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * x + 0.044715 * x**3))

# %% wrong: half forgotten -> twice the value
def gelu(values):
    x = np.asarray(values)
    return x * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3)))

# %% wrong: 2 / pi without its root -> not 2 / pi itself
def gelu(values):
    x = np.asarray(values)
    return x / 2 * (1 + np.tanh(2 / np.pi * (x + 0.044715 * x * x * x)))

# %% wrong: gelu on both layers -> acts on the result as well
def feed_forward(values, w1, b1, w2, b2):
    return gelu(gelu(np.asarray(values) @ w1 + b1) @ w2 + b2)

# %% wrong: biases forgotten -> neither b1 nor b2
def feed_forward(values, w1, b1, w2, b2):
    return gelu(np.asarray(values) @ w1) @ w2

# %% wrong: first bias outside -> b1 was added after GELU
def feed_forward(values, w1, b1, w2, b2):
    h = gelu(np.matmul(values, w1)) + b1
    return h @ w2 + b2

# %% right: exact, by a polynomial of erf
def gelu(values):
    x = np.asarray(values, dtype=float)
    z = np.abs(x) / np.sqrt(2)
    t = 1 / (1 + 0.3275911 * z)
    poly = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    erf = np.sign(x) * (1 - poly * np.exp(-z * z))
    return 0.5 * x * (1 + erf)

# %% right: logistic form without overflow
def gelu(values):
    x = np.asarray(values)
    u = np.sqrt(8 / np.pi) * (x + 0.044715 * x**3)
    return x * np.exp(-np.logaddexp(0, -u))

# %% right: bias as one more row
def feed_forward(values, w1, b1, w2, b2):
    x = np.asarray(values)
    one = np.ones((*x.shape[:-1], 1))
    hidden = gelu(np.concatenate([x, one], -1) @ np.vstack([w1, b1]))
    return np.concatenate([hidden, one], -1) @ np.vstack([w2, b2])
