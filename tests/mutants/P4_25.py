# %% setup
import math

import numpy as np

# %% right: plain
def parameter_count(architecture, **sizes):
    if architecture not in ("numpy_block", "prooflm", "gpt"):
        raise ValueError(f"architecture: {architecture}")
    d = sizes["d_model"]
    d_ff = 4 * d if architecture == "gpt" else sizes["d_ff"]
    block = 4 * d * d + 4 * d + 2 * d * d_ff + d_ff + d + 4 * d
    if architecture == "numpy_block":
        return block
    total = sizes["vocab_size"] * d + sizes["n_layers"] * block + 2 * d
    if architecture == "gpt":
        total += sizes["context_length"] * d + sizes["vocab_size"] * d + sizes["vocab_size"]
    return total

# %% right: one function for each
def _numpy_block(d_model, num_heads, d_ff):
    return sum([d_model * d_model] * 4 + [d_model] * 4 + [d_model * d_ff, d_ff, d_ff * d_model, d_model] + [d_model] * 4)


def _prooflm(vocab_size, context_length, n_layers, d_model, n_heads, d_ff):
    return np.int64(vocab_size * d_model + n_layers * _numpy_block(d_model, n_heads, d_ff) + 2 * d_model)


def _gpt(vocab_size, context_length, n_layers, d_model, n_heads):
    return _prooflm(vocab_size, 0, n_layers, d_model, n_heads, 4 * d_model) + context_length * d_model + vocab_size * (d_model + 1)


def parameter_count(architecture, **sizes):
    try:
        return globals()["_" + architecture](**sizes)
    except KeyError:
        raise ValueError(architecture) from None

# %% right: shapes, multiplied out
def parameter_count(architecture, **sizes):
    d, layers = sizes["d_model"], sizes.get("n_layers", 1)
    wide = {"numpy_block": sizes.get("d_ff"), "prooflm": sizes.get("d_ff"), "gpt": 4 * d}
    if architecture not in wide:
        raise ValueError("unknown architecture")
    f = wide[architecture]
    shapes = layers * [(d, 3 * d), (3 * d,), (d, d), (d,), (d, f), (f,), (f, d), (d,), (d,), (d,), (d,), (d,)]
    if architecture != "numpy_block":
        shapes += [(sizes["vocab_size"], d), (d,), (d,)]
    if architecture == "gpt":
        shapes += [(sizes["context_length"], d), (d, sizes["vocab_size"]), (sizes["vocab_size"],)]
    return sum(math.prod(shape) for shape in shapes)

# %% right: 12 d^2 + 13 d for a layer of width 4 d
def parameter_count(architecture, *, d_model, d_ff=None, vocab_size=0, context_length=0, n_layers=1, **heads):
    d = d_model
    match architecture:
        case "numpy_block":
            return 4 * d**2 + 2 * d * d_ff + 9 * d + d_ff
        case "prooflm":
            return (vocab_size + 2) * d + n_layers * (4 * d**2 + 2 * d * d_ff + 9 * d + d_ff)
        case "gpt":
            return n_layers * (12 * d**2 + 13 * d) + (2 * vocab_size + context_length + 2) * d + vocab_size
    raise ValueError(architecture)

# %% wrong: no biases -> biases of attention and MLP are not counted
#-     block = 4 * d * d + 4 * d + 2 * d * d_ff + d_ff + d + 4 * d
#+     block = 4 * d * d + 2 * d * d_ff + 4 * d

# %% wrong: no attention biases -> 4 d numbers
#-     block = 4 * d * d + 4 * d + 2 * d * d_ff + d_ff + d + 4 * d
#+     block = 4 * d * d + 2 * d * d_ff + d_ff + d + 4 * d

# %% wrong: no MLP biases -> two biases of the MLP
#-     block = 4 * d * d + 4 * d + 2 * d * d_ff + d_ff + d + 4 * d
#+     block = 4 * d * d + 4 * d + 2 * d * d_ff + 4 * d

# %% wrong: no norms -> 4 d numbers
#-     block = 4 * d * d + 4 * d + 2 * d * d_ff + d_ff + d + 4 * d
#+     block = 4 * d * d + 4 * d + 2 * d * d_ff + d_ff + d

# %% wrong: no shifts
#-     block = 4 * d * d + 4 * d + 2 * d * d_ff + d_ff + d + 4 * d
#+     block = 4 * d * d + 4 * d + 2 * d * d_ff + d_ff + d + 2 * d

# %% wrong: three attention matrices -> output projection is not counted
#-     block = 4 * d * d + 4 * d + 2 * d * d_ff + d_ff + d + 4 * d
#+     block = 3 * d * d + 4 * d + 2 * d * d_ff + d_ff + d + 4 * d

# %% wrong: one MLP matrix -> one is counted
#-     block = 4 * d * d + 4 * d + 2 * d * d_ff + d_ff + d + 4 * d
#+     block = 4 * d * d + 4 * d + d * d_ff + d_ff + d + 4 * d

# %% wrong: fused bias of one width
#-     block = 4 * d * d + 4 * d + 2 * d * d_ff + d_ff + d + 4 * d
#+     block = 4 * d * d + 2 * d + 2 * d * d_ff + d_ff + d + 4 * d

# %% wrong: no final norm -> final norm is not counted
#-     total = sizes["vocab_size"] * d + sizes["n_layers"] * block + 2 * d
#+     total = sizes["vocab_size"] * d + sizes["n_layers"] * block

# %% wrong: tied head counted twice -> a tied matrix counts once
#-     total = sizes["vocab_size"] * d + sizes["n_layers"] * block + 2 * d
#+     total = sizes["vocab_size"] * d + sizes["n_layers"] * block + 2 * d
#+     total += sizes["vocab_size"] * d if architecture == "prooflm" else 0

# %% wrong: gpt tied -> embedding and head both count
#-         total += sizes["context_length"] * d + sizes["vocab_size"] * d + sizes["vocab_size"]
#+         total += sizes["context_length"] * d + sizes["vocab_size"]

# %% wrong: no head bias -> head's bias is not counted
#-         total += sizes["context_length"] * d + sizes["vocab_size"] * d + sizes["vocab_size"]
#+         total += sizes["context_length"] * d + sizes["vocab_size"] * d

# %% wrong: no positions -> learned positions are parameters
#-         total += sizes["context_length"] * d + sizes["vocab_size"] * d + sizes["vocab_size"]
#+         total += sizes["vocab_size"] * d + sizes["vocab_size"]

# %% wrong: rotation counted -> rotation has no parameters
#-     total = sizes["vocab_size"] * d + sizes["n_layers"] * block + 2 * d
#+     total = sizes["vocab_size"] * d + sizes["n_layers"] * block + 2 * d
#+     total += sizes["context_length"] * d if architecture == "prooflm" else 0

# %% wrong: one layer -> blocks are counted once
#-     total = sizes["vocab_size"] * d + sizes["n_layers"] * block + 2 * d
#+     total = sizes["vocab_size"] * d + block + 2 * d

# %% wrong: rough estimate -> is the estimate
#-         total += sizes["context_length"] * d + sizes["vocab_size"] * d + sizes["vocab_size"]
#+         total = 12 * sizes["n_layers"] * d * d + 2 * sizes["vocab_size"] * d

# %% wrong: a float
#-         return block
#+         return block / 1
#
#-     return total
#+     return total / 1

# %% wrong: four d for every MLP
#-     d_ff = 4 * d if architecture == "gpt" else sizes["d_ff"]
#+     d_ff = 4 * d

# %% wrong: unknown taken for gpt
def parameter_count(architecture, **sizes):
    d = sizes["d_model"]
    sizes = {"vocab_size": 1, "n_layers": 1, "context_length": 1, "d_ff": 1} | sizes
    d_ff = 4 * d if architecture == "gpt" else sizes["d_ff"]
    block = 4 * d * d + 4 * d + 2 * d * d_ff + d_ff + d + 4 * d
    if architecture == "numpy_block":
        return block
    total = sizes["vocab_size"] * d + sizes["n_layers"] * block + 2 * d
    if architecture == "gpt":
        total += sizes["context_length"] * d + sizes["vocab_size"] * d + sizes["vocab_size"]
    return total

# %% wrong: None for the unknown
#-         raise ValueError(f"architecture: {architecture}")
#+         return None

# %% wrong: a known example by heart
def parameter_count(architecture, **sizes):
    return 3152384

# %% right: a class, NumPy integers and keyword-only sizes
class Count:
    def __call__(self, architecture, *, d_model, d_ff=None, vocab_size=0, context_length=0, n_layers=1, **rest):
        d, f = np.int64(d_model), np.int64(d_ff or 4 * d_model)
        block = 4 * d * (d + 1) + d * f + f + f * d + d + 4 * d
        match architecture:
            case "numpy_block": return block
            case "prooflm": return vocab_size * d + n_layers * block + 2 * d
            case "gpt": return vocab_size * d + context_length * d + n_layers * block + 2 * d + (d + 1) * vocab_size
        raise ValueError(architecture)
parameter_count = Count()

# %% right: built in torch and counted
import torch
from torch import nn
def parameter_count(architecture, **s):
    if architecture not in {"numpy_block", "prooflm", "gpt"}: raise ValueError("unknown")
    d = s["d_model"]; f = s.get("d_ff", 4 * d)
    with torch.device("meta"):
        block = lambda: [nn.LayerNorm(d), nn.Linear(d, 3 * d), nn.Linear(d, d), nn.LayerNorm(d), nn.Linear(d, f), nn.Linear(f, d)]
        parts = block() if architecture == "numpy_block" else [m for _ in range(s["n_layers"]) for m in block()] + [nn.Embedding(s["vocab_size"], d), nn.LayerNorm(d)]
        if architecture == "gpt": parts += [nn.Embedding(s["context_length"], d), nn.Linear(d, s["vocab_size"])]
    return sum(p.numel() for m in parts for p in m.parameters())

# %% right: a table of lambdas
TABLE = {
    "numpy_block": lambda d_model, num_heads, d_ff: 4 * d_model**2 + 2 * d_model * d_ff + 9 * d_model + d_ff,
    "prooflm": lambda vocab_size, context_length, n_layers, d_model, n_heads, d_ff: vocab_size * d_model + n_layers * TABLE["numpy_block"](d_model, n_heads, d_ff) + 2 * d_model,
    "gpt": lambda vocab_size, context_length, n_layers, d_model, n_heads: TABLE["prooflm"](vocab_size, context_length, n_layers, d_model, n_heads, 4 * d_model) + d_model * (context_length + vocab_size) + vocab_size,
}
def parameter_count(architecture, **sizes):
    try:
        return TABLE[architecture](**sizes)
    except KeyError:
        raise ValueError("unknown architecture") from None

# %% wrong: head width squared for each head
def parameter_count(architecture, **s):
    d = s["d_model"]; h = s.get("num_heads", s.get("n_heads")); f = s.get("d_ff", 4 * d)
    block = 4 * h * (d // h) ** 2 + 4 * d + 2 * d * f + f + d + 4 * d
    if architecture == "numpy_block": return block
    if architecture not in ("prooflm", "gpt"): raise ValueError
    return s["vocab_size"] * d + s["n_layers"] * block + 2 * d + (s["context_length"] * d + (d + 1) * s["vocab_size"] if architecture == "gpt" else 0)

# %% wrong: final norm in every layer
def parameter_count(architecture, **s):
    d = s["d_model"]; f = s.get("d_ff", 4 * d); block = 4 * d * d + 4 * d + 2 * d * f + f + d + 4 * d
    if architecture == "numpy_block": return block
    if architecture not in ("prooflm", "gpt"): raise ValueError
    return s["vocab_size"] * d + s["n_layers"] * (block + 2 * d) + (s["context_length"] * d + (d + 1) * s["vocab_size"] if architecture == "gpt" else 0)

# %% wrong: mask counted
def parameter_count(architecture, **s):
    d = s["d_model"]; f = s.get("d_ff", 4 * d); block = 4 * d * d + 4 * d + 2 * d * f + f + d + 4 * d
    if architecture == "numpy_block": return block
    if architecture not in ("prooflm", "gpt"): raise ValueError
    return s["vocab_size"] * d + s["n_layers"] * block + 2 * d + (s["context_length"] * d + (d + 1) * s["vocab_size"] + s["context_length"] ** 2 if architecture == "gpt" else 0)

# %% wrong: KeyError for the unknown
def parameter_count(architecture, **s):
    d = s["d_model"]; f = s.get("d_ff", 4 * d); block = 4 * d * d + 4 * d + 2 * d * f + f + d + 4 * d
    return {"numpy_block": block, "prooflm": s.get("vocab_size", 0) * d + s.get("n_layers", 0) * block + 2 * d, "gpt": s.get("vocab_size", 0) * (2 * d + 1) + s.get("context_length", 0) * d + s.get("n_layers", 0) * block + 2 * d}[architecture]

# %% wrong: prefix of a name taken
def parameter_count(architecture, **s):
    d = s["d_model"]; f = s.get("d_ff", 4 * d); block = 4 * d * d + 4 * d + 2 * d * f + f + d + 4 * d
    if architecture.startswith("numpy"): return block
    if not architecture.lower().startswith(("proof", "gpt")): raise ValueError
    return s.get("vocab_size", 0) * d + s.get("n_layers", 0) * block + 2 * d + (s.get("context_length", 0) * d + (d + 1) * s.get("vocab_size", 0) if architecture == "gpt" else 0)

# %% wrong: a string
def parameter_count(architecture, **s):
    d = s["d_model"]; f = s.get("d_ff", 4 * d); block = 4 * d * d + 4 * d + 2 * d * f + f + d + 4 * d
    if architecture == "numpy_block": return f"{block:,}"
    if architecture not in ("prooflm", "gpt"): raise ValueError
    return s["vocab_size"] * d + s["n_layers"] * block + 2 * d + (s["context_length"] * d + (d + 1) * s["vocab_size"] if architecture == "gpt" else 0)

# %% wrong: head bias for prooflm
def parameter_count(architecture, **s):
    d = s["d_model"]; f = s.get("d_ff", 4 * d); block = 4 * d * d + 4 * d + 2 * d * f + f + d + 4 * d
    if architecture == "numpy_block": return block
    if architecture not in ("prooflm", "gpt"): raise ValueError
    return s["vocab_size"] * (d + 1) + s["n_layers"] * block + 2 * d + (s["context_length"] * d + d * s["vocab_size"] if architecture == "gpt" else 0)

# %% wrong: width of three d in the MLP of gpt
def parameter_count(architecture, **s):
    d = s["d_model"]; f = s.get("d_ff", 3 * d); block = 4 * d * d + 4 * d + 2 * d * f + f + d + 4 * d
    if architecture == "numpy_block": return block
    if architecture not in ("prooflm", "gpt"): raise ValueError
    return s["vocab_size"] * d + s["n_layers"] * block + 2 * d + (s["context_length"] * d + (d + 1) * s["vocab_size"] if architecture == "gpt" else 0)

# %% right: a sum over shapes in a comprehension
#-     block = 4 * d * d + 4 * d + 2 * d * d_ff + d_ff + d + 4 * d
#+     shapes = [(d, d), (d,)] * 4 + [(d, d_ff), (d_ff,), (d_ff, d), (d,)] + [(d,)] * 4
#+     block = sum(math.prod(shape) for shape in shapes)

# %% wrong: a factor four for the MLP of prooflm
#-     d_ff = 4 * d if architecture == "gpt" else sizes["d_ff"]
#+     d_ff = sizes["d_ff"] if architecture == "numpy_block" else 4 * d

# %% wrong: one norm a block -> its two norms
#-     block = 4 * d * d + 4 * d + 2 * d * d_ff + d_ff + d + 4 * d
#+     block = 4 * d * d + 4 * d + 2 * d * d_ff + d_ff + d + 2 * d

# %% wrong: projections of every head counted at full width
#-     block = 4 * d * d + 4 * d + 2 * d * d_ff + d_ff + d + 4 * d
#+     heads = sizes.get("num_heads") or sizes["n_heads"]
#+     block = (3 * heads + 1) * d * d + 4 * d + 2 * d * d_ff + d_ff + d + 4 * d

# %% wrong: rounded to thousands
#-     return total
#+     return round(total, -3)
