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
