# %% setup
import numpy as np

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

# %% right: reshape and transpose

# %% right: slices side by side
def split_heads(values, heads):
    values = np.asarray(values)
    if values.shape[1] % heads != 0:
        raise ValueError(f"{heads} does not divide {values.shape[1]}")
    return np.stack(np.split(values, heads, axis=1))

def merge_heads(values):
    return np.concatenate(list(np.asarray(values)), axis=-1)

# %% right: any leading axes, views
def split_heads(values, heads):
    values = np.asarray(values)
    width = values.shape[-1]
    if heads < 1 or width % heads:
        raise ValueError("heads")
    return np.moveaxis(values.reshape(*values.shape[:-1], heads, -1), -2, -3)

def merge_heads(values):
    moved = np.swapaxes(np.asarray(values), -2, -3)
    return moved.reshape(*moved.shape[:-2], moved.shape[-2] * moved.shape[-1])

# %% right: np.split refuses by itself
def split_heads(values, heads):
    return np.array(np.split(np.asarray(values), heads, axis=-1))

def merge_heads(values):
    return np.hstack([*np.asarray(values)])

# %% wrong: split by reshape alone -> time was cut into heads
def split_heads(values, heads):
    values = np.asarray(values)
    if values.shape[1] % heads:
        raise ValueError("heads")
    return values.reshape(heads, len(values), -1)

# %% wrong: every h-th feature -> every h-th feature
def split_heads(values, heads):
    values = np.asarray(values)
    if values.shape[1] % heads:
        raise ValueError("heads")
    return values.reshape(len(values), -1, heads).transpose(2, 0, 1)

# %% wrong: head axis after time -> head axis must stand before time
def split_heads(values, heads):
    values = np.asarray(values)
    if values.shape[1] % heads:
        raise ValueError("heads")
    return values.reshape(len(values), heads, -1)

# %% wrong: time last
def split_heads(values, heads):
    values = np.asarray(values)
    if values.shape[1] % heads:
        raise ValueError("heads")
    return values.T.reshape(heads, -1, len(values))

# %% wrong: heads in reverse order
def split_heads(values, heads):
    values = np.asarray(values)
    if values.shape[1] % heads:
        raise ValueError("heads")
    return values.reshape(len(values), heads, -1).transpose(1, 0, 2)[::-1]

# %% wrong: remainder dropped -> ValueError was expected, a result came
def split_heads(values, heads):
    values = np.asarray(values)
    width = values.shape[1] // heads
    return values[:, : width * heads].reshape(len(values), heads, width).transpose(1, 0, 2)

# %% wrong: uneven heads
def split_heads(values, heads):
    return np.array_split(np.asarray(values), heads, axis=1)

# %% wrong: assert in place of ValueError
def split_heads(values, heads):
    values = np.asarray(values)
    assert values.shape[1] % heads == 0
    return values.reshape(len(values), heads, -1).transpose(1, 0, 2)

# %% wrong: heads and head width mixed up
def split_heads(values, heads):
    values = np.asarray(values)
    if values.shape[1] % heads:
        raise ValueError("heads")
    return values.reshape(len(values), values.shape[1] // heads, heads).transpose(1, 0, 2)

# %% wrong: always two heads
def split_heads(values, heads):
    values = np.asarray(values)
    if values.shape[1] % heads:
        raise ValueError("heads")
    return values.reshape(len(values), 2, -1).transpose(1, 0, 2)

# %% wrong: merge by reshape alone -> positions are mixed
def merge_heads(values):
    values = np.asarray(values)
    return values.reshape(values.shape[1], -1)

# %% wrong: merged heads interleaved -> features are interleaved
def merge_heads(values):
    values = np.asarray(values)
    return values.transpose(1, 2, 0).reshape(values.shape[1], -1)

# %% wrong: heads averaged
def merge_heads(values):
    return np.mean(values, axis=0)

# %% wrong: heads summed
def merge_heads(values):
    return np.sum(values, axis=0)

# %% wrong: heads below one another
def merge_heads(values):
    return np.concatenate(list(np.asarray(values)), axis=0)

# %% wrong: axes not merged
def merge_heads(values):
    return np.asarray(values).transpose(1, 0, 2)

# %% wrong: merge takes arrays only
def merge_heads(values):
    return values.transpose(1, 0, 2).reshape(values.shape[1], -1)

# %% wrong: first head repeated
def merge_heads(values):
    values = np.asarray(values)
    return np.tile(values[0], (1, len(values)))

# %% wrong: shape of the argument changed
def split_heads(values, heads):
    values = np.asarray(values)
    if values.shape[1] % heads:
        raise ValueError("heads")
    values.shape = (len(values), heads, -1)
    return values.transpose(1, 0, 2)

# %% right: einops by hand, stack of strided slices
def split_heads(values, heads):
    values = np.asarray(values); d = values.shape[1]
    if d % heads != 0: raise ValueError("no")
    w = d // heads
    return np.stack([values[:, k * w:(k + 1) * w] for k in range(heads)])

def merge_heads(values):
    return np.hstack(list(np.asarray(values)))

# %% right: lists of lists of lists
def split_heads(values, heads):
    rows = np.asarray(values).tolist(); d = len(rows[0]); w, rest = divmod(d, heads)
    if rest: raise ValueError("rest")
    return [[row[k * w:(k + 1) * w] for row in rows] for k in range(heads)]

def merge_heads(values):
    heads = [np.asarray(head).tolist() for head in values]
    return [sum((head[t] for head in heads), []) for t in range(len(heads[0]))]

# %% right: swapaxes, einsum and an error of one's own
class HeadError(ValueError):
    pass
def split_heads(values, heads):
    values = np.asarray(values)
    if values.shape[-1] % heads: raise ValueError("heads")
    return np.einsum("thd->htd", values.reshape(len(values), heads, -1))
def merge_heads(values):
    return np.concatenate([*np.asarray(values)], axis=1)

# %% right: torch
import torch
def split_heads(values, heads):
    values = torch.as_tensor(np.array(values))
    if values.shape[1] % heads: raise ValueError
    return values.view(values.shape[0], heads, -1).transpose(0, 1)
def merge_heads(values):
    values = torch.as_tensor(np.array(values))
    return values.transpose(0, 1).reshape(values.shape[1], -1)

# %% wrong: Fortran order
def split_heads(values, heads):
    values = np.asarray(values)
    if values.shape[1] % heads: raise ValueError
    return values.reshape(heads, len(values), -1, order="F")

# %% wrong: heads swapped in pairs
def split_heads(values, heads):
    values = np.asarray(values)
    if values.shape[1] % heads: raise ValueError
    split = values.reshape(len(values), heads, -1).transpose(1, 0, 2)
    return np.roll(split, 1, axis=0)

# %% wrong: features reversed in every head
def split_heads(values, heads):
    values = np.asarray(values)
    if values.shape[1] % heads: raise ValueError
    return values.reshape(len(values), heads, -1).transpose(1, 0, 2)[..., ::-1]

# %% wrong: refuses when time is not divisible
def split_heads(values, heads):
    values = np.asarray(values)
    if len(values) % heads or values.shape[1] % heads: raise ValueError
    return values.reshape(len(values), heads, -1).transpose(1, 0, 2)

# %% wrong: TypeError in place of ValueError
def split_heads(values, heads):
    values = np.asarray(values)
    if values.shape[1] % heads: raise TypeError
    return values.reshape(len(values), heads, -1).transpose(1, 0, 2)

# %% wrong: integers
def split_heads(values, heads):
    values = np.asarray(values)
    if values.shape[1] % heads: raise ValueError
    return values.reshape(len(values), heads, -1).transpose(1, 0, 2).astype(int)

# %% wrong: one head too many, padded
def split_heads(values, heads):
    values = np.asarray(values)
    pad = -values.shape[1] % heads
    values = np.pad(values, ((0, 0), (0, pad)))
    return values.reshape(len(values), heads, -1).transpose(1, 0, 2)

# %% wrong: merge reverses the heads
def merge_heads(values):
    return np.concatenate(list(np.asarray(values))[::-1], axis=1)

# %% wrong: merge for two heads only
def merge_heads(values):
    values = np.asarray(values)
    return np.concatenate([values[0], values[-1]], axis=1) if len(values) > 1 else values[0]

# %% wrong: merge in Fortran order
def merge_heads(values):
    values = np.asarray(values)
    return values.reshape(values.shape[1], -1, order="F")

# %% wrong: merge with time reversed
def merge_heads(values):
    values = np.asarray(values)
    return values.transpose(1, 0, 2).reshape(values.shape[1], -1)[::-1]

# %% wrong: transpose of all three axes -> (2, 5, 4) was expected
def split_heads(values, heads):
    values = np.asarray(values)
    T, d = values.shape
    if d % heads:
        raise ValueError("heads must divide d")
    return values.reshape(T, heads, d // heads).T

# %% wrong: heads cut from the width as d_h runs -> every h-th feature
def split_heads(values, heads):
    values = np.asarray(values)
    T, d = values.shape
    if d % heads:
        raise ValueError("heads must divide d")
    return np.stack([values[:, h::heads] for h in range(heads)])

# %% wrong: the width first, then a reshape -> time was cut into heads
def split_heads(values, heads):
    values = np.asarray(values)
    if values.shape[1] % heads:
        raise ValueError("heads must divide d")
    return values.reshape(heads, -1, values.shape[1] // heads)

# %% wrong: swapaxes forgotten after the reshape -> stand before time
def split_heads(values, heads):
    values = np.asarray(values)
    T, d = values.shape
    if d % heads != 0:
        raise ValueError("heads must divide d")
    return values.reshape((T, heads, d // heads))

# %% wrong: merge with the last two axes exchanged -> features are interleaved
def merge_heads(values):
    values = np.asarray(values)
    h, T, w = values.shape
    return values.transpose(1, 2, 0).reshape(T, h * w)

# %% wrong: merge glues heads one below the other and cuts again -> positions are mixed
def merge_heads(values):
    values = np.asarray(values)
    h, T, w = values.shape
    return np.vstack(list(values)).reshape(T, h * w)

# %% right: moveaxis both ways
def split_heads(values, heads):
    values = np.asarray(values)
    if values.shape[-1] % heads:
        raise ValueError(f"{heads} heads do not divide {values.shape[-1]}")
    return np.moveaxis(values.reshape(values.shape[0], heads, -1), 1, 0)

def merge_heads(values):
    values = np.moveaxis(np.asarray(values), 0, 1)
    return values.reshape(values.shape[0], -1)

# %% right: filled entry by entry
def split_heads(values, heads):
    values = np.asarray(values)
    T, d = values.shape
    w, rest = divmod(d, heads)
    if rest:
        raise ValueError("uneven")
    out = np.empty((heads, T, w), dtype=values.dtype)
    for h in range(heads):
        for t in range(T):
            out[h, t] = values[t, h * w : (h + 1) * w]
    return out

def merge_heads(values):
    return np.hstack([np.asarray(head) for head in values])

# %% right: np.split and concatenate, tuples
def split_heads(values, heads):
    try:
        return tuple(np.split(np.asarray(values), heads, axis=1))
    except ValueError as error:
        raise ValueError("heads must divide the width") from error

def merge_heads(values):
    return np.concatenate(list(map(np.asarray, values)), axis=-1)
