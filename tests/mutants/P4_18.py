# %% setup
import numpy as np

# %% right: one entry at a time
def finite_difference_gradient(loss_fn, parameter, epsilon):
    gradient = np.zeros_like(parameter)
    for index in np.ndindex(parameter.shape):
        up, down = parameter.copy(), parameter.copy()
        up[index] += epsilon
        down[index] -= epsilon
        gradient[index] = (loss_fn(up) - loss_fn(down)) / (2 * epsilon)
    return gradient

# %% right: in place with the entry put back
def finite_difference_gradient(loss_fn, parameter, epsilon):
    work = np.array(parameter, dtype=np.float64)
    gradient = np.empty(work.shape)
    for index in np.ndindex(work.shape):
        old = work[index]
        work[index] = old + epsilon
        up = loss_fn(work)
        work[index] = old - epsilon
        down = loss_fn(work)
        work[index] = old
        gradient[index] = float(up - down) / (2 * epsilon)
    return gradient

# %% right: flat identity steps
def finite_difference_gradient(loss_fn, parameter, epsilon):
    steps = epsilon * np.eye(parameter.size).reshape(-1, *parameter.shape)
    slopes = [(loss_fn(parameter + s) - loss_fn(parameter - s)) / epsilon / 2 for s in steps]
    return np.array(slopes).reshape(parameter.shape)

# %% right: iterator over indices
def finite_difference_gradient(loss_fn, parameter, epsilon):
    result = {}
    it = np.nditer(parameter, flags=["multi_index"])
    while not it.finished:
        e = np.zeros(parameter.shape)
        e[it.multi_index] = epsilon
        result[it.multi_index] = (loss_fn(parameter + e) - loss_fn(parameter - e)) / (2 * epsilon)
        it.iternext()
    gradient = np.zeros(parameter.shape)
    for index, slope in result.items():
        gradient[index] = slope
    return gradient

# %% right: the caller's array moved and put back
def finite_difference_gradient(loss_fn, parameter, epsilon):
    gradient = np.zeros(parameter.shape)
    for index in np.ndindex(parameter.shape):
        old = parameter[index]
        parameter[index] = old + epsilon
        up = float(loss_fn(parameter))
        parameter[index] = old - epsilon
        down = float(loss_fn(parameter))
        parameter[index] = old
        gradient[index] = (up - down) / (2 * epsilon)
    return gradient

# %% wrong: forward difference -> forward only
def finite_difference_gradient(loss_fn, parameter, epsilon):
    gradient, base = np.zeros_like(parameter), loss_fn(parameter)
    for index in np.ndindex(parameter.shape):
        up = parameter.copy()
        up[index] += epsilon
        gradient[index] = (loss_fn(up) - base) / epsilon
    return gradient

# %% wrong: backward difference -> one step back only
def finite_difference_gradient(loss_fn, parameter, epsilon):
    gradient, base = np.zeros_like(parameter), loss_fn(parameter)
    for index in np.ndindex(parameter.shape):
        down = parameter.copy()
        down[index] -= epsilon
        gradient[index] = (base - loss_fn(down)) / epsilon
    return gradient

# %% wrong: divided by epsilon alone -> twice too large
def finite_difference_gradient(loss_fn, parameter, epsilon):
    gradient = np.zeros_like(parameter)
    for index in np.ndindex(parameter.shape):
        step = np.zeros_like(parameter)
        step[index] = epsilon
        gradient[index] = (loss_fn(parameter + step) - loss_fn(parameter - step)) / epsilon
    return gradient

# %% wrong: precedence, / 2 * epsilon -> 2 epsilon needs brackets
def finite_difference_gradient(loss_fn, parameter, epsilon):
    gradient = np.zeros_like(parameter)
    for index in np.ndindex(parameter.shape):
        step = np.zeros_like(parameter)
        step[index] = epsilon
        gradient[index] = (loss_fn(parameter + step) - loss_fn(parameter - step)) / 2 * epsilon
    return gradient

# %% wrong: not divided -> not divided
def finite_difference_gradient(loss_fn, parameter, epsilon):
    gradient = np.zeros_like(parameter)
    for index in np.ndindex(parameter.shape):
        step = np.zeros_like(parameter)
        step[index] = epsilon
        gradient[index] = loss_fn(parameter + step) - loss_fn(parameter - step)
    return gradient

# %% wrong: sign -> sign is wrong
def finite_difference_gradient(loss_fn, parameter, epsilon):
    gradient = np.zeros_like(parameter)
    for index in np.ndindex(parameter.shape):
        step = np.zeros_like(parameter)
        step[index] = epsilon
        gradient[index] = (loss_fn(parameter - step) - loss_fn(parameter + step)) / (2 * epsilon)
    return gradient

# %% wrong: epsilon ignored -> epsilon is not used
def finite_difference_gradient(loss_fn, parameter, epsilon):
    epsilon, gradient = 1e-5, np.zeros_like(parameter)
    for index in np.ndindex(parameter.shape):
        step = np.zeros_like(parameter)
        step[index] = epsilon
        gradient[index] = (loss_fn(parameter + step) - loss_fn(parameter - step)) / (2 * epsilon)
    return gradient

# %% wrong: all entries at once -> all entries move at once
def finite_difference_gradient(loss_fn, parameter, epsilon):
    slope = (loss_fn(parameter + epsilon) - loss_fn(parameter - epsilon)) / (2 * epsilon)
    return np.ones_like(parameter) * slope

# %% wrong: flat result -> gradient is flat
def finite_difference_gradient(loss_fn, parameter, epsilon):
    slopes = []
    for index in np.ndindex(parameter.shape):
        step = np.zeros_like(parameter)
        step[index] = epsilon
        slopes.append((loss_fn(parameter + step) - loss_fn(parameter - step)) / (2 * epsilon))
    return np.array(slopes)

# %% wrong: steps add up, the entry is not put back -> is not put back
def finite_difference_gradient(loss_fn, parameter, epsilon):
    work, gradient = parameter.copy(), np.zeros_like(parameter)
    for index in np.ndindex(work.shape):
        work[index] += epsilon
        up = loss_fn(work)
        work[index] -= 2 * epsilon
        gradient[index] = (up - loss_fn(work)) / (2 * epsilon)
    return gradient

# %% wrong: a flattened view -> any memory layout
def finite_difference_gradient(loss_fn, parameter, epsilon):
    flat = parameter.reshape(-1)
    slopes = np.zeros(flat.size)
    for i in range(flat.size):
        old = flat[i]
        flat[i] = old + epsilon
        up = float(loss_fn(parameter))
        flat[i] = old - epsilon
        slopes[i] = (up - float(loss_fn(parameter))) / (2 * epsilon)
        flat[i] = old
    return slopes.reshape(parameter.shape)

# %% wrong: the caller's array stays changed -> changed in place
def finite_difference_gradient(loss_fn, parameter, epsilon):
    gradient = np.zeros(parameter.shape)
    for index in np.ndindex(parameter.shape):
        parameter[index] += epsilon
        up = float(loss_fn(parameter))
        parameter[index] -= 2 * epsilon
        gradient[index] = (up - float(loss_fn(parameter))) / (2 * epsilon)
        parameter[index] += epsilon
    parameter += 1e-9
    return gradient

# %% wrong: first axis only
def finite_difference_gradient(loss_fn, parameter, epsilon):
    gradient = np.zeros_like(parameter)
    for i in range(len(parameter)):
        step = np.zeros_like(parameter)
        step[i] = epsilon
        gradient[i] = (loss_fn(parameter + step) - loss_fn(parameter - step)) / (2 * epsilon)
    return gradient

# %% right: a class over flat copies
class Slope:
    def __call__(self, loss_fn, parameter, epsilon):
        p = np.array(parameter, dtype=float); flat = p.ravel(); out = np.empty(flat.size)
        for i in range(flat.size):
            kept = flat[i]
            flat[i] = kept + epsilon; up = float(loss_fn(p))
            flat[i] = kept - epsilon; down = float(loss_fn(p))
            flat[i] = kept; out[i] = (up - down) / (2 * epsilon)
        return out.reshape(p.shape)
finite_difference_gradient = Slope()

# %% right: vectorize over indices, nested list
def finite_difference_gradient(loss_fn, parameter, epsilon):
    def at(i):
        e = np.zeros(parameter.size); e[i] = epsilon; e = e.reshape(parameter.shape)
        return float((loss_fn(parameter + e) - loss_fn(parameter - e)) / (2 * epsilon))
    return np.reshape([at(i) for i in range(parameter.size)], parameter.shape).tolist()

# %% right: distance measured after rounding
def finite_difference_gradient(loss_fn, parameter, epsilon):
    g = np.zeros(parameter.shape)
    for i in np.ndindex(*parameter.shape):
        hi, lo = np.array(parameter), np.array(parameter); hi[i] += epsilon; lo[i] -= epsilon
        g[i] = (loss_fn(hi) - loss_fn(lo)) / (hi[i] - lo[i])
    return g

# %% wrong: Richardson, more than was asked
def finite_difference_gradient(loss_fn, parameter, epsilon):
    g = np.zeros(parameter.shape)
    for i in np.ndindex(*parameter.shape):
        e = np.zeros(parameter.shape); e[i] = epsilon
        d = lambda s: (loss_fn(parameter + s * e) - loss_fn(parameter - s * e)) / (2 * s * epsilon)
        g[i] = (4 * d(0.5) - d(1)) / 3
    return g

# %% wrong: relative step
def finite_difference_gradient(loss_fn, parameter, epsilon):
    g = np.zeros(parameter.shape)
    for i in np.ndindex(*parameter.shape):
        h = epsilon * abs(parameter[i]); e = np.zeros(parameter.shape); e[i] = h
        g[i] = (loss_fn(parameter + e) - loss_fn(parameter - e)) / (2 * h)
    return g

# %% wrong: epsilon halved -> moves by half of epsilon
def finite_difference_gradient(loss_fn, parameter, epsilon):
    g = np.zeros(parameter.shape)
    for i in np.ndindex(*parameter.shape):
        e = np.zeros(parameter.shape); e[i] = epsilon / 2
        g[i] = (loss_fn(parameter + e) - loss_fn(parameter - e)) / epsilon
    return g

# %% wrong: float32
def finite_difference_gradient(loss_fn, parameter, epsilon):
    g = np.zeros(parameter.shape, dtype=np.float32); p = parameter.astype(np.float32)
    for i in np.ndindex(*parameter.shape):
        e = np.zeros(parameter.shape, dtype=np.float32); e[i] = epsilon
        g[i] = (np.float32(loss_fn(p + e)) - np.float32(loss_fn(p - e))) / (2 * epsilon)
    return g

# %% wrong: last entry left at zero
def finite_difference_gradient(loss_fn, parameter, epsilon):
    g = np.zeros(parameter.shape)
    for i in list(np.ndindex(*parameter.shape))[:-1]:
        e = np.zeros(parameter.shape); e[i] = epsilon
        g[i] = (loss_fn(parameter + e) - loss_fn(parameter - e)) / (2 * epsilon)
    return g

# %% wrong: complex of absolute values
def finite_difference_gradient(loss_fn, parameter, epsilon):
    g = np.zeros(parameter.shape)
    for i in np.ndindex(*parameter.shape):
        e = np.zeros(parameter.shape); e[i] = epsilon
        g[i] = abs(loss_fn(parameter + e) - loss_fn(parameter - e)) / (2 * epsilon)
    return g

# %% wrong: Fortran order of the result
def finite_difference_gradient(loss_fn, parameter, epsilon):
    out = []
    for i in np.ndindex(*parameter.shape):
        e = np.zeros(parameter.shape); e[i] = epsilon
        out.append((loss_fn(parameter + e) - loss_fn(parameter - e)) / (2 * epsilon))
    return np.array(out, dtype=float).reshape(parameter.shape, order="F")

# %% wrong: second difference
def finite_difference_gradient(loss_fn, parameter, epsilon):
    g = np.zeros(parameter.shape)
    for i in np.ndindex(*parameter.shape):
        e = np.zeros(parameter.shape); e[i] = epsilon
        g[i] = (loss_fn(parameter + e) - 2 * loss_fn(parameter) + loss_fn(parameter - e)) / epsilon**2
    return g

# %% wrong: divided by the parameter
def finite_difference_gradient(loss_fn, parameter, epsilon):
    g = np.zeros(parameter.shape)
    for i in np.ndindex(*parameter.shape):
        e = np.zeros(parameter.shape); e[i] = epsilon
        g[i] = (loss_fn(parameter + e) - loss_fn(parameter - e)) / (2 * epsilon) * np.sign(parameter[i])
    return g

# %% wrong: a copy, the entry never put back -> is not put back
def finite_difference_gradient(loss_fn, parameter, epsilon):
    p = np.array(parameter)
    grad = np.zeros_like(p)
    for i in np.ndindex(p.shape):
        p[i] += epsilon
        up = loss_fn(p)
        p[i] -= 2 * epsilon
        grad[i] = (up - loss_fn(p)) / (2 * epsilon)
    return grad

# %% wrong: the caller's array, never put back -> is not put back
def finite_difference_gradient(loss_fn, parameter, epsilon):
    grad = np.zeros(parameter.shape)
    for i in np.ndindex(*parameter.shape):
        parameter[i] += epsilon
        up = loss_fn(parameter)
        parameter[i] -= 2 * epsilon
        down = loss_fn(parameter)
        grad[i] = (up - down) / (2 * epsilon)
    return grad

# %% wrong: missing bracket -> 2 epsilon needs brackets
def finite_difference_gradient(loss_fn, parameter, epsilon):
    grad = np.zeros_like(parameter)
    for i in np.ndindex(parameter.shape):
        e = np.zeros_like(parameter)
        e[i] = epsilon
        grad[i] = (loss_fn(parameter + e) - loss_fn(parameter - e)) / 2 * epsilon
    return grad

# %% wrong: reshape taken for a view -> nothing moved
def finite_difference_gradient(loss_fn, parameter, epsilon):
    grad = np.zeros(parameter.size)
    flat = parameter.reshape(-1)
    for i in range(flat.size):
        old = flat[i]
        flat[i] = old + epsilon
        up = loss_fn(parameter)
        flat[i] = old - epsilon
        down = loss_fn(parameter)
        flat[i] = old
        grad[i] = (up - down) / (2 * epsilon)
    return grad.reshape(parameter.shape)

# %% wrong: half a step to each side -> moves by half of epsilon
def finite_difference_gradient(loss_fn, parameter, epsilon):
    grad = np.zeros_like(parameter)
    for i in np.ndindex(parameter.shape):
        e = np.zeros_like(parameter)
        e[i] = epsilon / 2
        grad[i] = (loss_fn(parameter + e) - loss_fn(parameter - e)) / epsilon
    return grad

# %% wrong: alias taken for a copy -> one step
def finite_difference_gradient(loss_fn, parameter, epsilon):
    grad = np.zeros_like(parameter)
    base = loss_fn(parameter)
    for i in np.ndindex(parameter.shape):
        moved = parameter.copy()
        moved[i] = moved[i] + epsilon
        grad[i] = (loss_fn(moved) - base) / epsilon
    return grad

# %% right: old value kept and put back
def finite_difference_gradient(loss_fn, parameter, epsilon):
    p = np.array(parameter, dtype=np.float64)
    grad = np.empty(p.shape)
    for i in np.ndindex(p.shape):
        old = p[i]
        p[i] = old + epsilon
        up = loss_fn(p)
        p[i] = old - epsilon
        down = loss_fn(p)
        p[i] = old
        grad[i] = (up - down) / (2 * epsilon)
    return grad

# %% right: identity reshaped into steps
def finite_difference_gradient(loss_fn, parameter, epsilon):
    steps = epsilon * np.eye(parameter.size).reshape(-1, *parameter.shape)
    slopes = [(loss_fn(parameter + s) - loss_fn(parameter - s)) / 2 / epsilon for s in steps]
    return np.array(slopes, dtype=float).reshape(parameter.shape)

# %% right: a function of one number
def finite_difference_gradient(loss_fn, parameter, epsilon):
    def along(i, t):
        moved = np.array(parameter)
        moved[np.unravel_index(i, moved.shape)] += t
        return float(loss_fn(moved))
    values = [(along(i, epsilon) - along(i, -epsilon)) / (epsilon + epsilon) for i in range(np.size(parameter))]
    return np.reshape(values, np.shape(parameter)).tolist()
