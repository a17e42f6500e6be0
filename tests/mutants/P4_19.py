# %% setup
import numpy as np


def numeric_gradient(loss_fn, parameter, epsilon):
    gradient = np.zeros_like(parameter)
    for index in np.ndindex(parameter.shape):
        step = np.zeros_like(parameter)
        step[index] = epsilon
        gradient[index] = (loss_fn(parameter + step) - loss_fn(parameter - step)) / (2 * epsilon)
    return gradient

# %% right: allclose after the shapes
def gradient_check(loss_fn, parameter, analytic_grad, epsilon, tolerance):
    numeric = numeric_gradient(loss_fn, parameter, epsilon)
    if np.shape(analytic_grad) != numeric.shape:
        return False
    return np.allclose(analytic_grad, numeric, rtol=tolerance, atol=tolerance)

# %% right: largest absolute error
def gradient_check(loss_fn, parameter, analytic_grad, epsilon, tolerance):
    numeric = numeric_gradient(loss_fn, parameter, epsilon)
    if analytic_grad.shape != parameter.shape:
        return False
    return np.max(np.abs(numeric - analytic_grad)) <= tolerance

# %% right: relative error with a floor
def gradient_check(loss_fn, parameter, analytic_grad, epsilon, tolerance):
    numeric = numeric_gradient(loss_fn, parameter, epsilon)
    if analytic_grad.shape != numeric.shape or not np.isfinite(analytic_grad).all():
        return False
    error = np.abs(numeric - analytic_grad) / np.maximum(1e-8, np.abs(numeric) + np.abs(analytic_grad))
    return bool((error < tolerance).all())

# %% right: norm of the difference
def gradient_check(loss_fn, parameter, analytic_grad, epsilon, tolerance):
    numeric = numeric_gradient(loss_fn, parameter, epsilon)
    same_shape = analytic_grad.shape == numeric.shape
    return same_shape and np.linalg.norm(numeric - analytic_grad) < tolerance * (1e-6 + np.linalg.norm(numeric))

# %% right: an early return from the loop
def gradient_check(loss_fn, parameter, analytic_grad, epsilon, tolerance):
    if analytic_grad.shape != parameter.shape:
        return False
    for index in np.ndindex(parameter.shape):
        step = np.zeros(parameter.shape)
        step[index] = epsilon
        slope = (loss_fn(parameter + step) - loss_fn(parameter - step)) / (2 * epsilon)
        if not abs(slope - analytic_grad[index]) <= tolerance:
            return False
    return True

# %% wrong: always true -> the answer is True whatever the gradient
def gradient_check(loss_fn, parameter, analytic_grad, epsilon, tolerance):
    return True

# %% wrong: always false -> the answer is False whatever the gradient
def gradient_check(loss_fn, parameter, analytic_grad, epsilon, tolerance):
    return False

# %% wrong: mean error
def gradient_check(loss_fn, parameter, analytic_grad, epsilon, tolerance):
    numeric = numeric_gradient(loss_fn, parameter, epsilon)
    return abs(np.mean(numeric - analytic_grad)) < tolerance

# %% wrong: no absolute value -> the difference keeps its sign
def gradient_check(loss_fn, parameter, analytic_grad, epsilon, tolerance):
    numeric = numeric_gradient(loss_fn, parameter, epsilon)
    if analytic_grad.shape != numeric.shape:
        return False
    return bool((numeric - analytic_grad < tolerance).all())

# %% wrong: first entry only -> every single entry counts
def gradient_check(loss_fn, parameter, analytic_grad, epsilon, tolerance):
    numeric = numeric_gradient(loss_fn, parameter, epsilon)
    return np.isclose(numeric.flat[0], analytic_grad.flat[0], rtol=tolerance)

# %% wrong: any entry close -> one right entry is enough for True
def gradient_check(loss_fn, parameter, analytic_grad, epsilon, tolerance):
    numeric = numeric_gradient(loss_fn, parameter, epsilon)
    return numeric.shape == analytic_grad.shape and bool(np.isclose(numeric, analytic_grad, rtol=tolerance).any())

# %% wrong: broadcast shapes -> compare shapes first
def gradient_check(loss_fn, parameter, analytic_grad, epsilon, tolerance):
    return np.allclose(numeric_gradient(loss_fn, parameter, epsilon), analytic_grad, rtol=tolerance, atol=tolerance)

# %% wrong: NaN passes -> NaN
def gradient_check(loss_fn, parameter, analytic_grad, epsilon, tolerance):
    if analytic_grad.shape != parameter.shape:
        return False
    error = np.abs(numeric_gradient(loss_fn, parameter, epsilon) - analytic_grad)
    return not (error > tolerance).any()

# %% wrong: zero divided by zero -> dividing zero by zero
def gradient_check(loss_fn, parameter, analytic_grad, epsilon, tolerance):
    if analytic_grad.shape != parameter.shape:
        return False
    numeric = numeric_gradient(loss_fn, parameter, epsilon)
    with np.errstate(all="ignore"):
        return bool((np.abs(numeric - analytic_grad) / np.abs(numeric) < tolerance).all())

# %% wrong: own tolerance -> take epsilon and tolerance
def gradient_check(loss_fn, parameter, analytic_grad, epsilon, tolerance):
    if analytic_grad.shape != parameter.shape:
        return False
    return np.allclose(numeric_gradient(loss_fn, parameter, epsilon), analytic_grad, rtol=1e-4, atol=1e-4)

# %% wrong: own epsilon -> take epsilon and tolerance
def gradient_check(loss_fn, parameter, analytic_grad, epsilon, tolerance):
    if analytic_grad.shape != parameter.shape:
        return False
    return np.allclose(numeric_gradient(loss_fn, parameter, 1e-6), analytic_grad, rtol=tolerance, atol=tolerance)

# %% wrong: sizes compared, signs not -> sizes are compared without signs
def gradient_check(loss_fn, parameter, analytic_grad, epsilon, tolerance):
    if analytic_grad.shape != parameter.shape:
        return False
    numeric = numeric_gradient(loss_fn, parameter, epsilon)
    return np.allclose(np.abs(numeric), np.abs(analytic_grad), rtol=tolerance, atol=tolerance)

# %% wrong: directions compared, lengths not
def gradient_check(loss_fn, parameter, analytic_grad, epsilon, tolerance):
    if analytic_grad.shape != parameter.shape:
        return False
    a, b = numeric_gradient(loss_fn, parameter, epsilon).ravel(), analytic_grad.ravel()
    with np.errstate(all="ignore"):
        return bool(1 - a @ b / np.linalg.norm(a) / np.linalg.norm(b) < tolerance)

# %% wrong: prints instead of returning -> None came
def gradient_check(loss_fn, parameter, analytic_grad, epsilon, tolerance):
    print(np.abs(numeric_gradient(loss_fn, parameter, epsilon) - analytic_grad.ravel()[0]).max() < tolerance)

# %% wrong: the error itself
def gradient_check(loss_fn, parameter, analytic_grad, epsilon, tolerance):
    return float(np.abs(numeric_gradient(loss_fn, parameter, epsilon).ravel() - analytic_grad.ravel()).max())

# %% wrong: asserts -> raised
def gradient_check(loss_fn, parameter, analytic_grad, epsilon, tolerance):
    numeric = numeric_gradient(loss_fn, parameter, epsilon)
    np.testing.assert_allclose(analytic_grad, numeric, rtol=tolerance)
    return True

# %% wrong: a copy is not made, the parameter drifts -> changed in place
def gradient_check(loss_fn, parameter, analytic_grad, epsilon, tolerance):
    if analytic_grad.shape != parameter.shape:
        return False
    numeric = numeric_gradient(loss_fn, parameter, epsilon)
    parameter += epsilon
    return np.allclose(analytic_grad, numeric, rtol=tolerance, atol=tolerance)

# %% right: entry by entry with isclose, np.bool_
def gradient_check(loss_fn, parameter, analytic_grad, epsilon, tolerance):
    n = numeric_gradient(loss_fn, parameter, epsilon)
    return n.shape == analytic_grad.shape and np.isclose(analytic_grad, n, rtol=tolerance, atol=tolerance).all()

# %% right: symmetric relative error
def gradient_check(loss_fn, parameter, analytic_grad, epsilon, tolerance):
    n = numeric_gradient(loss_fn, parameter, epsilon)
    if n.shape != np.shape(analytic_grad) or not np.isfinite(analytic_grad).all(): return False
    return bool((np.abs(n - analytic_grad) <= tolerance * np.maximum(1, np.abs(n) + np.abs(analytic_grad))).all())

# %% right: assert_allclose caught, zero or one
def gradient_check(loss_fn, parameter, analytic_grad, epsilon, tolerance):
    try:
        n = numeric_gradient(loss_fn, parameter, epsilon)
        assert n.shape == analytic_grad.shape and np.isfinite(analytic_grad).all()
        np.testing.assert_allclose(analytic_grad, n, rtol=tolerance, atol=tolerance)
    except AssertionError:
        return 0
    return 1

# %% wrong: mean of absolute errors -> errors are averaged
def gradient_check(loss_fn, parameter, analytic_grad, epsilon, tolerance):
    n = numeric_gradient(loss_fn, parameter, epsilon)
    return n.shape == analytic_grad.shape and np.abs(n - analytic_grad).mean() <= tolerance

# %% wrong: sums compared -> sums of the gradients
def gradient_check(loss_fn, parameter, analytic_grad, epsilon, tolerance):
    n = numeric_gradient(loss_fn, parameter, epsilon)
    return n.shape == analytic_grad.shape and bool(np.isclose(n.sum(), analytic_grad.sum(), rtol=tolerance, atol=tolerance))

# %% wrong: lengths compared -> lengths of the gradients
def gradient_check(loss_fn, parameter, analytic_grad, epsilon, tolerance):
    n = numeric_gradient(loss_fn, parameter, epsilon)
    return n.shape == analytic_grad.shape and bool(abs(np.linalg.norm(n) - np.linalg.norm(analytic_grad)) <= tolerance * (1 + np.linalg.norm(n)))

# %% wrong: median error
def gradient_check(loss_fn, parameter, analytic_grad, epsilon, tolerance):
    n = numeric_gradient(loss_fn, parameter, epsilon)
    return n.shape == analytic_grad.shape and bool(np.isfinite(analytic_grad).all()) and bool(np.median(np.abs(n - analytic_grad)) <= tolerance)

# %% wrong: sorted entries -> without signs
def gradient_check(loss_fn, parameter, analytic_grad, epsilon, tolerance):
    n = numeric_gradient(loss_fn, parameter, epsilon)
    return n.shape == analytic_grad.shape and bool(np.allclose(np.sort(np.abs(n), None), np.sort(np.abs(analytic_grad), None), tolerance, tolerance))

# %% wrong: size compared, not shape -> shapes are broadcast
def gradient_check(loss_fn, parameter, analytic_grad, epsilon, tolerance):
    n = numeric_gradient(loss_fn, parameter, epsilon)
    return n.size == analytic_grad.size and bool(np.allclose(n.ravel(), analytic_grad.ravel(), tolerance, tolerance))

# %% wrong: tolerance squared
def gradient_check(loss_fn, parameter, analytic_grad, epsilon, tolerance):
    n = numeric_gradient(loss_fn, parameter, epsilon)
    return n.shape == analytic_grad.shape and bool((np.abs(n - analytic_grad) <= np.sqrt(tolerance) * np.abs(n) + tolerance).all())

# %% wrong: relative to the largest entry plus one hundred
def gradient_check(loss_fn, parameter, analytic_grad, epsilon, tolerance):
    n = numeric_gradient(loss_fn, parameter, epsilon)
    return n.shape == analytic_grad.shape and bool(np.abs(n - analytic_grad).max() <= 1000 * tolerance)

# %% wrong: first row only
def gradient_check(loss_fn, parameter, analytic_grad, epsilon, tolerance):
    n = numeric_gradient(loss_fn, parameter, epsilon)
    return n.shape == analytic_grad.shape and bool(np.allclose(n[:1], analytic_grad[:1], tolerance, tolerance))

# %% wrong: NaN replaced by the right number
def gradient_check(loss_fn, parameter, analytic_grad, epsilon, tolerance):
    n = numeric_gradient(loss_fn, parameter, epsilon)
    if n.shape != analytic_grad.shape: return False
    a = np.where(np.isfinite(analytic_grad), analytic_grad, n)
    return bool(np.allclose(a, n, tolerance, tolerance))

# %% wrong: one random direction
def gradient_check(loss_fn, parameter, analytic_grad, epsilon, tolerance):
    if parameter.shape != analytic_grad.shape or not np.isfinite(analytic_grad).all(): return False
    v = np.ones(parameter.shape)
    n = (loss_fn(parameter + epsilon * v) - loss_fn(parameter - epsilon * v)) / (2 * epsilon)
    return bool(abs(n - (v * analytic_grad).sum()) <= tolerance * (1 + abs(n)))

# %% wrong: any in place of all -> one right entry is enough
def gradient_check(loss_fn, parameter, analytic_grad, epsilon, tolerance):
    numeric = numeric_gradient(loss_fn, parameter, epsilon)
    if np.shape(analytic_grad) != numeric.shape:
        return False
    return bool(np.any(np.abs(analytic_grad - numeric) < tolerance))

# %% wrong: difference without its absolute value -> keeps its sign
def gradient_check(loss_fn, parameter, analytic_grad, epsilon, tolerance):
    numeric = numeric_gradient(loss_fn, parameter, epsilon)
    if np.shape(analytic_grad) != numeric.shape:
        return False
    return bool(np.all(analytic_grad - numeric < tolerance))

# %% wrong: largest difference compared, NaN passes -> ask that all entries are close
def gradient_check(loss_fn, parameter, analytic_grad, epsilon, tolerance):
    numeric = numeric_gradient(loss_fn, parameter, epsilon)
    if np.shape(analytic_grad) != numeric.shape:
        return False
    return not np.max(np.abs(analytic_grad - numeric)) > tolerance

# %% wrong: pure relative error -> a gradient that can be zero
def gradient_check(loss_fn, parameter, analytic_grad, epsilon, tolerance):
    numeric = numeric_gradient(loss_fn, parameter, epsilon)
    if np.shape(analytic_grad) != numeric.shape:
        return False
    return bool(np.all(np.abs(analytic_grad - numeric) / np.abs(numeric) < tolerance))

# %% wrong: broadcasting allowed -> shapes are broadcast
def gradient_check(loss_fn, parameter, analytic_grad, epsilon, tolerance):
    numeric = numeric_gradient(loss_fn, parameter, epsilon)
    return np.allclose(analytic_grad, numeric, rtol=tolerance, atol=tolerance)

# %% wrong: default tolerances of allclose -> tolerance is not used
def gradient_check(loss_fn, parameter, analytic_grad, epsilon, tolerance):
    numeric = numeric_gradient(loss_fn, parameter, epsilon)
    return np.shape(analytic_grad) == numeric.shape and np.allclose(analytic_grad, numeric)

# %% wrong: a step of its own -> epsilon is not used
def gradient_check(loss_fn, parameter, analytic_grad, epsilon, tolerance):
    numeric = numeric_gradient(loss_fn, parameter, 1e-6)
    return np.shape(analytic_grad) == numeric.shape and np.allclose(analytic_grad, numeric, rtol=tolerance, atol=tolerance)

# %% right: one-sided test of all entries negated
def gradient_check(loss_fn, parameter, analytic_grad, epsilon, tolerance):
    numeric = numeric_gradient(loss_fn, parameter, epsilon)
    if np.shape(analytic_grad) != np.shape(numeric):
        return np.False_
    return np.all(np.abs(np.asarray(analytic_grad) - numeric) <= tolerance)

# %% right: max of a list, finite first
def gradient_check(loss_fn, parameter, analytic_grad, epsilon, tolerance):
    numeric = numeric_gradient(loss_fn, parameter, epsilon)
    g = np.asarray(analytic_grad)
    if g.shape != numeric.shape or not np.isfinite(g).all():
        return False
    return max(abs(a - b) / max(1.0, abs(a), abs(b)) for a, b in zip(g.ravel(), numeric.ravel())) <= tolerance

# %% right: counted
def gradient_check(loss_fn, parameter, analytic_grad, epsilon, tolerance):
    numeric = numeric_gradient(loss_fn, parameter, epsilon)
    if numeric.shape != np.shape(analytic_grad):
        return False
    close = np.abs(analytic_grad - numeric) <= tolerance * (np.abs(numeric) + 1e-2)
    return int(close.sum()) == numeric.size
