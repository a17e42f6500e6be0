# %% setup
import copy
import math

import numpy as np

# %% right: comprehensions
def adamw_step(parameters, gradients, state, learning_rate, decayed, beta1=0.9, beta2=0.95, epsilon=1e-8, weight_decay=0.1):
    t = state["step"] + 1
    first = {n: beta1 * state["first"][n] + (1 - beta1) * g for n, g in gradients.items()}
    second = {n: beta2 * state["second"][n] + (1 - beta2) * g * g for n, g in gradients.items()}
    new = {}
    for n, p in parameters.items():
        update = (first[n] / (1 - beta1**t)) / (np.sqrt(second[n] / (1 - beta2**t)) + epsilon)
        if n in decayed:
            update = update + weight_decay * p
        new[n] = p - learning_rate * update
    return new, {"step": t, "first": first, "second": second}

# %% right: deep copies changed in place
def adamw_step(parameters, gradients, state, learning_rate, decayed, beta1=0.9, beta2=0.95, epsilon=1e-8, weight_decay=0.1):
    parameters, state = copy.deepcopy(parameters), copy.deepcopy(state)
    state["step"] += 1
    for name, p in parameters.items():
        g = np.asarray(gradients[name])
        m = state["first"][name] = state["first"][name] * beta1 + g * (1 - beta1)
        v = state["second"][name] = state["second"][name] * beta2 + g**2 * (1 - beta2)
        if name in decayed:
            p = p * (1 - learning_rate * weight_decay)
        m_hat = m / (1 - math.pow(beta1, state["step"]))
        v_hat = v / (1 - math.pow(beta2, state["step"]))
        parameters[name] = p - learning_rate * m_hat / (v_hat**0.5 + epsilon)
    return [parameters, state]

# %% right: corrections folded into the step size, as in the paper's footnote
def adamw_step(parameters, gradients, state, learning_rate, decayed, beta1=0.9, beta2=0.95, epsilon=1e-8, weight_decay=0.1):
    step = state["step"] + 1
    root = np.sqrt(1 - beta2**step)
    size = learning_rate * root / (1 - beta1**step)
    new, first, second = {}, {}, {}
    for name in sorted(parameters):
        m, v, g = state["first"][name], state["second"][name], gradients[name]
        first[name], second[name] = m + (1 - beta1) * (g - m), v + (1 - beta2) * (g**2 - v)
        keep = 1 - learning_rate * weight_decay * (name in set(decayed))
        new[name] = keep * parameters[name] - size * first[name] / (np.sqrt(second[name]) + epsilon * root)
    return new, dict(step=step, first=first, second=second)

# %% right: helper for one array, float32 in between
def one(p, g, m, v, t, lr, b1, b2, eps, wd):
    m = np.float32(b1) * m + np.float32(1 - b1) * g
    v = b2 * v + (1 - b2) * np.square(g)
    return p - lr * (wd * p + m / (1 - b1**t) / (eps + np.sqrt(v / (1 - b2**t)))), m, v

def adamw_step(parameters, gradients, state, learning_rate, decayed, beta1=0.9, beta2=0.95, epsilon=1e-8, weight_decay=0.1):
    t = state["step"] + 1
    out = {n: one(p, gradients[n], state["first"][n], state["second"][n], t, learning_rate, beta1, beta2, epsilon,
                  weight_decay if n in decayed else 0) for n, p in parameters.items()}
    return ({n: o[0] for n, o in out.items()},
            {"step": np.int64(t), "first": {n: o[1] for n, o in out.items()}, "second": {n: o[2] for n, o in out.items()}})

# %% right: decay first, then the step
def adamw_step(parameters, gradients, state, learning_rate, decayed, beta1=0.9, beta2=0.95, epsilon=1e-8, weight_decay=0.1):
    first, second, new = dict(state["first"]), dict(state["second"]), dict(parameters)
    count = 1 + state["step"]
    for name in decayed:
        new[name] = new[name] - learning_rate * weight_decay * new[name]
    for name, gradient in gradients.items():
        first[name] = beta1 * first[name] + (1 - beta1) * gradient
        second[name] = beta2 * second[name] + (1 - beta2) * gradient**2
        new[name] = new[name] - learning_rate * (first[name] / (1 - beta1**count)) / (
            np.sqrt(second[name] / (1 - beta2**count)) + epsilon)
    return new, {"step": count, "first": first, "second": second}

# %% wrong: no bias correction -> no bias correction
def adamw_step(parameters, gradients, state, learning_rate, decayed, beta1=0.9, beta2=0.95, epsilon=1e-8, weight_decay=0.1):
    t = state["step"] + 1
    first = {n: beta1 * state["first"][n] + (1 - beta1) * g for n, g in gradients.items()}
    second = {n: beta2 * state["second"][n] + (1 - beta2) * g * g for n, g in gradients.items()}
    new = {n: p - learning_rate * (first[n] / (np.sqrt(second[n]) + epsilon) + weight_decay * p * (n in decayed))
           for n, p in parameters.items()}
    return new, {"step": t, "first": first, "second": second}

# %% wrong: first moment corrected only -> second moment is not corrected
def adamw_step(parameters, gradients, state, learning_rate, decayed, beta1=0.9, beta2=0.95, epsilon=1e-8, weight_decay=0.1):
    t = state["step"] + 1
    first = {n: beta1 * state["first"][n] + (1 - beta1) * g for n, g in gradients.items()}
    second = {n: beta2 * state["second"][n] + (1 - beta2) * g * g for n, g in gradients.items()}
    new = {n: p - learning_rate * (first[n] / (1 - beta1**t) / (np.sqrt(second[n]) + epsilon) + weight_decay * p * (n in decayed))
           for n, p in parameters.items()}
    return new, {"step": t, "first": first, "second": second}

# %% wrong: exponent not advanced -> a step behind
def adamw_step(parameters, gradients, state, learning_rate, decayed, beta1=0.9, beta2=0.95, epsilon=1e-8, weight_decay=0.1):
    t = max(state["step"], 1)
    first = {n: beta1 * state["first"][n] + (1 - beta1) * g for n, g in gradients.items()}
    second = {n: beta2 * state["second"][n] + (1 - beta2) * g * g for n, g in gradients.items()}
    new = {n: p - learning_rate * (first[n] / (1 - beta1**t) / (np.sqrt(second[n] / (1 - beta2**t)) + epsilon)
                                   + weight_decay * p * (n in decayed)) for n, p in parameters.items()}
    return new, {"step": state["step"] + 1, "first": first, "second": second}

# %% wrong: exponent a step ahead -> a step ahead
def adamw_step(parameters, gradients, state, learning_rate, decayed, beta1=0.9, beta2=0.95, epsilon=1e-8, weight_decay=0.1):
    t = state["step"] + 1
    first = {n: beta1 * state["first"][n] + (1 - beta1) * g for n, g in gradients.items()}
    second = {n: beta2 * state["second"][n] + (1 - beta2) * g * g for n, g in gradients.items()}
    new = {n: p - learning_rate * (first[n] / (1 - beta1**(t + 1)) / (np.sqrt(second[n] / (1 - beta2**(t + 1))) + epsilon)
                                   + weight_decay * p * (n in decayed)) for n, p in parameters.items()}
    return new, {"step": t, "first": first, "second": second}

# %% wrong: decay in the gradient -> went into the gradient
def adamw_step(parameters, gradients, state, learning_rate, decayed, beta1=0.9, beta2=0.95, epsilon=1e-8, weight_decay=0.1):
    t = state["step"] + 1
    gradients = {n: g + weight_decay * parameters[n] * (n in decayed) for n, g in gradients.items()}
    first = {n: beta1 * state["first"][n] + (1 - beta1) * g for n, g in gradients.items()}
    second = {n: beta2 * state["second"][n] + (1 - beta2) * g * g for n, g in gradients.items()}
    new = {n: p - learning_rate * (first[n] / (1 - beta1**t) / (np.sqrt(second[n] / (1 - beta2**t)) + epsilon))
           for n, p in parameters.items()}
    return new, {"step": t, "first": first, "second": second}

# %% wrong: everything decays -> everything decays
def adamw_step(parameters, gradients, state, learning_rate, decayed, beta1=0.9, beta2=0.95, epsilon=1e-8, weight_decay=0.1):
    t = state["step"] + 1
    first = {n: beta1 * state["first"][n] + (1 - beta1) * g for n, g in gradients.items()}
    second = {n: beta2 * state["second"][n] + (1 - beta2) * g * g for n, g in gradients.items()}
    new = {n: p - learning_rate * (first[n] / (1 - beta1**t) / (np.sqrt(second[n] / (1 - beta2**t)) + epsilon)
                                   + weight_decay * p) for n, p in parameters.items()}
    return new, {"step": t, "first": first, "second": second}

# %% wrong: matrices decay whatever was asked
def adamw_step(parameters, gradients, state, learning_rate, decayed, beta1=0.9, beta2=0.95, epsilon=1e-8, weight_decay=0.1):
    t = state["step"] + 1
    first = {n: beta1 * state["first"][n] + (1 - beta1) * g for n, g in gradients.items()}
    second = {n: beta2 * state["second"][n] + (1 - beta2) * g * g for n, g in gradients.items()}
    new = {n: p - learning_rate * (first[n] / (1 - beta1**t) / (np.sqrt(second[n] / (1 - beta2**t)) + epsilon)
                                   + weight_decay * p * (np.ndim(p) > 1)) for n, p in parameters.items()}
    return new, {"step": t, "first": first, "second": second}

# %% wrong: no decay -> nothing decays
def adamw_step(parameters, gradients, state, learning_rate, decayed, beta1=0.9, beta2=0.95, epsilon=1e-8, weight_decay=0.1):
    t = state["step"] + 1
    first = {n: beta1 * state["first"][n] + (1 - beta1) * g for n, g in gradients.items()}
    second = {n: beta2 * state["second"][n] + (1 - beta2) * g * g for n, g in gradients.items()}
    new = {n: p - learning_rate * first[n] / (1 - beta1**t) / (np.sqrt(second[n] / (1 - beta2**t)) + epsilon)
           for n, p in parameters.items()}
    return new, {"step": t, "first": first, "second": second}

# %% wrong: decay without the rate -> not scaled by the learning rate
def adamw_step(parameters, gradients, state, learning_rate, decayed, beta1=0.9, beta2=0.95, epsilon=1e-8, weight_decay=0.1):
    t = state["step"] + 1
    first = {n: beta1 * state["first"][n] + (1 - beta1) * g for n, g in gradients.items()}
    second = {n: beta2 * state["second"][n] + (1 - beta2) * g * g for n, g in gradients.items()}
    new = {n: p - learning_rate * first[n] / (1 - beta1**t) / (np.sqrt(second[n] / (1 - beta2**t)) + epsilon)
           - weight_decay * p * (n in decayed) for n, p in parameters.items()}
    return new, {"step": t, "first": first, "second": second}

# %% wrong: decay of the moved parameter -> had moved before it decayed
def adamw_step(parameters, gradients, state, learning_rate, decayed, beta1=0.9, beta2=0.95, epsilon=1e-8, weight_decay=0.1):
    t = state["step"] + 1
    first = {n: beta1 * state["first"][n] + (1 - beta1) * g for n, g in gradients.items()}
    second = {n: beta2 * state["second"][n] + (1 - beta2) * g * g for n, g in gradients.items()}
    new = {n: p - learning_rate * first[n] / (1 - beta1**t) / (np.sqrt(second[n] / (1 - beta2**t)) + epsilon)
           for n, p in parameters.items()}
    for n in decayed:
        new[n] = new[n] * (1 - learning_rate * weight_decay)
    return new, {"step": t, "first": first, "second": second}

# %% wrong: epsilon under the root -> epsilon stands under the root
def adamw_step(parameters, gradients, state, learning_rate, decayed, beta1=0.9, beta2=0.95, epsilon=1e-8, weight_decay=0.1):
    t = state["step"] + 1
    first = {n: beta1 * state["first"][n] + (1 - beta1) * g for n, g in gradients.items()}
    second = {n: beta2 * state["second"][n] + (1 - beta2) * g * g for n, g in gradients.items()}
    new = {n: p - learning_rate * (first[n] / (1 - beta1**t) / np.sqrt(second[n] / (1 - beta2**t) + epsilon)
                                   + weight_decay * p * (n in decayed)) for n, p in parameters.items()}
    return new, {"step": t, "first": first, "second": second}

# %% wrong: epsilon before the correction
def adamw_step(parameters, gradients, state, learning_rate, decayed, beta1=0.9, beta2=0.95, epsilon=1e-8, weight_decay=0.1):
    t = state["step"] + 1
    first = {n: beta1 * state["first"][n] + (1 - beta1) * g for n, g in gradients.items()}
    second = {n: beta2 * state["second"][n] + (1 - beta2) * g * g for n, g in gradients.items()}
    size = learning_rate * np.sqrt(1 - beta2**t) / (1 - beta1**t)
    new = {n: p - size * first[n] / (np.sqrt(second[n]) + epsilon) - learning_rate * weight_decay * p * (n in decayed)
           for n, p in parameters.items()}
    return new, {"step": t, "first": first, "second": second}

# %% wrong: root forgotten -> root is missing
def adamw_step(parameters, gradients, state, learning_rate, decayed, beta1=0.9, beta2=0.95, epsilon=1e-8, weight_decay=0.1):
    t = state["step"] + 1
    first = {n: beta1 * state["first"][n] + (1 - beta1) * g for n, g in gradients.items()}
    second = {n: beta2 * state["second"][n] + (1 - beta2) * g * g for n, g in gradients.items()}
    new = {n: p - learning_rate * (first[n] / (1 - beta1**t) / (second[n] / (1 - beta2**t) + epsilon)
                                   + weight_decay * p * (n in decayed)) for n, p in parameters.items()}
    return new, {"step": t, "first": first, "second": second}

# %% wrong: betas swapped -> swapped
def adamw_step(parameters, gradients, state, learning_rate, decayed, beta1=0.9, beta2=0.95, epsilon=1e-8, weight_decay=0.1):
    t = state["step"] + 1
    first = {n: beta2 * state["first"][n] + (1 - beta2) * g for n, g in gradients.items()}
    second = {n: beta1 * state["second"][n] + (1 - beta1) * g * g for n, g in gradients.items()}
    new = {n: p - learning_rate * (first[n] / (1 - beta2**t) / (np.sqrt(second[n] / (1 - beta1**t)) + epsilon)
                                   + weight_decay * p * (n in decayed)) for n, p in parameters.items()}
    return new, {"step": t, "first": first, "second": second}

# %% wrong: corrected moments kept -> corrected moments were kept
def adamw_step(parameters, gradients, state, learning_rate, decayed, beta1=0.9, beta2=0.95, epsilon=1e-8, weight_decay=0.1):
    t = state["step"] + 1
    first = {n: (beta1 * state["first"][n] + (1 - beta1) * g) / (1 - beta1**t) for n, g in gradients.items()}
    second = {n: (beta2 * state["second"][n] + (1 - beta2) * g * g) / (1 - beta2**t) for n, g in gradients.items()}
    new = {n: p - learning_rate * (first[n] / (np.sqrt(second[n]) + epsilon) + weight_decay * p * (n in decayed))
           for n, p in parameters.items()}
    return new, {"step": t, "first": first, "second": second}

# %% wrong: step not counted -> not counted
def adamw_step(parameters, gradients, state, learning_rate, decayed, beta1=0.9, beta2=0.95, epsilon=1e-8, weight_decay=0.1):
    t = state["step"] + 1
    first = {n: beta1 * state["first"][n] + (1 - beta1) * g for n, g in gradients.items()}
    second = {n: beta2 * state["second"][n] + (1 - beta2) * g * g for n, g in gradients.items()}
    new = {n: p - learning_rate * (first[n] / (1 - beta1**t) / (np.sqrt(second[n] / (1 - beta2**t)) + epsilon)
                                   + weight_decay * p * (n in decayed)) for n, p in parameters.items()}
    return new, {"step": state["step"], "first": first, "second": second}

# %% wrong: in place
def adamw_step(parameters, gradients, state, learning_rate, decayed, beta1=0.9, beta2=0.95, epsilon=1e-8, weight_decay=0.1):
    state["step"] += 1
    t = state["step"]
    for n, g in gradients.items():
        state["first"][n] = beta1 * state["first"][n] + (1 - beta1) * g
        state["second"][n] = beta2 * state["second"][n] + (1 - beta2) * g * g
        parameters[n] = parameters[n] - learning_rate * (
            state["first"][n] / (1 - beta1**t) / (np.sqrt(state["second"][n] / (1 - beta2**t)) + epsilon)
            + weight_decay * parameters[n] * (n in decayed))
    return parameters, state

# %% wrong: arrays of a shallow copy changed
def adamw_step(parameters, gradients, state, learning_rate, decayed, beta1=0.9, beta2=0.95, epsilon=1e-8, weight_decay=0.1):
    parameters, t = dict(parameters), state["step"] + 1
    first, second = dict(state["first"]), dict(state["second"])
    for n, g in gradients.items():
        first[n] *= beta1
        first[n] += (1 - beta1) * g
        second[n] *= beta2
        second[n] += (1 - beta2) * g * g
        parameters[n] = parameters[n] - learning_rate * (
            first[n] / (1 - beta1**t) / (np.sqrt(second[n] / (1 - beta2**t)) + epsilon)
            + weight_decay * parameters[n] * (n in decayed))
    return parameters, {"step": t, "first": first, "second": second}

# %% wrong: moments in a variable of the function's own
MOMENTS = {}

def adamw_step(parameters, gradients, state, learning_rate, decayed, beta1=0.9, beta2=0.95, epsilon=1e-8, weight_decay=0.1):
    t = state["step"] + 1
    if t == 1:
        MOMENTS.clear()
    new = {}
    for n, g in gradients.items():
        m, v = MOMENTS.get(n, (0 * g, 0 * g))
        m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
        MOMENTS[n] = m, v
        new[n] = parameters[n] - learning_rate * (m / (1 - beta1**t) / (np.sqrt(v / (1 - beta2**t)) + epsilon)
                                                  + weight_decay * parameters[n] * (n in decayed))
    return new, {"step": t, "first": {n: m for n, (m, v) in MOMENTS.items()}, "second": {n: v for n, (m, v) in MOMENTS.items()}}

# %% wrong: signs only
def adamw_step(parameters, gradients, state, learning_rate, decayed, beta1=0.9, beta2=0.95, epsilon=1e-8, weight_decay=0.1):
    t = state["step"] + 1
    first = {n: beta1 * state["first"][n] + (1 - beta1) * g for n, g in gradients.items()}
    second = {n: beta2 * state["second"][n] + (1 - beta2) * g * g for n, g in gradients.items()}
    new = {n: p - learning_rate * (np.sign(first[n]) + weight_decay * p * (n in decayed)) for n, p in parameters.items()}
    return new, {"step": t, "first": first, "second": second}

# %% wrong: gradient instead of the first moment
def adamw_step(parameters, gradients, state, learning_rate, decayed, beta1=0.9, beta2=0.95, epsilon=1e-8, weight_decay=0.1):
    t = state["step"] + 1
    first = {n: beta1 * state["first"][n] + (1 - beta1) * g for n, g in gradients.items()}
    second = {n: beta2 * state["second"][n] + (1 - beta2) * g * g for n, g in gradients.items()}
    new = {n: p - learning_rate * (gradients[n] / (np.sqrt(second[n] / (1 - beta2**t)) + epsilon)
                                   + weight_decay * p * (n in decayed)) for n, p in parameters.items()}
    return new, {"step": t, "first": first, "second": second}

# %% wrong: second moment of magnitudes -> averages magnitudes
def adamw_step(parameters, gradients, state, learning_rate, decayed, beta1=0.9, beta2=0.95, epsilon=1e-8, weight_decay=0.1):
    t = state["step"] + 1
    first = {n: beta1 * state["first"][n] + (1 - beta1) * g for n, g in gradients.items()}
    second = {n: beta2 * state["second"][n] + (1 - beta2) * np.abs(g) for n, g in gradients.items()}
    new = {n: p - learning_rate * (first[n] / (1 - beta1**t) / (np.sqrt(second[n] / (1 - beta2**t)) + epsilon)
                                   + weight_decay * p * (n in decayed)) for n, p in parameters.items()}
    return new, {"step": t, "first": first, "second": second}

# %% wrong: uphill -> goes uphill
def adamw_step(parameters, gradients, state, learning_rate, decayed, beta1=0.9, beta2=0.95, epsilon=1e-8, weight_decay=0.1):
    t = state["step"] + 1
    first = {n: beta1 * state["first"][n] + (1 - beta1) * g for n, g in gradients.items()}
    second = {n: beta2 * state["second"][n] + (1 - beta2) * g * g for n, g in gradients.items()}
    new = {n: p + learning_rate * first[n] / (1 - beta1**t) / (np.sqrt(second[n] / (1 - beta2**t)) + epsilon)
           - learning_rate * weight_decay * p * (n in decayed) for n, p in parameters.items()}
    return new, {"step": t, "first": first, "second": second}

# %% wrong: beta2 of 0.999 as in most libraries
def adamw_step(parameters, gradients, state, learning_rate, decayed, beta1=0.9, beta2=0.999, epsilon=1e-8, weight_decay=0.1):
    t = state["step"] + 1
    first = {n: beta1 * state["first"][n] + (1 - beta1) * g for n, g in gradients.items()}
    second = {n: beta2 * state["second"][n] + (1 - beta2) * g * g for n, g in gradients.items()}
    new = {n: p - learning_rate * (first[n] / (1 - beta1**t) / (np.sqrt(second[n] / (1 - beta2**t)) + epsilon)
                                   + weight_decay * p * (n in decayed)) for n, p in parameters.items()}
    return new, {"step": t, "first": first, "second": second}

# %% wrong: decay 0.01 as in most libraries
def adamw_step(parameters, gradients, state, learning_rate, decayed, beta1=0.9, beta2=0.95, epsilon=1e-8, weight_decay=0.01):
    t = state["step"] + 1
    first = {n: beta1 * state["first"][n] + (1 - beta1) * g for n, g in gradients.items()}
    second = {n: beta2 * state["second"][n] + (1 - beta2) * g * g for n, g in gradients.items()}
    new = {n: p - learning_rate * (first[n] / (1 - beta1**t) / (np.sqrt(second[n] / (1 - beta2**t)) + epsilon)
                                   + weight_decay * p * (n in decayed)) for n, p in parameters.items()}
    return new, {"step": t, "first": first, "second": second}

# %% wrong: decay by prefix of the name
def adamw_step(parameters, gradients, state, learning_rate, decayed, beta1=0.9, beta2=0.95, epsilon=1e-8, weight_decay=0.1):
    t = state["step"] + 1
    first = {n: beta1 * state["first"][n] + (1 - beta1) * g for n, g in gradients.items()}
    second = {n: beta2 * state["second"][n] + (1 - beta2) * g * g for n, g in gradients.items()}
    new = {}
    for n, p in parameters.items():
        update = (first[n] / (1 - beta1**t)) / (np.sqrt(second[n] / (1 - beta2**t)) + epsilon)
        if any(n.startswith(d) or d in n for d in decayed):
            update = update + weight_decay * p
        new[n] = p - learning_rate * update
    return new, {"step": t, "first": first, "second": second}

# %% wrong: decay by the name's part
def adamw_step(parameters, gradients, state, learning_rate, decayed, beta1=0.9, beta2=0.95, epsilon=1e-8, weight_decay=0.1):
    t = state["step"] + 1
    first = {n: beta1 * state["first"][n] + (1 - beta1) * g for n, g in gradients.items()}
    second = {n: beta2 * state["second"][n] + (1 - beta2) * g * g for n, g in gradients.items()}
    new = {}
    for n, p in parameters.items():
        update = (first[n] / (1 - beta1**t)) / (np.sqrt(second[n] / (1 - beta2**t)) + epsilon)
        if n in ' '.join(decayed):
            update = update + weight_decay * p
        new[n] = p - learning_rate * update
    return new, {"step": t, "first": first, "second": second}

# %% wrong: nesterov
def adamw_step(parameters, gradients, state, learning_rate, decayed, beta1=0.9, beta2=0.95, epsilon=1e-8, weight_decay=0.1):
    t = state["step"] + 1
    first = {n: beta1 * state["first"][n] + (1 - beta1) * g for n, g in gradients.items()}
    second = {n: beta2 * state["second"][n] + (1 - beta2) * g * g for n, g in gradients.items()}
    new = {}
    for n, p in parameters.items():
        update = ((beta1 * first[n] + (1 - beta1) * gradients[n]) / (1 - beta1**t)) / (np.sqrt(second[n] / (1 - beta2**t)) + epsilon)
        if n in decayed:
            update = update + weight_decay * p
        new[n] = p - learning_rate * update
    return new, {"step": t, "first": first, "second": second}

# %% wrong: the step counted twice
def adamw_step(parameters, gradients, state, learning_rate, decayed, beta1=0.9, beta2=0.95, epsilon=1e-8, weight_decay=0.1):
    t = state["step"] + 1
    new, first, second = {}, {}, {}
    for n, p in parameters.items():
        t += 1
        first[n] = beta1 * state["first"][n] + (1 - beta1) * gradients[n]
        second[n] = beta2 * state["second"][n] + (1 - beta2) * gradients[n] ** 2
        step = first[n] / (1 - beta1**t) / (np.sqrt(second[n] / (1 - beta2**t)) + epsilon)
        new[n] = p - learning_rate * (step + (weight_decay * p if n in decayed else 0))
    return new, {"step": state["step"] + 1, "first": first, "second": second}

# %% wrong: the decayed ones only are updated
def adamw_step(parameters, gradients, state, learning_rate, decayed, beta1=0.9, beta2=0.95, epsilon=1e-8, weight_decay=0.1):
    t = state["step"] + 1
    new, first, second = dict(parameters), dict(state["first"]), dict(state["second"])
    for n in decayed:
        first[n] = beta1 * state["first"][n] + (1 - beta1) * gradients[n]
        second[n] = beta2 * state["second"][n] + (1 - beta2) * gradients[n] ** 2
        step = first[n] / (1 - beta1**t) / (np.sqrt(second[n] / (1 - beta2**t)) + epsilon)
        new[n] = parameters[n] - learning_rate * (step + weight_decay * parameters[n])
    return new, {"step": t, "first": first, "second": second}
