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

# %% right: log-sum-exp
def masked_cross_entropy(logits, labels, loss_mask):
    logits, labels, loss_mask = np.asarray(logits), np.asarray(labels), np.asarray(loss_mask, bool)
    if not loss_mask.any():
        return 0.0
    x, y = logits[loss_mask], labels[loss_mask]
    top = x.max(axis=1)
    log_total = top + np.log(np.exp(x - top[:, None]).sum(axis=1))
    return float(np.mean(log_total - x[range(len(y)), y]))

# %% right: np.float64 and take_along_axis
def masked_cross_entropy(logits, labels, loss_mask):
    x = np.array(logits, dtype=float)
    x = x - x.max(-1, keepdims=True)
    logp = x - np.log(np.exp(x).sum(-1, keepdims=True))
    nll = -np.take_along_axis(logp, np.asarray(labels)[..., None], axis=-1)[..., 0]
    return (nll * loss_mask).sum() / max(np.sum(loss_mask), 1)

# %% right: one-hot and an average with weights
def masked_cross_entropy(logits, labels, loss_mask):
    logits = np.asarray(logits)
    if np.sum(loss_mask) == 0:
        return np.zeros(())
    top = logits.max(axis=-1, keepdims=True)
    total = np.log(np.exp(logits - top).sum(axis=-1)) + top[..., 0]
    chosen = (logits * np.eye(logits.shape[-1])[labels]).sum(axis=-1)
    return np.average(total - chosen, weights=np.asarray(loss_mask, dtype=float))

# %% right: position by position
def masked_cross_entropy(logits, labels, loss_mask):
    logits = np.asarray(logits)
    found = []
    for place in np.ndindex(*np.shape(labels)):
        if loss_mask[place]:
            row = logits[place] - np.max(logits[place])
            found.append(np.log(np.sum(np.exp(row))) - row[labels[place]])
    return sum(found) / len(found) if found else 0.0

# %% right: logaddexp
def masked_cross_entropy(logits, labels, loss_mask):
    x, y, m = np.asarray(logits), np.asarray(labels), np.asarray(loss_mask)
    if m.sum() == 0:
        return 0
    x, y = x[m], y[m]
    return (np.logaddexp.reduce(x, axis=-1) - x[np.arange(y.size), y]).mean()

# %% wrong: mean over all -> divide by the number kept
def masked_cross_entropy(logits, labels, loss_mask):
    x, y, m = np.asarray(logits), np.asarray(labels), np.asarray(loss_mask, bool)
    if not m.any():
        return 0.0
    shifted = x - x.max(axis=-1, keepdims=True)
    logp = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    nll = -np.take_along_axis(logp, y[..., None], axis=-1)[..., 0]
    return (nll * m).mean()

# %% wrong: sum -> not averaged
def masked_cross_entropy(logits, labels, loss_mask):
    x, y, m = np.asarray(logits), np.asarray(labels), np.asarray(loss_mask, bool)
    if not m.any():
        return 0.0
    shifted = x - x.max(axis=-1, keepdims=True)
    logp = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    nll = -np.take_along_axis(logp, y[..., None], axis=-1)[..., 0]
    return nll[m].sum()

# %% wrong: mask ignored -> loss_mask has no effect
def masked_cross_entropy(logits, labels, loss_mask):
    x, y, m = np.asarray(logits), np.asarray(labels), np.asarray(loss_mask, bool)
    if not m.any():
        return 0.0
    shifted = x - x.max(axis=-1, keepdims=True)
    logp = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    nll = -np.take_along_axis(logp, y[..., None], axis=-1)[..., 0]
    return nll.mean()

# %% wrong: mask inverted -> True means kept
def masked_cross_entropy(logits, labels, loss_mask):
    x, y, m = np.asarray(logits), np.asarray(labels), np.asarray(loss_mask, bool)
    if not m.any():
        return 0.0
    shifted = x - x.max(axis=-1, keepdims=True)
    logp = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    nll = -np.take_along_axis(logp, y[..., None], axis=-1)[..., 0]
    return nll[~m].mean() if (~m).any() else 0.0

# %% wrong: row means -> averaged by itself first
def masked_cross_entropy(logits, labels, loss_mask):
    x, y, m = np.asarray(logits), np.asarray(labels), np.asarray(loss_mask, bool)
    if not m.any():
        return 0.0
    shifted = x - x.max(axis=-1, keepdims=True)
    logp = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    nll = -np.take_along_axis(logp, y[..., None], axis=-1)[..., 0]
    return ((nll * m).sum(-1) / np.maximum(m.sum(-1), 1)).mean()

# %% wrong: sign -> wrong way round
def masked_cross_entropy(logits, labels, loss_mask):
    x, y, m = np.asarray(logits), np.asarray(labels), np.asarray(loss_mask, bool)
    if not m.any():
        return 0.0
    shifted = x - x.max(axis=-1, keepdims=True)
    logp = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    nll = -np.take_along_axis(logp, y[..., None], axis=-1)[..., 0]
    return -nll[m].mean()

# %% wrong: bits -> base 2
def masked_cross_entropy(logits, labels, loss_mask):
    x, y, m = np.asarray(logits), np.asarray(labels), np.asarray(loss_mask, bool)
    if not m.any():
        return 0.0
    shifted = x - x.max(axis=-1, keepdims=True)
    logp = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    nll = -np.take_along_axis(logp, y[..., None], axis=-1)[..., 0]
    return nll[m].mean() / np.log(2)

# %% wrong: per position
def masked_cross_entropy(logits, labels, loss_mask):
    x, y, m = np.asarray(logits), np.asarray(labels), np.asarray(loss_mask, bool)
    if not m.any():
        return 0.0
    shifted = x - x.max(axis=-1, keepdims=True)
    logp = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    nll = -np.take_along_axis(logp, y[..., None], axis=-1)[..., 0]
    return nll * m

# %% wrong: perplexity -> the perplexity
def masked_cross_entropy(logits, labels, loss_mask):
    x, y, m = np.asarray(logits), np.asarray(labels), np.asarray(loss_mask, bool)
    if not m.any():
        return 0.0
    shifted = x - x.max(axis=-1, keepdims=True)
    logp = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    nll = -np.take_along_axis(logp, y[..., None], axis=-1)[..., 0]
    return np.exp(nll[m].mean())

# %% wrong: over the vocabulary -> mean runs over the vocabulary too
def masked_cross_entropy(logits, labels, loss_mask):
    x, y, m = np.asarray(logits), np.asarray(labels), np.asarray(loss_mask, bool)
    if not m.any():
        return 0.0
    shifted = x - x.max(axis=-1, keepdims=True)
    logp = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    nll = -np.take_along_axis(logp, y[..., None], axis=-1)[..., 0]
    return nll[m].mean() / x.shape[-1]

# %% wrong: divided by sequences -> divided by the number of sequences
def masked_cross_entropy(logits, labels, loss_mask):
    x, y, m = np.asarray(logits), np.asarray(labels), np.asarray(loss_mask, bool)
    if not m.any():
        return 0.0
    shifted = x - x.max(axis=-1, keepdims=True)
    logp = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    nll = -np.take_along_axis(logp, y[..., None], axis=-1)[..., 0]
    return nll[m].sum() / len(m)

# %% wrong: divided by one too many
def masked_cross_entropy(logits, labels, loss_mask):
    x, y, m = np.asarray(logits), np.asarray(labels), np.asarray(loss_mask, bool)
    if not m.any():
        return 0.0
    shifted = x - x.max(axis=-1, keepdims=True)
    logp = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    nll = -np.take_along_axis(logp, y[..., None], axis=-1)[..., 0]
    return nll[m].sum() / (m.sum() + 1)

# %% wrong: median
def masked_cross_entropy(logits, labels, loss_mask):
    x, y, m = np.asarray(logits), np.asarray(labels), np.asarray(loss_mask, bool)
    if not m.any():
        return 0.0
    shifted = x - x.max(axis=-1, keepdims=True)
    logp = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    nll = -np.take_along_axis(logp, y[..., None], axis=-1)[..., 0]
    return np.median(nll[m])

# %% wrong: largest
def masked_cross_entropy(logits, labels, loss_mask):
    x, y, m = np.asarray(logits), np.asarray(labels), np.asarray(loss_mask, bool)
    if not m.any():
        return 0.0
    shifted = x - x.max(axis=-1, keepdims=True)
    logp = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    nll = -np.take_along_axis(logp, y[..., None], axis=-1)[..., 0]
    return nll[m].max()

# %% wrong: squared error
def masked_cross_entropy(logits, labels, loss_mask):
    x, y, m = np.asarray(logits), np.asarray(labels), np.asarray(loss_mask, bool)
    if not m.any():
        return 0.0
    shifted = x - x.max(axis=-1, keepdims=True)
    logp = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    nll = -np.take_along_axis(logp, y[..., None], axis=-1)[..., 0]
    return ((1 - np.exp(-nll[m])) ** 2).mean()

# %% wrong: rounded
def masked_cross_entropy(logits, labels, loss_mask):
    x, y, m = np.asarray(logits), np.asarray(labels), np.asarray(loss_mask, bool)
    if not m.any():
        return 0.0
    shifted = x - x.max(axis=-1, keepdims=True)
    logp = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    nll = -np.take_along_axis(logp, y[..., None], axis=-1)[..., 0]
    return round(float(nll[m].mean()), 2)

# %% wrong: labels changed in place
def masked_cross_entropy(logits, labels, loss_mask):
    x, y, m = np.asarray(logits), np.asarray(labels), np.asarray(loss_mask, bool)
    if not m.any():
        return 0.0
    shifted = x - x.max(axis=-1, keepdims=True)
    logp = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    nll = -np.take_along_axis(logp, y[..., None], axis=-1)[..., 0]
    labels[~m] = 0; return nll[m].mean()

# %% wrong: shifted once more -> labels are shifted already
def masked_cross_entropy(logits, labels, loss_mask):
    x, y, m = np.asarray(logits), np.asarray(labels), np.asarray(loss_mask, bool)
    if not m.any():
        return 0.0
    shifted = x - x.max(axis=-1, keepdims=True)
    logp = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    nll = -np.take_along_axis(logp, y[..., None], axis=-1)[..., 0]
    return -np.take_along_axis(logp[..., :-1, :], y[..., 1:, None], -1)[..., 0][m[..., 1:]].mean()

# %% wrong: wrong way shifted -> the labels are shifted already
def masked_cross_entropy(logits, labels, loss_mask):
    x, y, m = np.asarray(logits), np.asarray(labels), np.asarray(loss_mask, bool)
    if not m.any():
        return 0.0
    shifted = x - x.max(axis=-1, keepdims=True)
    logp = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    nll = -np.take_along_axis(logp, y[..., None], axis=-1)[..., 0]
    return -np.take_along_axis(logp[..., 1:, :], y[..., :-1, None], -1)[..., 0][m[..., :-1]].mean()

# %% wrong: softmax twice -> softmax was taken twice
def masked_cross_entropy(logits, labels, loss_mask):
    x, y, m = np.asarray(logits), np.asarray(labels), np.asarray(loss_mask, bool)
    if not m.any():
        return 0.0
    shifted = x - x.max(axis=-1, keepdims=True)
    logp = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    nll = -np.take_along_axis(logp, y[..., None], axis=-1)[..., 0]
    p = np.exp(logp); z = p - np.log(np.exp(p).sum(-1, keepdims=True)); return -np.take_along_axis(z, y[..., None], -1)[..., 0][m].mean()

# %% wrong: no logarithm
def masked_cross_entropy(logits, labels, loss_mask):
    x, y, m = np.asarray(logits), np.asarray(labels), np.asarray(loss_mask, bool)
    if not m.any():
        return 0.0
    shifted = x - x.max(axis=-1, keepdims=True)
    logp = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    nll = -np.take_along_axis(logp, y[..., None], axis=-1)[..., 0]
    return np.exp(-nll[m]).mean()

# %% wrong: no normaliser -> log-sum-exp
def masked_cross_entropy(logits, labels, loss_mask):
    x, y, m = np.asarray(logits), np.asarray(labels), np.asarray(loss_mask, bool)
    if not m.any():
        return 0.0
    shifted = x - x.max(axis=-1, keepdims=True)
    logp = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    nll = -np.take_along_axis(logp, y[..., None], axis=-1)[..., 0]
    return -np.take_along_axis(x, y[..., None], -1)[..., 0][m].mean()

# %% wrong: most likely token in place of the label
def masked_cross_entropy(logits, labels, loss_mask):
    x, y, m = np.asarray(logits), np.asarray(labels), np.asarray(loss_mask, bool)
    if not m.any():
        return 0.0
    shifted = x - x.max(axis=-1, keepdims=True)
    logp = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    nll = -np.take_along_axis(logp, y[..., None], axis=-1)[..., 0]
    return -logp.max(-1)[m].mean()

# %% wrong: log of a softmax -> share that became 0
def masked_cross_entropy(logits, labels, loss_mask):
    p = row_softmax(logits)
    if not np.any(loss_mask):
        return 0.0
    picked = np.take_along_axis(p, np.asarray(labels)[..., None], axis=-1)[..., 0]
    return -np.log(picked[loss_mask]).mean()

# %% wrong: log of softmax and a small number -> has a probability a floor
def masked_cross_entropy(logits, labels, loss_mask):
    p = row_softmax(logits)
    if not np.any(loss_mask):
        return 0.0
    picked = np.take_along_axis(p, np.asarray(labels)[..., None], axis=-1)[..., 0]
    return -np.log(picked[loss_mask] + 1e-12).mean()

# %% wrong: overflow -> exp of a large logit overflows
def masked_cross_entropy(logits, labels, loss_mask):
    e = np.exp(np.asarray(logits))
    if not np.any(loss_mask):
        return 0.0
    p = e / e.sum(axis=-1, keepdims=True)
    picked = np.take_along_axis(p, np.asarray(labels)[..., None], axis=-1)[..., 0]
    return -np.log(picked[loss_mask]).mean()

# %% wrong: NaN for nothing kept -> a mean over nothing is 0 / 0
def masked_cross_entropy(logits, labels, loss_mask):
    x, y = np.asarray(logits)[loss_mask], np.asarray(labels)[loss_mask]
    return float(np.mean(np.logaddexp.reduce(x, axis=-1) - x[np.arange(len(y)), y]))

# %% wrong: one sequence only -> works for one sequence alone
def masked_cross_entropy(logits, labels, loss_mask):
    if not np.any(loss_mask):
        return 0.0
    x = np.asarray(logits)
    rows = np.arange(len(labels))
    nll = np.logaddexp.reduce(x, axis=-1) - x[rows, labels]
    return float(nll[loss_mask].mean())

# %% right: torch's own
import torch
def masked_cross_entropy(logits, labels, loss_mask):
    x, y, m = torch.tensor(np.asarray(logits, dtype=float)), torch.tensor(np.array(labels)).long(), torch.tensor(np.array(loss_mask))
    return torch.nn.functional.cross_entropy(x[m], y[m]) if m.any() else 0.0

# %% right: a zero-dimensional array from masked arrays
def masked_cross_entropy(logits, labels, loss_mask):
    x = np.asarray(logits, dtype=np.float64)
    x = x - x.max(-1, keepdims=True)
    log_p = np.take_along_axis(x, np.asarray(labels)[..., None], -1)[..., 0] - np.log(np.exp(x).sum(-1))
    kept = np.ma.array(-log_p, mask=~np.asarray(loss_mask))
    return np.array(kept.mean()) if kept.count() else np.float32(0)

# %% right: math.fsum over a generator
import math
def masked_cross_entropy(logits, labels, loss_mask):
    x = np.asarray(logits).reshape(-1, np.shape(logits)[-1]); y = np.ravel(labels); m = np.ravel(loss_mask)
    terms = [np.logaddexp.reduce(row.astype(float)) - row[t] for row, t, k in zip(x, y, m) if k]
    return math.fsum(terms) / len(terms) if terms else 0

# %% wrong: label smoothing
def masked_cross_entropy(logits, labels, loss_mask):
    x = np.asarray(logits); m = np.asarray(loss_mask)
    if not m.any(): return 0.0
    x = x[m] - x[m].max(-1, keepdims=True); lp = x - np.log(np.exp(x).sum(-1, keepdims=True))
    return float(-(0.98 * np.take_along_axis(lp, np.asarray(labels)[m][:, None], -1)[:, 0] + 0.02 * lp.mean(-1)).mean())

# %% wrong: clipped surprise -> too small
def masked_cross_entropy(logits, labels, loss_mask):
    x = np.asarray(logits); m = np.asarray(loss_mask)
    if not m.any(): return 0.0
    x = x[m] - x[m].max(-1, keepdims=True); lp = x - np.log(np.exp(x).sum(-1, keepdims=True))
    return float(np.minimum(-np.take_along_axis(lp, np.asarray(labels)[m][:, None], -1)[:, 0], 50).mean())

# %% wrong: one for nothing kept
def masked_cross_entropy(logits, labels, loss_mask):
    x = np.asarray(logits); m = np.asarray(loss_mask)
    if not m.any(): return 1.0
    x = x[m] - x[m].max(-1, keepdims=True); lp = x - np.log(np.exp(x).sum(-1, keepdims=True))
    return float(-np.take_along_axis(lp, np.asarray(labels)[m][:, None], -1).mean())

# %% wrong: masked logits set to zero and averaged over the kept
def masked_cross_entropy(logits, labels, loss_mask):
    x = np.asarray(logits) * np.asarray(loss_mask)[..., None]
    x = x - x.max(-1, keepdims=True); lp = x - np.log(np.exp(x).sum(-1, keepdims=True))
    n = np.sum(loss_mask)
    return float(-np.take_along_axis(lp, np.asarray(labels)[..., None], -1).sum() / n) if n else 0.0

# %% wrong: peak over the whole array -> each row less its own largest
def masked_cross_entropy(logits, labels, loss_mask):
    x = np.asarray(logits); m = np.asarray(loss_mask)
    if not m.any(): return 0.0
    x = x[m] - x.max(); lp = x - np.log(np.exp(x).sum(-1, keepdims=True))
    return float(-np.take_along_axis(lp, np.asarray(labels)[m][:, None], -1).mean())

# %% wrong: softmax over positions
def masked_cross_entropy(logits, labels, loss_mask):
    x = np.asarray(logits); m = np.asarray(loss_mask)
    if not m.any(): return 0.0
    x = x[m] - x[m].max(0); lp = x - np.log(np.exp(x).sum(0))
    return float(-np.take_along_axis(lp, np.asarray(labels)[m][:, None], -1).mean())

# %% wrong: margin to the best other
def masked_cross_entropy(logits, labels, loss_mask):
    x = np.asarray(logits); m = np.asarray(loss_mask)
    if not m.any(): return 0.0
    return float((x[m].max(-1) - np.take_along_axis(x[m], np.asarray(labels)[m][:, None], -1)[:, 0]).mean())

# %% wrong: focal loss
def masked_cross_entropy(logits, labels, loss_mask):
    x = np.asarray(logits); m = np.asarray(loss_mask)
    if not m.any(): return 0.0
    x = x[m] - x[m].max(-1, keepdims=True); lp = x - np.log(np.exp(x).sum(-1, keepdims=True))
    l = np.take_along_axis(lp, np.asarray(labels)[m][:, None], -1)[:, 0]
    return float((-(1 - np.exp(l)) * l).mean())

# %% wrong: label zero left out as padding
def masked_cross_entropy(logits, labels, loss_mask):
    x = np.asarray(logits); y = np.asarray(labels); m = np.asarray(loss_mask) & (y != 0)
    if not m.any(): return 0.0
    x = x[m] - x[m].max(-1, keepdims=True); lp = x - np.log(np.exp(x).sum(-1, keepdims=True))
    return float(-np.take_along_axis(lp, y[m][:, None], -1).mean())

# %% wrong: clipped probabilities -> has a probability a floor
def masked_cross_entropy(logits, labels, loss_mask):
    if not np.any(loss_mask):
        return 0.0
    p = row_softmax(np.asarray(logits))[loss_mask]
    p = np.clip(p[np.arange(len(p)), np.asarray(labels)[loss_mask]], 1e-7, 1.0)
    return float(-np.log(p).mean())

# %% wrong: epsilon in the logarithm -> has a probability a floor
def masked_cross_entropy(logits, labels, loss_mask):
    if np.sum(loss_mask) == 0:
        return 0.0
    p = row_softmax(np.asarray(logits))
    p = np.take_along_axis(p, np.asarray(labels)[..., None], -1)[..., 0]
    return -(np.log(p + 1e-12) * loss_mask).sum() / np.sum(loss_mask)

# %% wrong: log of a softmax without care -> the logarithm of a share that became 0 is -inf
def masked_cross_entropy(logits, labels, loss_mask):
    x, y = np.asarray(logits)[loss_mask], np.asarray(labels)[loss_mask]
    return -np.log(row_softmax(x)[np.arange(len(y)), y]).mean() if len(y) else 0.0

# %% wrong: mean of nothing -> before you divide
def masked_cross_entropy(logits, labels, loss_mask):
    x, y = np.asarray(logits)[loss_mask], np.asarray(labels)[loss_mask]
    x = x - x.max(axis=-1, keepdims=True)
    losses = np.log(np.exp(x).sum(axis=-1)) - x[np.arange(len(y)), y]
    return losses.mean()

# %% wrong: sum over a count of zero -> before you divide
def masked_cross_entropy(logits, labels, loss_mask):
    x = np.asarray(logits) - np.max(logits, axis=-1, keepdims=True)
    losses = np.log(np.exp(x).sum(-1)) - np.take_along_axis(x, np.asarray(labels)[..., None], -1)[..., 0]
    return np.sum(losses * loss_mask) / np.sum(loss_mask)

# %% wrong: indexed as for one sequence -> it works for one sequence alone
def masked_cross_entropy(logits, labels, loss_mask):
    x = np.asarray(logits) - np.max(logits, axis=-1, keepdims=True)
    log_p = x - np.log(np.exp(x).sum(-1, keepdims=True))
    picked = log_p[np.arange(len(labels)), labels]
    return -picked[loss_mask].mean() if np.any(loss_mask) else 0.0

# %% wrong: labels index the first axis -> picks every label at every position
def masked_cross_entropy(logits, labels, loss_mask):
    x = np.asarray(logits)[loss_mask]
    y = np.asarray(labels)[loss_mask]
    if not len(y):
        return 0.0
    x = x - x.max(-1, keepdims=True)
    log_p = x - np.log(np.exp(x).sum(-1, keepdims=True))
    return float(-log_p[:, y].mean())

# %% wrong: probability averaged -> came without its logarithm
def masked_cross_entropy(logits, labels, loss_mask):
    x, y = np.asarray(logits)[loss_mask], np.asarray(labels)[loss_mask]
    return float(-row_softmax(x)[np.arange(len(y)), y].mean()) if len(y) else 0.0

# %% wrong: divided by the batch size -> divided by the number of sequences
def masked_cross_entropy(logits, labels, loss_mask):
    x, y = np.asarray(logits)[loss_mask], np.asarray(labels)[loss_mask]
    x = x - x.max(-1, keepdims=True) if len(y) else x
    return float((np.log(np.exp(x).sum(-1)) - x[np.arange(len(y)), y]).sum() / len(labels))

# %% right: weighted average and a guarded count
def masked_cross_entropy(logits, labels, loss_mask):
    x = np.asarray(logits, dtype=float)
    x = x - x.max(-1, keepdims=True)
    losses = np.log(np.exp(x).sum(-1)) - np.take_along_axis(x, np.asarray(labels)[..., None], -1)[..., 0]
    kept = np.asarray(loss_mask)
    return np.where(kept, losses, 0).sum() / max(kept.sum(), 1)

# %% right: one-hot einsum in float32
def masked_cross_entropy(logits, labels, loss_mask):
    kept = np.asarray(loss_mask)
    x = np.asarray(logits, np.float32)[kept]
    if x.size == 0:
        return np.float32(0)
    hot = np.eye(x.shape[-1], dtype=np.float32)[np.asarray(labels)[kept]]
    top = x.max(-1, keepdims=True)
    return np.mean(np.log(np.exp(x - top).sum(-1)) - np.einsum("nv,nv->n", hot, x - top))

# %% right: nested loops over indices
def masked_cross_entropy(logits, labels, loss_mask):
    total, count = 0.0, 0
    for place in np.ndindex(np.shape(labels)):
        if not loss_mask[place]:
            continue
        row = np.asarray(logits)[place]
        top = max(row)
        total += top + np.log(sum(np.exp(v - top) for v in row)) - row[labels[place]]
        count += 1
    return total / count if count else 0
