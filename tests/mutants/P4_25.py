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
def parameter_count(architecture, **sizes):
    if architecture not in ("numpy_block", "prooflm", "gpt"):
        raise ValueError(f"architecture: {architecture}")
    d = sizes["d_model"]
    d_ff = 4 * d if architecture == "gpt" else sizes["d_ff"]
    block = 4 * d * d + 2 * d * d_ff + 4 * d
    if architecture == "numpy_block":
        return block
    total = sizes["vocab_size"] * d + sizes["n_layers"] * block + 2 * d
    if architecture == "gpt":
        total += sizes["context_length"] * d + sizes["vocab_size"] * d + sizes["vocab_size"]
    return total

# %% wrong: no attention biases -> 4 d numbers
def parameter_count(architecture, **sizes):
    if architecture not in ("numpy_block", "prooflm", "gpt"):
        raise ValueError(f"architecture: {architecture}")
    d = sizes["d_model"]
    d_ff = 4 * d if architecture == "gpt" else sizes["d_ff"]
    block = 4 * d * d + 2 * d * d_ff + d_ff + d + 4 * d
    if architecture == "numpy_block":
        return block
    total = sizes["vocab_size"] * d + sizes["n_layers"] * block + 2 * d
    if architecture == "gpt":
        total += sizes["context_length"] * d + sizes["vocab_size"] * d + sizes["vocab_size"]
    return total

# %% wrong: no MLP biases -> two biases of the MLP
def parameter_count(architecture, **sizes):
    if architecture not in ("numpy_block", "prooflm", "gpt"):
        raise ValueError(f"architecture: {architecture}")
    d = sizes["d_model"]
    d_ff = 4 * d if architecture == "gpt" else sizes["d_ff"]
    block = 4 * d * d + 4 * d + 2 * d * d_ff + 4 * d
    if architecture == "numpy_block":
        return block
    total = sizes["vocab_size"] * d + sizes["n_layers"] * block + 2 * d
    if architecture == "gpt":
        total += sizes["context_length"] * d + sizes["vocab_size"] * d + sizes["vocab_size"]
    return total

# %% wrong: no norms -> 4 d numbers
def parameter_count(architecture, **sizes):
    if architecture not in ("numpy_block", "prooflm", "gpt"):
        raise ValueError(f"architecture: {architecture}")
    d = sizes["d_model"]
    d_ff = 4 * d if architecture == "gpt" else sizes["d_ff"]
    block = 4 * d * d + 4 * d + 2 * d * d_ff + d_ff + d
    if architecture == "numpy_block":
        return block
    total = sizes["vocab_size"] * d + sizes["n_layers"] * block + 2 * d
    if architecture == "gpt":
        total += sizes["context_length"] * d + sizes["vocab_size"] * d + sizes["vocab_size"]
    return total

# %% wrong: no shifts
def parameter_count(architecture, **sizes):
    if architecture not in ("numpy_block", "prooflm", "gpt"):
        raise ValueError(f"architecture: {architecture}")
    d = sizes["d_model"]
    d_ff = 4 * d if architecture == "gpt" else sizes["d_ff"]
    block = 4 * d * d + 4 * d + 2 * d * d_ff + d_ff + d + 2 * d
    if architecture == "numpy_block":
        return block
    total = sizes["vocab_size"] * d + sizes["n_layers"] * block + 2 * d
    if architecture == "gpt":
        total += sizes["context_length"] * d + sizes["vocab_size"] * d + sizes["vocab_size"]
    return total

# %% wrong: three attention matrices -> output projection is not counted
def parameter_count(architecture, **sizes):
    if architecture not in ("numpy_block", "prooflm", "gpt"):
        raise ValueError(f"architecture: {architecture}")
    d = sizes["d_model"]
    d_ff = 4 * d if architecture == "gpt" else sizes["d_ff"]
    block = 3 * d * d + 4 * d + 2 * d * d_ff + d_ff + d + 4 * d
    if architecture == "numpy_block":
        return block
    total = sizes["vocab_size"] * d + sizes["n_layers"] * block + 2 * d
    if architecture == "gpt":
        total += sizes["context_length"] * d + sizes["vocab_size"] * d + sizes["vocab_size"]
    return total

# %% wrong: one MLP matrix -> one is counted
def parameter_count(architecture, **sizes):
    if architecture not in ("numpy_block", "prooflm", "gpt"):
        raise ValueError(f"architecture: {architecture}")
    d = sizes["d_model"]
    d_ff = 4 * d if architecture == "gpt" else sizes["d_ff"]
    block = 4 * d * d + 4 * d + d * d_ff + d_ff + d + 4 * d
    if architecture == "numpy_block":
        return block
    total = sizes["vocab_size"] * d + sizes["n_layers"] * block + 2 * d
    if architecture == "gpt":
        total += sizes["context_length"] * d + sizes["vocab_size"] * d + sizes["vocab_size"]
    return total

# %% wrong: fused bias of one width
def parameter_count(architecture, **sizes):
    if architecture not in ("numpy_block", "prooflm", "gpt"):
        raise ValueError(f"architecture: {architecture}")
    d = sizes["d_model"]
    d_ff = 4 * d if architecture == "gpt" else sizes["d_ff"]
    block = 4 * d * d + 2 * d + 2 * d * d_ff + d_ff + d + 4 * d
    if architecture == "numpy_block":
        return block
    total = sizes["vocab_size"] * d + sizes["n_layers"] * block + 2 * d
    if architecture == "gpt":
        total += sizes["context_length"] * d + sizes["vocab_size"] * d + sizes["vocab_size"]
    return total

# %% wrong: no final norm -> final norm is not counted
def parameter_count(architecture, **sizes):
    if architecture not in ("numpy_block", "prooflm", "gpt"):
        raise ValueError(f"architecture: {architecture}")
    d = sizes["d_model"]
    d_ff = 4 * d if architecture == "gpt" else sizes["d_ff"]
    block = 4 * d * d + 4 * d + 2 * d * d_ff + d_ff + d + 4 * d
    if architecture == "numpy_block":
        return block
    total = sizes["vocab_size"] * d + sizes["n_layers"] * block
    if architecture == "gpt":
        total += sizes["context_length"] * d + sizes["vocab_size"] * d + sizes["vocab_size"]
    return total

# %% wrong: tied head counted twice -> a tied matrix counts once
def parameter_count(architecture, **sizes):
    if architecture not in ("numpy_block", "prooflm", "gpt"):
        raise ValueError(f"architecture: {architecture}")
    d = sizes["d_model"]
    d_ff = 4 * d if architecture == "gpt" else sizes["d_ff"]
    block = 4 * d * d + 4 * d + 2 * d * d_ff + d_ff + d + 4 * d
    if architecture == "numpy_block":
        return block
    total = sizes["vocab_size"] * d + sizes["n_layers"] * block + 2 * d
    total += sizes["vocab_size"] * d if architecture == "prooflm" else 0
    if architecture == "gpt":
        total += sizes["context_length"] * d + sizes["vocab_size"] * d + sizes["vocab_size"]
    return total

# %% wrong: gpt tied -> embedding and head both count
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
        total += sizes["context_length"] * d + sizes["vocab_size"]
    return total

# %% wrong: no head bias -> head's bias is not counted
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
        total += sizes["context_length"] * d + sizes["vocab_size"] * d
    return total

# %% wrong: no positions -> learned positions are parameters
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
        total += sizes["vocab_size"] * d + sizes["vocab_size"]
    return total

# %% wrong: rotation counted -> rotation has no parameters
def parameter_count(architecture, **sizes):
    if architecture not in ("numpy_block", "prooflm", "gpt"):
        raise ValueError(f"architecture: {architecture}")
    d = sizes["d_model"]
    d_ff = 4 * d if architecture == "gpt" else sizes["d_ff"]
    block = 4 * d * d + 4 * d + 2 * d * d_ff + d_ff + d + 4 * d
    if architecture == "numpy_block":
        return block
    total = sizes["vocab_size"] * d + sizes["n_layers"] * block + 2 * d
    total += sizes["context_length"] * d if architecture == "prooflm" else 0
    if architecture == "gpt":
        total += sizes["context_length"] * d + sizes["vocab_size"] * d + sizes["vocab_size"]
    return total

# %% wrong: one layer -> blocks are counted once
def parameter_count(architecture, **sizes):
    if architecture not in ("numpy_block", "prooflm", "gpt"):
        raise ValueError(f"architecture: {architecture}")
    d = sizes["d_model"]
    d_ff = 4 * d if architecture == "gpt" else sizes["d_ff"]
    block = 4 * d * d + 4 * d + 2 * d * d_ff + d_ff + d + 4 * d
    if architecture == "numpy_block":
        return block
    total = sizes["vocab_size"] * d + block + 2 * d
    if architecture == "gpt":
        total += sizes["context_length"] * d + sizes["vocab_size"] * d + sizes["vocab_size"]
    return total

# %% wrong: rough estimate -> is the estimate
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
        total = 12 * sizes["n_layers"] * d * d + 2 * sizes["vocab_size"] * d
    return total

# %% wrong: a float
def parameter_count(architecture, **sizes):
    if architecture not in ("numpy_block", "prooflm", "gpt"):
        raise ValueError(f"architecture: {architecture}")
    d = sizes["d_model"]
    d_ff = 4 * d if architecture == "gpt" else sizes["d_ff"]
    block = 4 * d * d + 4 * d + 2 * d * d_ff + d_ff + d + 4 * d
    if architecture == "numpy_block":
        return block / 1
    total = sizes["vocab_size"] * d + sizes["n_layers"] * block + 2 * d
    if architecture == "gpt":
        total += sizes["context_length"] * d + sizes["vocab_size"] * d + sizes["vocab_size"]
    return total / 1

# %% wrong: four d for every MLP
def parameter_count(architecture, **sizes):
    if architecture not in ("numpy_block", "prooflm", "gpt"):
        raise ValueError(f"architecture: {architecture}")
    d = sizes["d_model"]
    d_ff = 4 * d
    block = 4 * d * d + 4 * d + 2 * d * d_ff + d_ff + d + 4 * d
    if architecture == "numpy_block":
        return block
    total = sizes["vocab_size"] * d + sizes["n_layers"] * block + 2 * d
    if architecture == "gpt":
        total += sizes["context_length"] * d + sizes["vocab_size"] * d + sizes["vocab_size"]
    return total

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
def parameter_count(architecture, **sizes):
    if architecture not in ("numpy_block", "prooflm", "gpt"):
        return None
    d = sizes["d_model"]
    d_ff = 4 * d if architecture == "gpt" else sizes["d_ff"]
    block = 4 * d * d + 4 * d + 2 * d * d_ff + d_ff + d + 4 * d
    if architecture == "numpy_block":
        return block
    total = sizes["vocab_size"] * d + sizes["n_layers"] * block + 2 * d
    if architecture == "gpt":
        total += sizes["context_length"] * d + sizes["vocab_size"] * d + sizes["vocab_size"]
    return total

# %% wrong: a known example by heart
def parameter_count(architecture, **sizes):
    return 3152384
