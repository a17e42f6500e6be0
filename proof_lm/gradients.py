"""Gradients in NumPy: the backward pass of every part of a decoder block, and checks by finite differences.

A backward function takes the forward's inputs and `upstream`, the gradient of a scalar loss with respect to
the forward's output, in that output's shape. It returns the gradient with respect to every input, in the
order and shapes of the inputs.
Axes: T time, S key time, d model width, h heads, d_h head width, d_ff feed-forward width, V vocabulary.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from proof_lm.attention import causal_attention, merge_heads, multi_head_attention, row_softmax, split_heads
from proof_lm.block import gelu, layer_norm

Gradients = tuple[NDArray, ...]


def output_projection_loss_and_grad(
    context: NDArray, output_projection: NDArray, upstream: NDArray
) -> tuple[float, NDArray]:
    """Loss sum(output * upstream), output = context @ output_projection; gradient context^T upstream.

    context (T, d_in), output_projection (d_in, d_out), upstream (T, d_out) -> loss, gradient (d_in, d_out).
    """
    loss = float(np.sum((context @ output_projection) * upstream))
    return loss, context.T @ upstream


def finite_difference_gradient(
    loss_fn: Callable[[NDArray], float], parameter: ArrayLike, epsilon: float
) -> NDArray[np.float64]:
    """Central difference (loss(p + epsilon) - loss(p - epsilon)) / (2 epsilon) for every entry p.

    loss_fn takes an array of the parameter's shape and returns a number. It gets float64 copies with one
    entry moved; the parameter itself never changes. The error is O(epsilon^2) of truncation and
    O(1e-16 |loss| / epsilon) of rounding.
    Raises ValueError unless epsilon is positive and finite.
    """
    if not 0 < epsilon < np.inf:
        raise ValueError(f"epsilon must be positive and finite, got {epsilon}")
    parameter = np.asarray(parameter, dtype=np.float64)
    gradient = np.zeros_like(parameter)
    for index in np.ndindex(parameter.shape):
        step = np.zeros_like(parameter)
        step[index] = epsilon
        gradient[index] = (loss_fn(parameter + step) - loss_fn(parameter - step)) / (2 * epsilon)
    return gradient


def gradient_check(
    loss_fn: Callable[[NDArray], float],
    parameter: ArrayLike,
    analytic_grad: ArrayLike,
    epsilon: float,
    tolerance: float,
) -> bool:
    """Whether |analytic - numeric| <= tolerance * (|numeric| + 0.01) in every entry.

    numeric is `finite_difference_gradient`. The 0.01 is room for rounding where a gradient is near zero, so
    scale the loss to gradients of order one. False for another shape, and for NaN or infinity on either side.
    Raises ValueError for a parameter without entries (nothing would be checked) and for a bad epsilon.
    """
    if np.size(parameter) == 0:
        raise ValueError("parameter has no entries, so there is nothing to check")
    numeric = finite_difference_gradient(loss_fn, parameter, epsilon)
    if np.shape(analytic_grad) != numeric.shape or not np.isfinite(numeric).all():
        return False
    return np.allclose(analytic_grad, numeric, rtol=tolerance, atol=0.01 * tolerance)


def directional_gradient_check(
    loss_fn: Callable[[NDArray], float],
    parameter: ArrayLike,
    analytic_grad: ArrayLike,
    epsilon: float,
    tolerance: float,
    rng: np.random.Generator,
    directions: int = 4,
) -> bool:
    """Whether the slope of the loss along random unit directions u is <analytic_grad, u>.

    It costs two losses a direction, whatever the size n of the parameter. An error e of the gradient g goes
    unseen only if |<e, u>| <= tolerance * (|g| + 0.01) / sqrt(n) for every u, while |<e, u>| is typically
    |e| / sqrt(n).
    Refuses and returns False as `gradient_check` does; ValueError for directions < 1.
    """
    if np.size(parameter) == 0:
        raise ValueError("parameter has no entries, so there is nothing to check")
    if directions < 1:
        raise ValueError(f"directions must be at least 1, got {directions}")
    if not 0 < epsilon < np.inf:
        raise ValueError(f"epsilon must be positive and finite, got {epsilon}")
    parameter, analytic_grad = np.asarray(parameter, dtype=np.float64), np.asarray(analytic_grad)
    if analytic_grad.shape != parameter.shape or not np.isfinite(analytic_grad).all():
        return False
    allowed = epsilon * tolerance * (np.linalg.norm(analytic_grad) + 0.01) / parameter.size**0.5
    for _ in range(directions):
        step = rng.uniform(-1, 1, parameter.shape)  # misses no more than normal entries, is drawn faster
        step *= epsilon / np.linalg.norm(step)
        change = (loss_fn(parameter + step) - loss_fn(parameter - step)) / 2
        if not abs(change - np.vdot(analytic_grad, step)) <= allowed:  # NaN fails
            return False
    return True


def linear_backward(values: NDArray, weight: NDArray, upstream: NDArray) -> Gradients:
    """Backward of values @ weight: upstream W^T, and values^T upstream summed over all positions.

    values (..., d_in), weight (d_in, d_out), upstream (..., d_out) -> d_values, d_weight.
    """
    positions = values.reshape(-1, values.shape[-1])
    return upstream @ weight.T, positions.T @ upstream.reshape(-1, upstream.shape[-1])


def softmax_backward(weights: NDArray, upstream: NDArray) -> NDArray:
    """Backward of row_softmax, from its result: weights * (upstream - sum(weights * upstream)) row by row.

    weights, upstream (..., S) -> gradient of the scores (..., S). Each of its rows sums to zero, and it is
    zero wherever a weight is, as behind a mask.
    """
    return weights * (upstream - np.sum(weights * upstream, axis=-1, keepdims=True))


def attention_backward(query: NDArray, key: NDArray, value: NDArray, upstream: NDArray) -> Gradients:
    """Backward of causal_attention's first result.

    query, key (..., T, d_h), value (..., T, d_v), upstream (..., T, d_v) -> d_query, d_key, d_value.
    """
    scale = query.shape[-1] ** -0.5
    _, weights = causal_attention(query, key, value)  # (..., T, T)
    d_weights = upstream @ value.swapaxes(-2, -1)
    d_scores = scale * softmax_backward(weights, d_weights)
    return d_scores @ key, d_scores.swapaxes(-2, -1) @ query, weights.swapaxes(-2, -1) @ upstream


def multi_head_attention_backward(
    hidden: NDArray, wq: NDArray, wk: NDArray, wv: NDArray, wo: NDArray, heads: int, upstream: NDArray
) -> Gradients:
    """Backward of multi_head_attention's first result.

    hidden, upstream (..., T, d); wq, wk, wv, wo (d, d) -> d_hidden, d_wq, d_wk, d_wv, d_wo.
    Raises ValueError if heads does not divide d.
    """
    _, _, merged = multi_head_attention(hidden, wq, wk, wv, wo, heads)
    d_merged, d_wo = linear_backward(merged, wo, upstream)
    query, key, value = (split_heads(hidden @ weight, heads) for weight in (wq, wk, wv))  # (..., h, T, d_h)
    d_heads = attention_backward(query, key, value, split_heads(d_merged, heads))
    d_projected = [merge_heads(gradient) for gradient in d_heads]  # d_query, d_key, d_value, (..., T, d) each
    pairs = zip((wq, wk, wv), d_projected, strict=True)
    d_hiddens, d_weights = zip(*(linear_backward(hidden, weight, d) for weight, d in pairs), strict=True)
    return sum(d_hiddens), *d_weights, d_wo


def layer_norm_backward(values: NDArray, gamma: NDArray, epsilon: float, upstream: NDArray) -> Gradients:
    """Backward of layer_norm: (g - mean(g) - n mean(g n)) / sigma with g = upstream * gamma.

    n are the normalised values, sigma is the root of variance + epsilon, means run over the last axis.
    values, upstream (..., d), gamma (d,) -> d_values (..., d), d_gamma (d,), d_beta (d,).
    """
    centred = values - values.mean(axis=-1, keepdims=True)
    deviation = np.sqrt(np.mean(centred**2, axis=-1, keepdims=True) + epsilon)
    normalised = centred / deviation
    g = upstream * gamma
    along = np.mean(g * normalised, axis=-1, keepdims=True)
    d_values = (g - g.mean(axis=-1, keepdims=True) - along * normalised) / deviation
    positions = tuple(range(values.ndim - 1))
    return d_values, np.sum(upstream * normalised, axis=positions), np.sum(upstream, axis=positions)


def gelu_backward(values: NDArray, upstream: NDArray) -> NDArray:
    """Backward of gelu (tanh form), elementwise: upstream * (P + x P'), P(x) = (1 + tanh u(x)) / 2."""
    tanh = np.tanh(np.sqrt(2 / np.pi) * (values + 0.044715 * values**3))
    slope = np.sqrt(2 / np.pi) * (1 + 3 * 0.044715 * values**2)
    return upstream * 0.5 * (1 + tanh + values * (1 - tanh**2) * slope)


def feed_forward_backward(
    values: NDArray, w1: NDArray, b1: NDArray, w2: NDArray, b2: NDArray, upstream: NDArray
) -> Gradients:
    """Backward of feed_forward. values, upstream (..., d) -> d_values, d_w1, d_b1, d_w2, d_b2."""
    before = values @ w1 + b1  # (..., d_ff)
    d_after, d_w2 = linear_backward(gelu(before), w2, upstream)
    d_before = gelu_backward(before, d_after)
    d_values, d_w1 = linear_backward(values, w1, d_before)
    positions = tuple(range(values.ndim - 1))
    return d_values, d_w1, d_before.sum(axis=positions), d_w2, upstream.sum(axis=positions)


def attention_sublayer_backward(
    values: NDArray, attention_weights: tuple, heads: int, upstream: NDArray
) -> tuple[NDArray, Gradients]:
    """Backward of values + attention(norm(values)), the first half of decoder_block.

    values, upstream (..., T, d), weights (gamma1, beta1, wq, wk, wv, wo) -> d_values, gradients of the weights.
    """
    gamma, beta, *projections = attention_weights
    normed = layer_norm(values, gamma, beta)
    d_normed, *d_projections = multi_head_attention_backward(normed, *projections, heads, upstream)
    d_values, *d_norm = layer_norm_backward(values, gamma, 1e-5, d_normed)
    return upstream + d_values, (*d_norm, *d_projections)  # the residual path passes upstream on unchanged


def feed_forward_sublayer_backward(
    values: NDArray, feed_forward_weights: tuple, upstream: NDArray
) -> tuple[NDArray, Gradients]:
    """Backward of values + feed_forward(norm(values)), the second half of decoder_block.

    values, upstream (..., d), weights (gamma2, beta2, w1, b1, w2, b2) -> d_values, gradients of the weights.
    """
    gamma, beta, *layers = feed_forward_weights
    d_normed, *d_layers = feed_forward_backward(layer_norm(values, gamma, beta), *layers, upstream)
    d_values, *d_norm = layer_norm_backward(values, gamma, 1e-5, d_normed)
    return upstream + d_values, (*d_norm, *d_layers)


def decoder_block_backward(
    values: NDArray, attention_weights: tuple, feed_forward_weights: tuple, heads: int, upstream: NDArray
) -> tuple[NDArray, Gradients, Gradients]:
    """Backward of decoder_block.

    values, upstream (T, d), leading axes allowed; the tuples are those of decoder_block. Returns d_values,
    d_attention_weights and d_feed_forward_weights, every gradient at its parameter's place in the tuple.
    Raises ValueError if heads does not divide d.
    """
    gamma1, beta1, *projections = attention_weights
    middle = values + multi_head_attention(layer_norm(values, gamma1, beta1), *projections, heads)[0]
    d_middle, d_feed_forward = feed_forward_sublayer_backward(middle, feed_forward_weights, upstream)
    d_values, d_attention = attention_sublayer_backward(values, attention_weights, heads, d_middle)
    return d_values, d_attention, d_feed_forward


def cross_entropy_backward(logits: NDArray, labels: ArrayLike, loss_mask: ArrayLike) -> NDArray:
    """Backward of masked_cross_entropy: (softmax(logits) - one_hot(labels)) / kept, or zero if not kept.

    logits (..., V), labels (...) int, loss_mask (...) bool -> (..., V). kept counts the True of loss_mask.
    """
    kept = np.asarray(loss_mask, dtype=bool)
    gradient = np.zeros_like(logits)
    difference = row_softmax(logits[kept])  # (kept, V)
    difference[np.arange(len(difference)), np.asarray(labels)[kept]] -= 1
    gradient[kept] = difference / max(len(difference), 1)
    return gradient
