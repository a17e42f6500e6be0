# %% setup
import numpy as np

def shifted_targets(tokens, loss_mask):
    tokens = np.asarray(tokens)
    if tokens.shape[-1] < 2:
        raise ValueError("at least two tokens")
    return tokens[..., :-1], tokens[..., 1:], np.asarray(loss_mask, dtype=bool)[..., 1:]

def masked_loss(logits, labels, kept):
    logits, kept = np.asarray(logits, dtype=float), np.asarray(kept, dtype=bool)
    labels = np.where(kept, labels, 0)
    n = max(1, kept.sum())
    z = logits - logits.max(axis=-1, keepdims=True)
    logp = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
    nll = -np.take_along_axis(logp, labels[..., None], axis=-1)[..., 0]
    grad = (np.exp(logp) - np.eye(logits.shape[-1])[labels]) * kept[..., None] / n
    return float((nll * kept).sum() / n), grad

# %% right: labels filled with -100 where nothing is asked
def shifted_targets(tokens, loss_mask):
    tokens, loss_mask = np.array(tokens), np.array(loss_mask)
    if tokens.shape[-1] <= 1:
        raise ValueError("too short")
    labels = tokens[..., 1:].copy()
    labels[loss_mask[..., 1:] == 0] = -100
    return [tokens[..., :-1].copy(), labels, loss_mask[..., 1:]]

# %% right: take and a mask of numbers
def shifted_targets(tokens, loss_mask):
    T = np.shape(tokens)[-1]
    if T < 2:
        raise ValueError(T)
    here, there = np.arange(T - 1), np.arange(1, T)
    return np.take(tokens, here, axis=-1), np.take(tokens, there, axis=-1), np.take(loss_mask, there, axis=-1).astype(int)

# %% right: only what is kept, put back
def masked_loss(logits, labels, kept):
    logits, labels, kept = np.asarray(logits), np.asarray(labels), np.asarray(kept)
    gradient = np.zeros(logits.shape)
    if not kept.any():
        return 0.0, gradient
    x, y = logits[kept].astype(float), labels[kept]
    p = np.exp(x - x.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    top = x.max(axis=1)
    loss = np.mean(top + np.log(np.exp(x - top[:, None]).sum(axis=1)) - x[np.arange(len(y)), y])
    p[np.arange(len(y)), y] -= 1
    gradient[kept] = p / len(y)
    return loss, gradient

# %% right: position by position
def masked_loss(logits, labels, kept):
    logits = np.asarray(logits)
    gradient, total, count = np.zeros(logits.shape), 0.0, int(np.sum(kept))
    for place in np.ndindex(logits.shape[:-1]):
        if kept[place]:
            row = logits[place] - logits[place].max()
            p = np.exp(row) / np.exp(row).sum()
            total += np.log(np.exp(row).sum()) - row[labels[place]]
            p[labels[place]] -= 1
            gradient[place] = p / count
    return [np.float64(total / max(count, 1)), gradient]

# %% right: float32 throughout
def masked_loss(logits, labels, kept):
    x = np.asarray(logits, dtype=np.float32)
    k = np.asarray(kept).astype(np.float32)
    n = max(k.sum(), 1)
    y = np.where(kept, labels, 0).astype(int)
    one_hot = (y[..., None] == np.arange(x.shape[-1])).astype(np.float32)
    x = x - x.max(-1, keepdims=True)
    logz = np.log(np.exp(x).sum(-1, keepdims=True))
    loss = np.sum(k * (logz[..., 0] - np.sum(x * one_hot, -1))) / n
    return loss, (np.exp(x - logz) - one_hot) * k[..., None] / n

# %% right: logaddexp and average with weights
def masked_loss(logits, labels, kept):
    x = np.asarray(logits, float)
    w = np.asarray(kept, float)
    if w.sum() == 0:
        return np.zeros(()), np.zeros_like(x)
    w = w / w.sum()
    y = np.clip(labels, 0, x.shape[-1] - 1)
    logp = x - np.logaddexp.reduce(x, axis=-1, keepdims=True)
    g = np.exp(logp) * w[..., None]
    np.put_along_axis(g, y[..., None], np.take_along_axis(g, y[..., None], -1) - w[..., None], -1)
    return -np.sum(w * np.take_along_axis(logp, y[..., None], -1)[..., 0]), g

# %% wrong: labels not shifted -> the one after it
def shifted_targets(tokens, loss_mask):
    tokens = np.asarray(tokens)
    if tokens.shape[-1] < 2:
        raise ValueError("short")
    return tokens[..., :-1], tokens[..., :-1], np.asarray(loss_mask)[..., :-1]

# %% wrong: shifted backwards -> swapped
def shifted_targets(tokens, loss_mask):
    tokens = np.asarray(tokens)
    if tokens.shape[-1] < 2:
        raise ValueError("short")
    return tokens[..., 1:], tokens[..., :-1], np.asarray(loss_mask)[..., :-1]

# %% wrong: mask cut like the inputs -> moves with the labels
def shifted_targets(tokens, loss_mask):
    tokens, loss_mask = np.asarray(tokens), np.asarray(loss_mask)
    if tokens.shape[-1] < 2:
        raise ValueError("short")
    return tokens[..., :-1], tokens[..., 1:], loss_mask[..., :-1]

# %% wrong: rolled -> rolled round
def shifted_targets(tokens, loss_mask):
    tokens = np.asarray(tokens)
    if tokens.shape[-1] < 2:
        raise ValueError("short")
    return tokens, np.roll(tokens, -1, axis=-1), np.roll(loss_mask, -1, axis=-1)

# %% wrong: inputs whole -> token too many
def shifted_targets(tokens, loss_mask):
    tokens = np.asarray(tokens)
    if tokens.shape[-1] < 2:
        raise ValueError("short")
    return tokens, tokens[..., 1:], np.asarray(loss_mask)[..., 1:]

# %% wrong: mask not cut -> cut like the labels
def shifted_targets(tokens, loss_mask):
    tokens = np.asarray(tokens)
    if tokens.shape[-1] < 2:
        raise ValueError("short")
    return tokens[..., :-1], tokens[..., 1:], np.asarray(loss_mask)

# %% wrong: sequences without a batch only
def shifted_targets(tokens, loss_mask):
    tokens = np.asarray(tokens)
    if tokens.shape[-1] < 2:
        raise ValueError("short")
    return tokens[:-1], tokens[1:], np.asarray(loss_mask)[1:]

# %% wrong: axis 1 is time
def shifted_targets(tokens, loss_mask):
    tokens, loss_mask = np.asarray(tokens), np.asarray(loss_mask)
    if tokens.shape[-1] < 2:
        raise ValueError("short")
    if tokens.ndim == 1:
        return tokens[:-1], tokens[1:], loss_mask[1:]
    return tokens[:, :-1], tokens[:, 1:], loss_mask[:, 1:]

# %% wrong: mask ignored -> loss_mask has no effect
def shifted_targets(tokens, loss_mask):
    tokens = np.asarray(tokens)
    if tokens.shape[-1] < 2:
        raise ValueError("short")
    return tokens[..., :-1], tokens[..., 1:], np.ones(tokens[..., 1:].shape, dtype=bool)

# %% wrong: kept where input and label both count -> whether or not its input is
def shifted_targets(tokens, loss_mask):
    tokens, loss_mask = np.asarray(tokens), np.asarray(loss_mask)
    if tokens.shape[-1] < 2:
        raise ValueError("short")
    return tokens[..., :-1], tokens[..., 1:], loss_mask[..., 1:] & loss_mask[..., :-1]

# %% wrong: inputs hidden where the mask is False
def shifted_targets(tokens, loss_mask):
    tokens, loss_mask = np.asarray(tokens), np.asarray(loss_mask)
    if tokens.shape[-1] < 2:
        raise ValueError("short")
    return np.where(loss_mask, tokens, 0)[..., :-1], tokens[..., 1:], loss_mask[..., 1:]

# %% wrong: short sequences pass
def shifted_targets(tokens, loss_mask):
    tokens = np.asarray(tokens)
    return tokens[..., :-1], tokens[..., 1:], np.asarray(loss_mask, dtype=bool)[..., 1:]

# %% wrong: labels marked in the caller's array
def shifted_targets(tokens, loss_mask):
    tokens, loss_mask = np.asarray(tokens), np.asarray(loss_mask)
    if tokens.shape[-1] < 2:
        raise ValueError("short")
    labels = tokens[..., 1:]
    labels[~loss_mask[..., 1:]] = -100
    return tokens[..., :-1], labels, loss_mask[..., 1:]

# %% wrong: labels as one-hot floats
def shifted_targets(tokens, loss_mask):
    tokens = np.asarray(tokens)
    if tokens.shape[-1] < 2:
        raise ValueError("short")
    return tokens[..., :-1], tokens[..., 1:].astype(float), np.asarray(loss_mask)[..., 1:]

# %% wrong: mean over all positions -> divide by the number kept
def masked_loss(logits, labels, kept):
    logits, kept = np.asarray(logits, dtype=float), np.asarray(kept, dtype=bool)
    labels = np.where(kept, labels, 0)
    z = logits - logits.max(axis=-1, keepdims=True)
    logp = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
    nll = -np.take_along_axis(logp, labels[..., None], axis=-1)[..., 0]
    grad = (np.exp(logp) - np.eye(logits.shape[-1])[labels]) * kept[..., None] / kept.size
    return (nll * kept).mean(), grad

# %% wrong: summed -> the sum came
def masked_loss(logits, labels, kept):
    logits, kept = np.asarray(logits, dtype=float), np.asarray(kept, dtype=bool)
    labels = np.where(kept, labels, 0)
    z = logits - logits.max(axis=-1, keepdims=True)
    logp = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
    nll = -np.take_along_axis(logp, labels[..., None], axis=-1)[..., 0]
    return (nll * kept).sum(), (np.exp(logp) - np.eye(logits.shape[-1])[labels]) * kept[..., None]

# %% wrong: gradient of the sum -> gradient is that of the sum
def masked_loss(logits, labels, kept):
    logits, kept = np.asarray(logits, dtype=float), np.asarray(kept, dtype=bool)
    labels = np.where(kept, labels, 0)
    z = logits - logits.max(axis=-1, keepdims=True)
    logp = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
    nll = -np.take_along_axis(logp, labels[..., None], axis=-1)[..., 0]
    grad = (np.exp(logp) - np.eye(logits.shape[-1])[labels]) * kept[..., None]
    return (nll * kept).sum() / max(1, kept.sum()), grad

# %% wrong: gradient over all positions -> divided by all positions
def masked_loss(logits, labels, kept):
    logits, kept = np.asarray(logits, dtype=float), np.asarray(kept, dtype=bool)
    labels = np.where(kept, labels, 0)
    z = logits - logits.max(axis=-1, keepdims=True)
    logp = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
    nll = -np.take_along_axis(logp, labels[..., None], axis=-1)[..., 0]
    grad = (np.exp(logp) - np.eye(logits.shape[-1])[labels]) * kept[..., None] / kept.size
    return (nll * kept).sum() / max(1, kept.sum()), grad

# %% wrong: gradient at hidden positions -> hidden positions have a gradient
def masked_loss(logits, labels, kept):
    logits, kept = np.asarray(logits, dtype=float), np.asarray(kept, dtype=bool)
    labels = np.where((np.asarray(labels) < 0) | (np.asarray(labels) >= logits.shape[-1]), 0, labels)
    n = max(1, kept.sum())
    z = logits - logits.max(axis=-1, keepdims=True)
    logp = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
    nll = -np.take_along_axis(logp, labels[..., None], axis=-1)[..., 0]
    return (nll * kept).sum() / n, (np.exp(logp) - np.eye(logits.shape[-1])[labels]) / n

# %% wrong: mean of each row's mean -> each sequence was averaged first
def masked_loss(logits, labels, kept):
    logits, kept = np.asarray(logits, dtype=float), np.asarray(kept, dtype=bool)
    labels = np.where(kept, labels, 0)
    z = logits - logits.max(axis=-1, keepdims=True)
    logp = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
    nll = -np.take_along_axis(logp, labels[..., None], axis=-1)[..., 0]
    count = np.maximum(kept.sum(axis=-1, keepdims=True), 1)
    rows = max(1, kept.any(axis=-1).sum())
    grad = (np.exp(logp) - np.eye(logits.shape[-1])[labels]) * (kept / count / rows)[..., None]
    return (nll * kept / count).sum() / rows, grad

# %% wrong: probabilities alone as gradient -> subtract 1 at each label
def masked_loss(logits, labels, kept):
    logits, kept = np.asarray(logits, dtype=float), np.asarray(kept, dtype=bool)
    labels = np.where(kept, labels, 0)
    n = max(1, kept.sum())
    z = logits - logits.max(axis=-1, keepdims=True)
    logp = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
    nll = -np.take_along_axis(logp, labels[..., None], axis=-1)[..., 0]
    return (nll * kept).sum() / n, np.exp(logp) * kept[..., None] / n

# %% wrong: gradient uphill -> sign is the wrong way round
def masked_loss(logits, labels, kept):
    logits, kept = np.asarray(logits, dtype=float), np.asarray(kept, dtype=bool)
    labels = np.where(kept, labels, 0)
    n = max(1, kept.sum())
    z = logits - logits.max(axis=-1, keepdims=True)
    logp = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
    nll = -np.take_along_axis(logp, labels[..., None], axis=-1)[..., 0]
    return (nll * kept).sum() / n, (np.eye(logits.shape[-1])[labels] - np.exp(logp)) * kept[..., None] / n

# %% wrong: bits -> natural logarithm
def masked_loss(logits, labels, kept):
    logits, kept = np.asarray(logits, dtype=float), np.asarray(kept, dtype=bool)
    labels = np.where(kept, labels, 0)
    n = max(1, kept.sum())
    z = logits - logits.max(axis=-1, keepdims=True)
    p = np.exp(z) / np.exp(z).sum(axis=-1, keepdims=True)
    logp = z / np.log(2) - np.log2(np.exp(z).sum(axis=-1, keepdims=True))
    nll = -np.take_along_axis(logp, labels[..., None], axis=-1)[..., 0]
    return (nll * kept).sum() / n, (p - np.eye(logits.shape[-1])[labels]) * kept[..., None] / n

# %% wrong: logarithm of a softmax -> probability that rounds to 0
def masked_loss(logits, labels, kept):
    logits, kept = np.asarray(logits, dtype=float), np.asarray(kept, dtype=bool)
    labels = np.where(kept, labels, 0)
    n = max(1, kept.sum())
    p = np.exp(logits - logits.max(axis=-1, keepdims=True))
    p = p / p.sum(axis=-1, keepdims=True)
    picked = np.take_along_axis(p, labels[..., None], axis=-1)[..., 0]
    return (-np.log(picked) * kept).sum() / n, (p - np.eye(logits.shape[-1])[labels]) * kept[..., None] / n

# %% wrong: exp without shift -> exponential overflows
def masked_loss(logits, labels, kept):
    logits, kept = np.asarray(logits, dtype=float), np.asarray(kept, dtype=bool)
    labels = np.where(kept, labels, 0)
    n = max(1, kept.sum())
    logp = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    nll = -np.take_along_axis(logp, labels[..., None], axis=-1)[..., 0]
    return (nll * kept).sum() / n, (np.exp(logp) - np.eye(logits.shape[-1])[labels]) * kept[..., None] / n

# %% wrong: nothing kept gives NaN -> divide by 1 at least
def masked_loss(logits, labels, kept):
    logits, labels = np.asarray(logits, dtype=float), np.asarray(labels)
    kept = np.asarray(kept, dtype=bool)
    z = logits - logits.max(axis=-1, keepdims=True)
    logp = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
    grad = np.exp(logp)
    x, y = logp[kept], labels[kept]
    grad[kept] -= np.eye(logits.shape[-1])[y]
    return -x[np.arange(len(y)), y].mean(), grad * kept[..., None] / kept.sum()

# %% wrong: masked logits instead of masked losses
def masked_loss(logits, labels, kept):
    logits, kept = np.asarray(logits, dtype=float), np.asarray(kept, dtype=bool)
    labels = np.where(kept, labels, 0)
    logits = logits * kept[..., None]
    n = max(1, kept.sum())
    z = logits - logits.max(axis=-1, keepdims=True)
    logp = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
    nll = -np.take_along_axis(logp, labels[..., None], axis=-1)[..., 0]
    return nll.sum() / n, (np.exp(logp) - np.eye(logits.shape[-1])[labels]) * kept[..., None] / n

# %% wrong: labels shifted once more
def masked_loss(logits, labels, kept):
    logits, kept = np.asarray(logits, dtype=float)[..., :-1, :], np.asarray(kept, dtype=bool)[..., 1:]
    labels = np.where(kept, np.asarray(labels)[..., 1:], 0)
    n = max(1, kept.sum())
    z = logits - logits.max(axis=-1, keepdims=True)
    logp = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
    nll = -np.take_along_axis(logp, labels[..., None], axis=-1)[..., 0]
    return (nll * kept).sum() / n, (np.exp(logp) - np.eye(logits.shape[-1])[labels]) * kept[..., None] / n

# %% wrong: loss alone
def masked_loss(logits, labels, kept):
    kept = np.asarray(kept, dtype=bool)
    if not kept.any():
        return 0.0
    x, y = np.asarray(logits)[kept], np.asarray(labels)[kept]
    return np.mean(np.logaddexp.reduce(x, axis=-1) - x[np.arange(len(y)), y])

# %% wrong: labels overwritten in place
def masked_loss(logits, labels, kept):
    logits, kept = np.asarray(logits, dtype=float), np.asarray(kept, dtype=bool)
    labels = np.asarray(labels)
    labels[~kept] = 0
    n = max(1, kept.sum())
    z = logits - logits.max(axis=-1, keepdims=True)
    logp = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
    nll = -np.take_along_axis(logp, labels[..., None], axis=-1)[..., 0]
    return (nll * kept).sum() / n, (np.exp(logp) - np.eye(logits.shape[-1])[labels]) * kept[..., None] / n

# %% wrong: fillers looked up
def masked_loss(logits, labels, kept):
    logits, kept, labels = np.asarray(logits, dtype=float), np.asarray(kept, dtype=bool), np.asarray(labels)
    n = max(1, kept.sum())
    z = logits - logits.max(axis=-1, keepdims=True)
    logp = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
    nll = -np.take_along_axis(logp, labels[..., None], axis=-1)[..., 0]
    return (nll * kept).sum() / n, (np.exp(logp) - np.eye(logits.shape[-1])[labels]) * kept[..., None] / n

# %% wrong: largest logit of the whole batch subtracted -> largest logit of the whole batch
def masked_loss(logits, labels, kept):
    logits, kept = np.asarray(logits, dtype=float), np.asarray(kept, dtype=bool)
    labels = np.where(kept, labels, 0)
    n = max(1, kept.sum())
    z = logits - logits.max()
    logp = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
    nll = -np.take_along_axis(logp, labels[..., None], axis=-1)[..., 0]
    return (nll * kept).sum() / n, (np.exp(logp) - np.eye(logits.shape[-1])[labels]) * kept[..., None] / n

# %% wrong: kept found by the labels
def masked_loss(logits, labels, kept, whole=masked_loss):
    labels = np.asarray(labels)
    return whole(logits, labels, (labels >= 0) & (labels < np.shape(logits)[-1]))

# %% right: one-hot product and a boolean sum
def masked_loss(logits, labels, kept):
    logits, kept = np.asarray(logits, dtype=float), np.asarray(kept, dtype=bool)
    hot = np.asarray(labels)[..., None] == np.arange(logits.shape[-1])
    z = logits - logits.max(axis=-1, keepdims=True)
    total = np.log(np.exp(z).sum(axis=-1))
    each = np.where(kept, total - np.where(hot, z, 0).sum(axis=-1), 0)
    n = max(int(kept.sum()), 1)
    return each.sum() / n, (np.exp(z - total[..., None]) - hot) * kept[..., None] / n

# %% wrong: epsilon added inside the logarithm
def masked_loss(logits, labels, kept):
    logits, kept = np.asarray(logits, dtype=float), np.asarray(kept, dtype=bool)
    labels = np.where(kept, labels, 0)
    p = np.exp(logits - logits.max(axis=-1, keepdims=True))
    p /= p.sum(axis=-1, keepdims=True)
    n = max(1, kept.sum())
    each = -np.log(np.take_along_axis(p, labels[..., None], axis=-1)[..., 0] + 1e-3)
    return float((each * kept).sum() / n), (p - np.eye(p.shape[-1])[labels]) * kept[..., None] / n

# %% wrong: -100 decides what counts, not the mask
def masked_loss(logits, labels, kept):
    logits, labels = np.asarray(logits, dtype=float), np.asarray(labels)
    kept = labels != -100
    labels = np.where(kept, labels, 0) % logits.shape[-1]
    n = max(1, kept.sum())
    z = logits - logits.max(axis=-1, keepdims=True)
    logp = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
    nll = -np.take_along_axis(logp, labels[..., None], axis=-1)[..., 0]
    return float((nll * kept).sum() / n), (np.exp(logp) - np.eye(logits.shape[-1])[labels]) * kept[..., None] / n
