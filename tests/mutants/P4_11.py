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

def split_heads(values, heads):
    values = np.asarray(values)
    time, width = values.shape
    if width % heads:
        raise ValueError("heads must divide the width")
    return values.reshape(time, heads, width // heads).transpose(1, 0, 2)

def merge_heads(values):
    values = np.asarray(values)
    heads, time, width = values.shape
    return values.transpose(1, 0, 2).reshape(time, heads * width)

def multi_head_attention(hidden, wq, wk, wv, wo, heads):
    hidden = np.asarray(hidden)
    q, k, v = (split_heads(hidden @ w, heads) for w in (wq, wk, wv))
    scores = q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1])
    weights = row_softmax(np.where(causal_mask(len(hidden)), scores, -np.inf))
    merged = merge_heads(weights @ v)
    return merged @ wo, weights, merged

def batched_multi_head_attention(hidden_batch, wq, wk, wv, wo, heads):
    if np.ndim(hidden_batch) != 3:
        raise ValueError("hidden_batch must be (B, T, d)")
    results = [multi_head_attention(hidden, wq, wk, wv, wo, heads) for hidden in hidden_batch]
    return np.stack([r[0] for r in results]), np.stack([r[1] for r in results])

def rope(values, positions, base=10000.0):
    values = np.asarray(values)
    width = values.shape[-1]
    angle = np.asarray(positions)[:, None] * base ** (-np.arange(0, width, 2) / width)
    a, b = values[..., ::2], values[..., 1::2]
    out = np.empty(values.shape)
    out[..., ::2] = a * np.cos(angle) - b * np.sin(angle)
    out[..., 1::2] = a * np.sin(angle) + b * np.cos(angle)
    return out

# %% right: a loop and slices

# %% right: all sequences at once, rotation as a matrix
def batched_multi_head_attention(hidden_batch, wq, wk, wv, wo, heads):
    x = np.asarray(hidden_batch)
    if x.ndim != 3:
        raise ValueError("three axes expected")
    B, T, d = x.shape
    q, k, v = ((x @ np.asarray(w)).reshape(B, T, heads, d // heads).transpose(0, 2, 1, 3) for w in (wq, wk, wv))
    scores = np.einsum("bhid,bhjd->bhij", q, k) / np.sqrt(d // heads)
    weights = row_softmax(np.where(causal_mask(T), scores, -np.inf))
    out = (weights @ v).transpose(0, 2, 1, 3).reshape(B, T, d)
    return out @ wo, weights

def rope(values, positions, base=10000.0):
    values = np.asarray(values, dtype=float)
    out = np.zeros_like(values)
    for t, m in enumerate(positions):
        for p in range(values.shape[-1] // 2):
            angle = m / base ** (2 * p / values.shape[-1])
            turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
            pair = values[..., t, 2 * p : 2 * p + 2]
            out[..., t, 2 * p : 2 * p + 2] = pair @ turn.T
    return out

# %% right: complex numbers
def rope(values, positions, base=10000.0):
    values = np.asarray(values)
    pairs = values[..., 0::2] + 1j * values[..., 1::2]
    exponent = np.arange(pairs.shape[-1]) * 2 / values.shape[-1]
    turned = pairs * np.exp(1j * np.outer(positions, float(base) ** -exponent))
    return np.stack([turned.real, turned.imag], axis=-1).reshape(values.shape)

# %% right: rotated neighbour and repeated angles
def rope(values, positions, base=10000.0):
    x = np.asarray(values)
    angle = np.repeat(np.outer(positions, base ** (-np.arange(0, x.shape[-1], 2) / x.shape[-1])), 2, axis=-1)
    neighbour = np.stack([-x[..., 1::2], x[..., ::2]], axis=-1).reshape(x.shape)
    return x * np.cos(angle) + neighbour * np.sin(angle)

# %% wrong: two-dimensional input taken -> ValueError was expected
def batched_multi_head_attention(hidden_batch, wq, wk, wv, wo, heads):
    hidden_batch = np.asarray(hidden_batch)
    shape = hidden_batch.shape
    flat = hidden_batch.reshape(-1, *shape[-2:])
    results = [multi_head_attention(hidden, wq, wk, wv, wo, heads) for hidden in flat]
    return np.stack([r[0] for r in results]), np.stack([r[1] for r in results])

# %% wrong: assert on the axes
def batched_multi_head_attention(hidden_batch, wq, wk, wv, wo, heads):
    assert np.ndim(hidden_batch) == 3
    results = [multi_head_attention(hidden, wq, wk, wv, wo, heads) for hidden in hidden_batch]
    return np.stack([r[0] for r in results]), np.stack([r[1] for r in results])

# %% wrong: one long sequence -> joined into one long one
def batched_multi_head_attention(hidden_batch, wq, wk, wv, wo, heads):
    x = np.asarray(hidden_batch)
    if x.ndim != 3:
        raise ValueError("axes")
    B, T, d = x.shape
    output, weights, _ = multi_head_attention(x.reshape(B * T, d), wq, wk, wv, wo, heads)
    own = [weights[:, i * T : (i + 1) * T, i * T : (i + 1) * T] for i in range(B)]
    return output.reshape(B, T, d), np.stack(own)

# %% wrong: first sequence for all -> the first one's result
def batched_multi_head_attention(hidden_batch, wq, wk, wv, wo, heads):
    if np.ndim(hidden_batch) != 3:
        raise ValueError("axes")
    output, weights, _ = multi_head_attention(hidden_batch[0], wq, wk, wv, wo, heads)
    return np.stack([output] * len(hidden_batch)), np.stack([weights] * len(hidden_batch))

# %% wrong: sequences averaged
def batched_multi_head_attention(hidden_batch, wq, wk, wv, wo, heads):
    if np.ndim(hidden_batch) != 3:
        raise ValueError("axes")
    results = [multi_head_attention(h, wq, wk, wv, wo, heads) for h in np.asarray(hidden_batch)]
    output = np.stack([r[0] for r in results])
    return output + 0.01 * output.mean(axis=0), np.stack([r[1] for r in results])

# %% wrong: batch and heads swapped
def batched_multi_head_attention(hidden_batch, wq, wk, wv, wo, heads):
    if np.ndim(hidden_batch) != 3:
        raise ValueError("axes")
    results = [multi_head_attention(h, wq, wk, wv, wo, heads) for h in hidden_batch]
    return np.stack([r[0] for r in results]), np.stack([r[1] for r in results], axis=1)

# %% wrong: three results -> were expected, tuple of 3 came
def batched_multi_head_attention(hidden_batch, wq, wk, wv, wo, heads):
    if np.ndim(hidden_batch) != 3:
        raise ValueError("axes")
    results = [multi_head_attention(h, wq, wk, wv, wo, heads) for h in hidden_batch]
    return tuple(np.stack(r) for r in zip(*results))

# %% wrong: head axis taken from the batch by reshape -> a transpose is missing in both
def batched_multi_head_attention(hidden_batch, wq, wk, wv, wo, heads):
    x = np.asarray(hidden_batch)
    if x.ndim != 3:
        raise ValueError("axes")
    B, T, d = x.shape
    q, k, v = ((x @ w).reshape(B, heads, T, -1) for w in (wq, wk, wv))
    s = q @ k.swapaxes(-1, -2) / np.sqrt(d // heads)
    w = row_softmax(np.where(causal_mask(T), s, -np.inf))
    return (w @ v).reshape(B, T, d) @ wo, w

# %% wrong: no mask -> later keys are not hidden
def batched_multi_head_attention(hidden_batch, wq, wk, wv, wo, heads):
    x = np.asarray(hidden_batch)
    if x.ndim != 3:
        raise ValueError("axes")
    B, T, d = x.shape
    q, k, v = ((x @ w).reshape(B, T, heads, -1).swapaxes(1, 2) for w in (wq, wk, wv))
    w = row_softmax(q @ k.swapaxes(-1, -2) / np.sqrt(d // heads))
    return (w @ v).swapaxes(1, 2).reshape(B, T, d) @ wo, w

# %% wrong: mask in the first sequence only
def batched_multi_head_attention(hidden_batch, wq, wk, wv, wo, heads):
    x = np.asarray(hidden_batch)
    if x.ndim != 3:
        raise ValueError("axes")
    B, T, d = x.shape
    q, k, v = ((x @ w).reshape(B, T, heads, -1).swapaxes(1, 2) for w in (wq, wk, wv))
    s = q @ k.swapaxes(-1, -2) / np.sqrt(d // heads)
    s[0] = np.where(causal_mask(T), s[0], -np.inf)
    w = row_softmax(s)
    return (w @ v).swapaxes(1, 2).reshape(B, T, d) @ wo, w

# %% wrong: causal over the batch
def batched_multi_head_attention(hidden_batch, wq, wk, wv, wo, heads):
    x = np.asarray(hidden_batch)
    if x.ndim != 3:
        raise ValueError("axes")
    output, weights, _ = zip(*[multi_head_attention(h, wq, wk, wv, wo, heads) for h in x.swapaxes(0, 1)])
    return np.stack(output).swapaxes(0, 1), np.stack(weights)

# %% wrong: output before wo -> not multiplied by wo
def batched_multi_head_attention(hidden_batch, wq, wk, wv, wo, heads):
    if np.ndim(hidden_batch) != 3:
        raise ValueError("axes")
    results = [multi_head_attention(h, wq, wk, wv, wo, heads) for h in hidden_batch]
    return np.stack([r[2] for r in results]), np.stack([r[1] for r in results])

# %% wrong: heads ignored -> heads has no effect
def batched_multi_head_attention(hidden_batch, wq, wk, wv, wo, heads):
    if np.ndim(hidden_batch) != 3:
        raise ValueError("axes")
    results = [multi_head_attention(h, wq, wk, wv, wo, 1) for h in hidden_batch]
    return np.stack([r[0] for r in results]), np.stack([r[1] for r in results])

# %% wrong: halves as pairs -> half a width apart
def rope(values, positions, base=10000.0):
    values = np.asarray(values)
    half = values.shape[-1] // 2
    angle = np.outer(positions, base ** (-np.arange(half) / half))
    a, b = values[..., :half], values[..., half:]
    return np.concatenate([a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)], axis=-1)

# %% wrong: backwards -> backwards
def rope(values, positions, base=10000.0):
    values = np.asarray(values)
    d = values.shape[-1]
    a, b = values[..., ::2], values[..., 1::2]
    angle = np.outer(positions, base ** (-np.arange(0, d, 2) / d))
    turned = [a * np.cos(angle) + b * np.sin(angle), -a * np.sin(angle) + b * np.cos(angle)]
    return np.stack(turned, axis=-1).reshape(values.shape)

# %% wrong: a reflection -> one sign of the sine is wrong
def rope(values, positions, base=10000.0):
    values = np.asarray(values)
    d = values.shape[-1]
    a, b = values[..., ::2], values[..., 1::2]
    angle = np.outer(positions, base ** (-np.arange(0, d, 2) / d))
    turned = [a * np.cos(angle) + b * np.sin(angle), a * np.sin(angle) - b * np.cos(angle)]
    return np.stack(turned, axis=-1).reshape(values.shape)

# %% wrong: no minus -> one sign of the sine is wrong
def rope(values, positions, base=10000.0):
    values = np.asarray(values)
    d = values.shape[-1]
    a, b = values[..., ::2], values[..., 1::2]
    angle = np.outer(positions, base ** (-np.arange(0, d, 2) / d))
    turned = [a * np.cos(angle) + b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)]
    return np.stack(turned, axis=-1).reshape(values.shape)

# %% wrong: positions counted -> counted from zero
def rope(values, positions, base=10000.0):
    values = np.asarray(values)
    d = values.shape[-1]
    a, b = values[..., ::2], values[..., 1::2]
    angle = np.outer(np.arange(values.shape[-2]), base ** (-np.arange(0, d, 2) / d))
    turned = [a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)]
    return np.stack(turned, axis=-1).reshape(values.shape)

# %% wrong: positions from the first one
def rope(values, positions, base=10000.0):
    values = np.asarray(values)
    d = values.shape[-1]
    a, b = values[..., ::2], values[..., 1::2]
    angle = np.outer(positions[0] + np.arange(len(positions)), base ** (-np.arange(0, d, 2) / d))
    turned = [a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)]
    return np.stack(turned, axis=-1).reshape(values.shape)

# %% wrong: base fixed -> the base is fixed
def rope(values, positions, base=10000.0):
    values = np.asarray(values)
    d = values.shape[-1]
    a, b = values[..., ::2], values[..., 1::2]
    angle = np.outer(positions, 10000.0 ** (-np.arange(0, d, 2) / d))
    turned = [a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)]
    return np.stack(turned, axis=-1).reshape(values.shape)

# %% wrong: two missing in the exponent -> its 2 is missing
def rope(values, positions, base=10000.0):
    values = np.asarray(values)
    d = values.shape[-1]
    a, b = values[..., ::2], values[..., 1::2]
    angle = np.outer(positions, base ** (-np.arange(d // 2) / d))
    turned = [a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)]
    return np.stack(turned, axis=-1).reshape(values.shape)

# %% wrong: two twice -> its 2 is there twice
def rope(values, positions, base=10000.0):
    values = np.asarray(values)
    d = values.shape[-1]
    a, b = values[..., ::2], values[..., 1::2]
    angle = np.outer(positions, base ** (-2 * np.arange(0, d, 2) / d))
    turned = [a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)]
    return np.stack(turned, axis=-1).reshape(values.shape)

# %% wrong: exponent rises -> exponent's sign is wrong
def rope(values, positions, base=10000.0):
    values = np.asarray(values)
    d = values.shape[-1]
    a, b = values[..., ::2], values[..., 1::2]
    angle = np.outer(positions, base ** (np.arange(0, d, 2) / d))
    turned = [a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)]
    return np.stack(turned, axis=-1).reshape(values.shape)

# %% wrong: one frequency -> by the same angle
def rope(values, positions, base=10000.0):
    values = np.asarray(values)
    d = values.shape[-1]
    a, b = values[..., ::2], values[..., 1::2]
    angle = np.outer(positions, np.ones(d // 2))
    turned = [a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)]
    return np.stack(turned, axis=-1).reshape(values.shape)

# %% wrong: pairs counted from one -> pairs are counted from 0
def rope(values, positions, base=10000.0):
    values = np.asarray(values)
    d = values.shape[-1]
    a, b = values[..., ::2], values[..., 1::2]
    angle = np.outer(positions, base ** (-np.arange(2, d + 2, 2) / d))
    turned = [a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)]
    return np.stack(turned, axis=-1).reshape(values.shape)

# %% wrong: positions counted from one -> positions are one too large
def rope(values, positions, base=10000.0):
    values = np.asarray(values)
    d = values.shape[-1]
    a, b = values[..., ::2], values[..., 1::2]
    angle = np.outer(np.asarray(positions) + 1, base ** (-np.arange(0, d, 2) / d))
    turned = [a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)]
    return np.stack(turned, axis=-1).reshape(values.shape)

# %% wrong: degrees -> taken for degrees
def rope(values, positions, base=10000.0):
    values = np.asarray(values)
    d = values.shape[-1]
    a, b = values[..., ::2], values[..., 1::2]
    angle = np.deg2rad(np.outer(positions, base ** (-np.arange(0, d, 2) / d)))
    turned = [a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)]
    return np.stack(turned, axis=-1).reshape(values.shape)

# %% wrong: laid side by side -> laid side by side by halves
def rope(values, positions, base=10000.0):
    values = np.asarray(values)
    d = values.shape[-1]
    angle = np.outer(positions, base ** (-np.arange(0, d, 2) / d))
    a, b = values[..., ::2], values[..., 1::2]
    return np.concatenate([a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)], axis=-1)

# %% wrong: second line reads the new first -> keep the old a and b
def rope(values, positions, base=10000.0):
    out = np.array(values)
    d = out.shape[-1]
    angle = np.outer(positions, base ** (-np.arange(0, d, 2) / d))
    out[..., ::2] = out[..., ::2] * np.cos(angle) - out[..., 1::2] * np.sin(angle)
    out[..., 1::2] = out[..., ::2] * np.sin(angle) + out[..., 1::2] * np.cos(angle)
    return out

# %% wrong: rotated in place
def rope(values, positions, base=10000.0):
    values = np.asarray(values)
    d = values.shape[-1]
    angle = np.outer(positions, base ** (-np.arange(0, d, 2) / d))
    a, b = values[..., ::2].copy(), values[..., 1::2].copy()
    values[..., ::2] = a * np.cos(angle) - b * np.sin(angle)
    values[..., 1::2] = a * np.sin(angle) + b * np.cos(angle)
    return values

# %% wrong: another default base
right_rope = rope
def rope(values, positions, base=500000.0):
    return right_rope(values, positions, base)

# %% wrong: sinusoids added
def rope(values, positions, base=10000.0):
    values = np.array(values)
    d = values.shape[-1]
    angle = np.outer(positions, base ** (-np.arange(0, d, 2) / d))
    values[..., ::2] += np.sin(angle)
    values[..., 1::2] += np.cos(angle)
    return values

# %% right: torch and complex rotation
import torch
def batched_multi_head_attention(hidden_batch, wq, wk, wv, wo, heads):
    x = torch.tensor(np.asarray(hidden_batch, dtype=float))
    if x.dim() != 3: raise ValueError("three axes")
    q, k, v = ((x @ torch.tensor(np.asarray(w, dtype=float))).unflatten(-1, (heads, -1)).transpose(1, 2) for w in (wq, wk, wv))
    s = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(torch.ones(x.shape[1], x.shape[1]).triu(1).bool(), float("-inf"))
    w = s.softmax(-1)
    return (w @ v).transpose(1, 2).flatten(2) @ torch.tensor(np.asarray(wo, dtype=float)), w

# %% right: rope in float32 by a loop over pairs
def rope(values, positions, base=10000.0):
    out = np.array(values, dtype=np.float32); d = out.shape[-1]
    for p in range(d // 2):
        t = np.asarray(positions, dtype=np.float64) / base ** (2 * p / d)
        pair = out[..., 2 * p : 2 * p + 2].copy()
        out[..., 2 * p] = pair[..., 0] * np.cos(t) - pair[..., 1] * np.sin(t)
        out[..., 2 * p + 1] = pair[..., 0] * np.sin(t) + pair[..., 1] * np.cos(t)
    return out

# %% right: einsum with all batch axes, keyword base
def rope(values, positions, base=1e4):
    x = np.asarray(values); d = x.shape[-1]
    t = np.outer(positions, np.power(base, -np.arange(d // 2) * 2.0 / d))
    turn = np.stack([np.stack([np.cos(t), -np.sin(t)], -1), np.stack([np.sin(t), np.cos(t)], -1)], -2)
    return np.einsum("tpij,...tpj->...tpi", turn, x.reshape(*x.shape[:-1], d // 2, 2)).reshape(x.shape).tolist()

# %% wrong: sequences in reverse order
def batched_multi_head_attention(hidden_batch, wq, wk, wv, wo, heads):
    if np.ndim(hidden_batch) != 3: raise ValueError
    r = [multi_head_attention(h, wq, wk, wv, wo, heads) for h in hidden_batch][::-1]
    return np.stack([a[0] for a in r]), np.stack([a[1] for a in r])

# %% wrong: refuses only two axes
def batched_multi_head_attention(hidden_batch, wq, wk, wv, wo, heads):
    if np.ndim(hidden_batch) == 2: raise ValueError
    r = [multi_head_attention(np.asarray(h).reshape(-1, np.shape(h)[-1]), wq, wk, wv, wo, heads) for h in hidden_batch]
    return np.stack([a[0] for a in r]), np.stack([a[1] for a in r])

# %% wrong: weights averaged over the batch
def batched_multi_head_attention(hidden_batch, wq, wk, wv, wo, heads):
    if np.ndim(hidden_batch) != 3: raise ValueError
    r = [multi_head_attention(h, wq, wk, wv, wo, heads) for h in hidden_batch]
    w = np.stack([a[1] for a in r])
    return np.stack([a[0] for a in r]), np.broadcast_to(w.mean(0), w.shape)

# %% wrong: two sequences at most
def batched_multi_head_attention(hidden_batch, wq, wk, wv, wo, heads):
    if np.ndim(hidden_batch) != 3: raise ValueError
    r = [multi_head_attention(h, wq, wk, wv, wo, heads) for h in list(hidden_batch)[:2]]
    r += [r[-1]] * (len(hidden_batch) - 2)
    return np.stack([a[0] for a in r]), np.stack([a[1] for a in r])

# %% wrong: batch centred first
def batched_multi_head_attention(hidden_batch, wq, wk, wv, wo, heads):
    if np.ndim(hidden_batch) != 3: raise ValueError
    x = np.asarray(hidden_batch); x = x - x.mean(0)
    r = [multi_head_attention(h, wq, wk, wv, wo, heads) for h in x]
    return np.stack([a[0] for a in r]), np.stack([a[1] for a in r])

# %% wrong: exponent by pairs, not by width
def rope(values, positions, base=10000.0):
    x = np.asarray(values); d = x.shape[-1]
    t = np.asarray(positions)[:, None] * base ** (-np.arange(d // 2) / max(d // 2 - 1, 1))
    a, b = x[..., ::2], x[..., 1::2]; out = np.empty(x.shape)
    out[..., ::2], out[..., 1::2] = a * np.cos(t) - b * np.sin(t), a * np.sin(t) + b * np.cos(t)
    return out

# %% wrong: last pair not turned
def rope(values, positions, base=10000.0):
    x = np.asarray(values); d = x.shape[-1]
    t = np.asarray(positions)[:, None] * base ** (-np.arange(0, d, 2) / d)
    a, b = x[..., ::2], x[..., 1::2]; out = np.empty(x.shape)
    out[..., ::2], out[..., 1::2] = a * np.cos(t) - b * np.sin(t), a * np.sin(t) + b * np.cos(t)
    if d > 2: out[..., -2:] = x[..., -2:]
    return out

# %% wrong: pairs swapped
def rope(values, positions, base=10000.0):
    x = np.asarray(values); d = x.shape[-1]
    t = np.asarray(positions)[:, None] * base ** (-np.arange(0, d, 2) / d)
    a, b = x[..., 1::2], x[..., ::2]; out = np.empty(x.shape)
    out[..., ::2], out[..., 1::2] = a * np.cos(t) - b * np.sin(t), a * np.sin(t) + b * np.cos(t)
    return out

# %% wrong: positions modulo sixteen
def rope(values, positions, base=10000.0):
    x = np.asarray(values); d = x.shape[-1]
    t = (np.asarray(positions) % 16)[:, None] * base ** (-np.arange(0, d, 2) / d)
    a, b = x[..., ::2], x[..., 1::2]; out = np.empty(x.shape)
    out[..., ::2], out[..., 1::2] = a * np.cos(t) - b * np.sin(t), a * np.sin(t) + b * np.cos(t)
    return out

# %% wrong: positions sorted
def rope(values, positions, base=10000.0):
    x = np.asarray(values); d = x.shape[-1]
    t = np.sort(positions)[:, None] * base ** (-np.arange(0, d, 2) / d)
    a, b = x[..., ::2], x[..., 1::2]; out = np.empty(x.shape)
    out[..., ::2], out[..., 1::2] = a * np.cos(t) - b * np.sin(t), a * np.sin(t) + b * np.cos(t)
    return out

# %% wrong: small angles approximated
def rope(values, positions, base=10000.0):
    x = np.asarray(values); d = x.shape[-1]
    t = np.asarray(positions)[:, None] * base ** (-np.arange(0, d, 2) / d)
    a, b = x[..., ::2], x[..., 1::2]; out = np.empty(x.shape)
    out[..., ::2], out[..., 1::2] = a - b * np.sin(t), a * np.sin(t) + b
    return out

# %% wrong: both signs plus -> one sign of the sine is wrong
def rope(values, positions, base=10000.0):
    x = np.asarray(values)
    d = x.shape[-1]
    angle = np.asarray(positions)[:, None] * base ** (-np.arange(0, d, 2) / d)
    a, b, out = x[..., 0::2], x[..., 1::2], np.empty(x.shape)
    out[..., 0::2] = a * np.cos(angle) + b * np.sin(angle)
    out[..., 1::2] = a * np.sin(angle) + b * np.cos(angle)
    return out

# %% wrong: minus in the second line too -> one sign of the sine is wrong
def rope(values, positions, base=10000.0):
    x = np.asarray(values)
    d = x.shape[-1]
    angle = np.asarray(positions)[:, None] * base ** (-np.arange(0, d, 2) / d)
    a, b, out = x[..., 0::2], x[..., 1::2], np.empty(x.shape)
    out[..., 0::2] = a * np.cos(angle) - b * np.sin(angle)
    out[..., 1::2] = b * np.cos(angle) - a * np.sin(angle)
    return out

# %% wrong: clockwise -> pairs turn backwards
def rope(values, positions, base=10000.0):
    x = np.asarray(values)
    d = x.shape[-1]
    angle = np.asarray(positions)[:, None] * base ** (-np.arange(0, d, 2) / d)
    z = (x[..., 0::2] + 1j * x[..., 1::2]) * np.exp(-1j * angle)
    return np.stack([z.real, z.imag], -1).reshape(x.shape)

# %% wrong: first feature overwritten before the second -> keep the old a and b
def rope(values, positions, base=10000.0):
    out = np.array(values, dtype=float)
    d = out.shape[-1]
    for t, m in enumerate(positions):
        for p in range(d // 2):
            theta = m * base ** (-2 * p / d)
            out[..., t, 2 * p] = out[..., t, 2 * p] * np.cos(theta) - out[..., t, 2 * p + 1] * np.sin(theta)
            out[..., t, 2 * p + 1] = out[..., t, 2 * p] * np.sin(theta) + out[..., t, 2 * p + 1] * np.cos(theta)
    return out

# %% wrong: arange by twos and times two again -> its 2 is there twice
def rope(values, positions, base=10000.0):
    x = np.asarray(values)
    d = x.shape[-1]
    angle = np.asarray(positions)[:, None] * base ** (-2 * np.arange(0, d, 2) / d)
    z = (x[..., 0::2] + 1j * x[..., 1::2]) * np.exp(1j * angle)
    return np.stack([z.real, z.imag], -1).reshape(x.shape)

# %% wrong: batch flattened into time -> joined into one long one
def batched_multi_head_attention(hidden_batch, wq, wk, wv, wo, heads):
    x = np.asarray(hidden_batch)
    if x.ndim != 3:
        raise ValueError("three axes")
    B, T, d = x.shape
    output, weights, _ = multi_head_attention(x.reshape(B * T, d), wq, wk, wv, wo, heads)
    per = np.stack([weights[:, b * T : (b + 1) * T, b * T : (b + 1) * T] for b in range(B)])
    return output.reshape(B, T, d), per

# %% wrong: output of every sequence only -> 2 results were expected, output, weights
def batched_multi_head_attention(hidden_batch, wq, wk, wv, wo, heads):
    if np.ndim(hidden_batch) != 3:
        raise ValueError("three axes")
    return np.stack([multi_head_attention(x, wq, wk, wv, wo, heads)[0] for x in hidden_batch])

# %% right: zip of the loop, rotation by outer
def batched_multi_head_attention(hidden_batch, wq, wk, wv, wo, heads):
    x = np.asarray(hidden_batch)
    if x.ndim != 3:
        raise ValueError(f"three axes expected, got {x.ndim}")
    outputs, weights, _ = zip(*(multi_head_attention(one, wq, wk, wv, wo, heads) for one in x))
    return np.array(outputs), np.array(weights)

def rope(values, positions, base=10000.0):
    x = np.asarray(values)
    d = x.shape[-1]
    angle = np.outer(positions, np.exp(-np.log(base) * np.arange(0, d, 2) / d))
    c, s = np.cos(angle).repeat(2, axis=-1), np.sin(angle).repeat(2, axis=-1)
    swapped = x.reshape(*x.shape[:-1], d // 2, 2)[..., ::-1] * np.array([-1, 1])
    return x * c + swapped.reshape(x.shape) * s

# %% right: two-by-two matrices
def rope(values, positions, base=10000.0):
    x = np.asarray(values, dtype=float)
    d = x.shape[-1]
    t = np.asarray(positions)[:, None] / base ** (np.arange(d // 2) * 2 / d)
    turn = np.array([[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]])
    pairs = x.reshape(*x.shape[:-1], d // 2, 2)
    return np.einsum("ijtp,...tpj->...tpi", turn, pairs).reshape(x.shape)

# %% right: lists out, one error for both
def batched_multi_head_attention(hidden_batch, wq, wk, wv, wo, heads):
    try:
        B, T, d = np.shape(hidden_batch)
    except ValueError:
        raise ValueError("hidden_batch must be (B, T, d)") from None
    done = [multi_head_attention(hidden_batch[b], wq, wk, wv, wo, heads) for b in range(B)]
    return [[o.tolist() for o, _, _ in done], np.stack([w for _, w, _ in done])]
