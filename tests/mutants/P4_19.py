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

# %% wrong: always true
def gradient_check(loss_fn, parameter, analytic_grad, epsilon, tolerance):
    return True

# %% wrong: always false
def gradient_check(loss_fn, parameter, analytic_grad, epsilon, tolerance):
    return False

# %% wrong: mean error
def gradient_check(loss_fn, parameter, analytic_grad, epsilon, tolerance):
    numeric = numeric_gradient(loss_fn, parameter, epsilon)
    return abs(np.mean(numeric - analytic_grad)) < tolerance

# %% wrong: no absolute value
def gradient_check(loss_fn, parameter, analytic_grad, epsilon, tolerance):
    numeric = numeric_gradient(loss_fn, parameter, epsilon)
    if analytic_grad.shape != numeric.shape:
        return False
    return bool((numeric - analytic_grad < tolerance).all())

# %% wrong: first entry only -> every single entry counts
def gradient_check(loss_fn, parameter, analytic_grad, epsilon, tolerance):
    numeric = numeric_gradient(loss_fn, parameter, epsilon)
    return np.isclose(numeric.flat[0], analytic_grad.flat[0], rtol=tolerance)

# %% wrong: any entry close
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

# %% wrong: sizes compared, signs not
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
