"""What goes wrong in a backward pass: each mistake as code that makes it, and the sentence that names it.

They are compared with a student's answers in order, so the commonest come first.
"""

from collections.abc import Callable

import numpy as np

from proof_lm import gradients
from proof_lm.attention import multi_head_attention
from proof_lm.block import layer_norm
from proof_lm.checks.core import Mistake

Array = np.ndarray


# The projection


def _projection(change: Callable) -> Callable:
    def candidate(context: Array, weight: Array, upstream: Array) -> tuple:
        loss, grad = gradients.output_projection_loss_and_grad(context, weight, upstream)
        return change(loss, grad, context, weight, upstream)

    return candidate


PROJECTION_MISTAKES = (
    Mistake("gradient transposed", "the gradient is transposed: context^T comes first, upstream second",
            _projection(lambda loss, grad, c, w, u: (loss, grad.T))),
    Mistake("upstream ignored", "upstream is not in the gradient: it is taken as all ones",
            _projection(lambda loss, grad, c, w, u: (loss, c.T @ np.ones_like(u)))),
    Mistake("loss without upstream", "the loss is the plain sum of the output; weight it with upstream",
            _projection(lambda loss, grad, c, w, u: (float(np.sum(c @ w)), grad))),
    Mistake("mean for sum", "the loss or its gradient is divided by the number of rows: the loss is a sum",
            _projection(lambda loss, grad, c, w, u: (loss / len(c), grad / len(c)))),
    Mistake("mean of all", "the loss is a mean over all entries: it is a sum",
            _projection(lambda loss, grad, c, w, u: (loss / u.size, grad))),
    Mistake("gradient averaged", "the gradient is averaged over positions: every position adds its share",
            _projection(lambda loss, grad, c, w, u: (loss, grad / len(c)))),
    Mistake("results swapped", "the two results are swapped: the loss comes first",
            _projection(lambda loss, grad, c, w, u: (grad, loss))),
    Mistake("sign", "the gradient has the wrong sign: it points uphill",
            _projection(lambda loss, grad, c, w, u: (loss, -grad))),
)  # fmt: skip


# Finite differences


def _difference(slope: Callable) -> Callable:
    """slope(loss_fn, parameter, step, epsilon) for every entry, with `step` epsilon at that entry alone."""

    def candidate(loss_fn: Callable, parameter: Array, epsilon: float) -> Array:
        gradient = np.zeros_like(parameter)
        for index in np.ndindex(parameter.shape):
            step = np.zeros_like(parameter)
            step[index] = epsilon
            gradient[index] = slope(loss_fn, parameter, step, epsilon)
        return gradient

    return candidate


def _fixed_epsilon(loss_fn: Callable, parameter: Array, epsilon: float) -> Array:
    return gradients.finite_difference_gradient(loss_fn, parameter, 1e-5)


def _all_at_once(loss_fn: Callable, parameter: Array, epsilon: float) -> Array:
    slope = (loss_fn(parameter + epsilon) - loss_fn(parameter - epsilon)) / (2 * epsilon)
    return np.full_like(parameter, slope)


def _flat(loss_fn: Callable, parameter: Array, epsilon: float) -> Array:
    return gradients.finite_difference_gradient(loss_fn, parameter, epsilon).ravel()


DIFFERENCE_MISTAKES = (
    Mistake("forward difference", "one step forward only: the error is of order epsilon; step to both sides",
            _difference(lambda f, p, s, e: (f(p + s) - f(p)) / e)),
    Mistake("backward difference", "one step back only: the error is of order epsilon; step to both sides",
            _difference(lambda f, p, s, e: (f(p) - f(p - s)) / e)),
    Mistake("divided by epsilon", "twice too large: the two points are 2 epsilon apart",
            _difference(lambda f, p, s, e: (f(p + s) - f(p - s)) / e)),
    Mistake("not divided", "the difference is not divided by the distance 2 epsilon",
            _difference(lambda f, p, s, e: f(p + s) - f(p - s))),
    Mistake("sign", "the sign is wrong: the loss after the step forward comes first",
            _difference(lambda f, p, s, e: (f(p - s) - f(p + s)) / (2 * e))),
    Mistake("fixed epsilon", "the argument epsilon is not used", _fixed_epsilon),
    Mistake("all entries at once", "all entries move at once: this is the slope along (1, 1, ...)", _all_at_once),
    Mistake("shape lost", "the gradient is flat: give it the parameter's shape", _flat),
    Mistake("a view moved", "nothing moved: a flattened array with gaps is a copy that the loss never sees",
            _difference(lambda f, p, s, e: 0.0)),
)  # fmt: skip


# Softmax


SOFTMAX_MISTAKES = (
    Mistake("diagonal only", "only the diagonal of the Jacobian is used: raising one score also lowers the others",
            lambda w, u: w * u * (1 - w)),
    Mistake("no row term", "the row's own sum is missing: subtract sum(weights * upstream) before multiplying",
            lambda w, u: w * u),
    Mistake("plain mean", "the plain mean of upstream is subtracted: it must be weighted with the weights",
            lambda w, u: w * (u - u.mean(axis=-1, keepdims=True))),
    Mistake("plain sum", "the plain sum of upstream is subtracted: it must be weighted with the weights",
            lambda w, u: w * (u - u.sum(axis=-1, keepdims=True))),
    Mistake("sum over queries", "the sum runs over queries (axis -2): every row has its own",
            lambda w, u: w * (u - np.sum(w * u, axis=-2, keepdims=True)) if w.ndim > 1 else w * u),
    Mistake("sum over the table", "the sum runs over the whole table: every row has its own",
            lambda w, u: w * (u - np.sum(w * u))),
    Mistake("not weighted", "the result is not multiplied by the weights",
            lambda w, u: u - np.sum(w * u, axis=-1, keepdims=True)),
    Mistake("sign", "the sign is wrong", lambda w, u: w * (np.sum(w * u, axis=-1, keepdims=True) - u)),
    Mistake("softmax again", "softmax is taken of weights that are already its result",
            lambda w, u: gradients.softmax_backward(np.exp(w) / np.exp(w).sum(axis=-1, keepdims=True), u)),
)  # fmt: skip


# Attention


def attention_candidate(
    scale: Callable = lambda q: q.shape[-1] ** -0.5,
    back_scale: Callable | None = None,
    masked: bool = True,
    through_softmax: Callable = gradients.softmax_backward,
    change: Callable = lambda dq, dk, dv: (dq, dk, dv),
) -> Callable:
    """attention_backward with one thing changed."""

    def candidate(query: Array, key: Array, value: Array, upstream: Array) -> tuple:
        scores = query @ key.swapaxes(-2, -1) * scale(query)
        if masked:
            scores = np.where(np.tri(query.shape[-2], dtype=bool), scores, -np.inf)
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights = weights / weights.sum(axis=-1, keepdims=True)
        d_scores = through_softmax(weights, upstream @ value.swapaxes(-2, -1)) * (back_scale or scale)(query)
        return change(d_scores @ key, d_scores.swapaxes(-2, -1) @ query, weights.swapaxes(-2, -1) @ upstream)

    return candidate


def _untransposed_key(query: Array, key: Array, value: Array, upstream: Array) -> tuple:
    d_query, _, d_value = gradients.attention_backward(query, key, value, upstream)
    d_weights = upstream @ value.swapaxes(-2, -1)
    weights = _causal_weights(query, key)
    return d_query, gradients.softmax_backward(weights, d_weights) @ query * query.shape[-1] ** -0.5, d_value


def _untransposed_value(query: Array, key: Array, value: Array, upstream: Array) -> tuple:
    d_query, d_key, _ = gradients.attention_backward(query, key, value, upstream)
    return d_query, d_key, _causal_weights(query, key) @ upstream


def _causal_weights(query: Array, key: Array) -> Array:
    scores = np.where(np.tri(query.shape[-2], dtype=bool), query @ key.swapaxes(-2, -1), -np.inf)
    weights = np.exp((scores - scores.max(axis=-1, keepdims=True)) * query.shape[-1] ** -0.5)
    return weights / weights.sum(axis=-1, keepdims=True)


def _one(query: Array) -> float:
    return 1.0


ATTENTION_MISTAKES = (
    Mistake("scale lost on the way back", "the gradient of the scores is not divided by the root of d_h",
            attention_candidate(back_scale=_one)),
    Mistake("no scale", "the scores are not scaled by the root of d_h, neither forward nor back",
            attention_candidate(scale=_one)),
    Mistake("scale squared", "the scores' gradient is divided by d_h, not by its root",
            attention_candidate(back_scale=lambda q: 1 / q.shape[-1])),
    Mistake("no mask", "the weights are recomputed without the causal mask", attention_candidate(masked=False)),
    Mistake("softmax skipped", "softmax's backward is missing between weights and scores",
            attention_candidate(through_softmax=lambda w, u: u)),
    Mistake("softmax diagonal", "softmax's backward keeps only its diagonal",
            attention_candidate(through_softmax=lambda w, u: w * u)),
    Mistake("query and key swapped", "d_query and d_key are swapped",
            attention_candidate(change=lambda dq, dk, dv: (dk, dq, dv))),
    Mistake("d_key untransposed", "d_key lacks a transpose: it sums over queries, not over keys", _untransposed_key),
    Mistake("d_value untransposed", "d_value lacks a transpose: a value is read by the queries after it",
            _untransposed_value),
    Mistake("sign", "all three gradients have the wrong sign",
            attention_candidate(change=lambda dq, dk, dv: (-dq, -dk, -dv))),
)  # fmt: skip


# LayerNorm


def layer_norm_candidate(
    mean_term: float = 1.0,
    deviation_term: float = 1.0,
    with_gamma: bool = True,
    ddof: int = 0,
    epsilon_inside: bool = True,
    keep_epsilon: bool = True,
    change: Callable = lambda dv, dg, db, n, u: (dv, dg, db),
) -> Callable:
    """layer_norm_backward with one thing changed."""

    def candidate(values: Array, gamma: Array, epsilon: float, upstream: Array) -> tuple:
        epsilon = epsilon if keep_epsilon else 1e-5
        with np.errstate(all="ignore"):
            spread = values.var(axis=-1, keepdims=True, ddof=ddof)
            deviation = np.sqrt(spread + epsilon) if epsilon_inside else np.sqrt(spread) + epsilon
            n = (values - values.mean(axis=-1, keepdims=True)) / deviation
            g = upstream * gamma if with_gamma else upstream
            along = np.mean(g * n, axis=-1, keepdims=True)
            dv = (g - mean_term * g.mean(axis=-1, keepdims=True) - deviation_term * along * n) / deviation
        over = tuple(range(values.ndim - 1))
        return change(dv, np.sum(upstream * n, axis=over), np.sum(upstream, axis=over), n, upstream)

    return candidate


LAYER_NORM_MISTAKES = (
    Mistake("mean term missing", "the term of the mean is missing: moving one entry moves the row's mean",
            layer_norm_candidate(mean_term=0.0)),
    Mistake("deviation term missing", "the term of the deviation is missing: moving one entry changes the row's spread",
            layer_norm_candidate(deviation_term=0.0)),
    Mistake("both terms missing", "mean and deviation are taken as constants: both depend on every entry of the row",
            layer_norm_candidate(mean_term=0.0, deviation_term=0.0)),
    Mistake("gamma missing", "gamma is missing from d_values: upstream passes through it first",
            layer_norm_candidate(with_gamma=False)),
    Mistake("epsilon ignored", "the argument epsilon is not used", layer_norm_candidate(keep_epsilon=False)),
    Mistake("epsilon outside", "epsilon is added to the deviation: it belongs inside the root",
            layer_norm_candidate(epsilon_inside=False)),
    Mistake("unbiased variance", "the variance divides by d - 1: LayerNorm divides by d", layer_norm_candidate(ddof=1)),
    Mistake("sums missing", "d_gamma and d_beta are not summed: all positions share gamma and beta",
            layer_norm_candidate(change=lambda dv, dg, db, n, u: (dv, u * n, u))),
    Mistake("gamma and beta swapped", "d_gamma and d_beta are swapped",
            layer_norm_candidate(change=lambda dv, dg, db, n, u: (dv, db, dg))),
    Mistake("gamma's gradient without values", "d_gamma lacks the normalised values that gamma multiplies",
            layer_norm_candidate(change=lambda dv, dg, db, n, u: (dv, db, db))),
    Mistake("averaged over positions", "d_gamma and d_beta are averaged over positions: every position adds its share",
            layer_norm_candidate(change=lambda dv, dg, db, n, u: (dv, dg * len(dg) / n.size, db * len(dg) / n.size))),
)  # fmt: skip


# The block


def block_candidate(
    first_skip: float = 1.0,
    second_skip: float = 1.0,
    middle_from_input: bool = False,
    norm_backward: Callable = gradients.layer_norm_backward,
    attention_input_normed: bool = True,
    change: Callable = lambda dx, da, df: (dx, da, df),
) -> Callable:
    """decoder_block_backward with one thing changed."""

    def candidate(values: Array, attention: tuple, feed_forward: tuple, heads: int, upstream: Array) -> tuple:
        gamma1, beta1, *projections = attention
        gamma2, beta2, *layers = feed_forward
        normed1 = layer_norm(values, gamma1, beta1)
        middle = values + multi_head_attention(normed1, *projections, heads)[0]
        seen = values if middle_from_input else middle
        d_normed2, *d_layers = gradients.feed_forward_backward(layer_norm(seen, gamma2, beta2), *layers, upstream)
        d_branch, *d_norm2 = norm_backward(seen, gamma2, 1e-5, d_normed2)
        d_middle = second_skip * upstream + d_branch
        source = normed1 if attention_input_normed else values
        d_normed1, *d_projections = gradients.multi_head_attention_backward(source, *projections, heads, d_middle)
        d_branch, *d_norm1 = norm_backward(values, gamma1, 1e-5, d_normed1)
        d_values = first_skip * d_middle + d_branch
        return change(d_values, (*d_norm1, *d_projections), (*d_norm2, *d_layers))

    return candidate


def _constant_norm(values: Array, gamma: Array, epsilon: float, upstream: Array) -> tuple:
    deviation = np.sqrt(values.var(axis=-1, keepdims=True) + epsilon)
    _, d_gamma, d_beta = gradients.layer_norm_backward(values, gamma, epsilon, upstream)
    return upstream * gamma / deviation, d_gamma, d_beta


def _one_head(values: Array, attention: tuple, feed_forward: tuple, heads: int, upstream: Array) -> tuple:
    return gradients.decoder_block_backward(values, attention, feed_forward, 1, upstream)


def _upstream_twice(values: Array, attention: tuple, feed_forward: tuple, heads: int, upstream: Array) -> tuple:
    """The attention branch gets the block's upstream instead of what arrives between the branches."""
    d_values, _, d_feed_forward = gradients.decoder_block_backward(values, attention, feed_forward, heads, upstream)
    gamma1, beta1, *projections = attention
    normed = layer_norm(values, gamma1, beta1)
    d_normed, *d_projections = gradients.multi_head_attention_backward(normed, *projections, heads, upstream)
    _, *d_norm = gradients.layer_norm_backward(values, gamma1, 1e-5, d_normed)
    return d_values, (*d_norm, *d_projections), d_feed_forward


BLOCK_MISTAKES = (
    Mistake("first skip missing", "the first residual's own path is missing: a gradient passes attention unchanged",
            block_candidate(first_skip=0.0)),
    Mistake("second skip missing", "the second residual's own path is missing: upstream passes it unchanged",
            block_candidate(second_skip=0.0)),
    Mistake("no skips", "neither residual's own path is there", block_candidate(first_skip=0.0, second_skip=0.0)),
    Mistake("norm as a constant scale", "LayerNorm's backward treats mean and deviation as constants",
            block_candidate(norm_backward=_constant_norm)),
    Mistake("second norm of the input", "the second LayerNorm reads what is between the branches, not the input",
            block_candidate(middle_from_input=True)),
    Mistake("attention of the raw input", "attention reads the normalised values: recompute its backward from those",
            block_candidate(attention_input_normed=False)),
    Mistake("upstream for both branches", "the attention branch gets what arrives between the branches, not upstream",
            _upstream_twice),
    Mistake("one head", "the number of heads is ignored", _one_head),
    Mistake("branches swapped", "the two tuples are swapped: the attention branch comes first",
            block_candidate(change=lambda dx, da, df: (dx, df, da))),
)  # fmt: skip
