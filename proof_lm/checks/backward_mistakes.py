"""What goes wrong in a backward pass: each mistake as code that makes it, and the sentence that names it.

They are compared with a student's answers in order, so the commonest come first.
"""

from collections.abc import Callable

import numpy as np

from proof_lm import gradients
from proof_lm.attention import merge_heads, multi_head_attention, row_softmax, split_heads
from proof_lm.block import gelu, layer_norm
from proof_lm.checks.attention_mistakes import mistaken_attention, open_mask
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
    Mistake("gradient of the context", "that is the gradient of context, upstream W^T: asked is the projection's",
            _projection(lambda loss, grad, c, w, u: (loss, u @ w.T))),
    Mistake("gradient averaged", "the gradient is averaged over positions: every position adds its share",
            _projection(lambda loss, grad, c, w, u: (loss, grad / len(c)))),
    Mistake("mean for sum", "the loss or its gradient is divided by the number of rows: the loss is a sum",
            _projection(lambda loss, grad, c, w, u: (loss / len(c), grad / len(c)))),
    Mistake("mean of all", "the loss is a mean over all entries: it is a sum",
            _projection(lambda loss, grad, c, w, u: (loss / u.size, grad / u.size))),
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


def _not_put_back(loss_fn: Callable, parameter: Array, epsilon: float, entries: Array | None = None) -> Array:
    """Each entry is left epsilon lower, in a copy or in the caller's own `entries`."""
    p = parameter.copy() if entries is None else entries
    gradient = np.zeros_like(p)
    for index in np.ndindex(p.shape):
        p[index] += epsilon
        above = loss_fn(p)
        p[index] -= 2 * epsilon
        gradient[index] = (above - loss_fn(p)) / (2 * epsilon)
    return gradient


DIFFERENCE_MISTAKES = (
    Mistake("forward difference", "one step forward only: the error is of order epsilon; step to both sides",
            _difference(lambda f, p, s, e: (f(p + s) - f(p)) / e)),
    Mistake("backward difference", "one step back only: the error is of order epsilon; step to both sides",
            _difference(lambda f, p, s, e: (f(p) - f(p - s)) / e)),
    Mistake("divided by epsilon", "twice too large: the two points are 2 epsilon apart",
            _difference(lambda f, p, s, e: (f(p + s) - f(p - s)) / e)),
    Mistake("precedence", "/ 2 * epsilon divides by 2 and multiplies by epsilon: the divisor 2 epsilon needs brackets",
            _difference(lambda f, p, s, e: (f(p + s) - f(p - s)) / 2 * e)),
    *(Mistake("not put back", "an entry is not put back before the next one moves: the steps add up", candidate)
      for candidate in (_not_put_back, lambda loss_fn, p, epsilon: _not_put_back(loss_fn, p, epsilon, p))),
    Mistake("not divided", "the difference is not divided by the distance 2 epsilon",
            _difference(lambda f, p, s, e: f(p + s) - f(p - s))),
    Mistake("sign", "the sign is wrong: the loss after the step forward comes first",
            _difference(lambda f, p, s, e: (f(p - s) - f(p + s)) / (2 * e))),
    Mistake("half a step", "each side moves by half of epsilon: step by epsilon and divide by 2 epsilon",
            _difference(lambda f, p, s, e: (f(p + s / 2) - f(p - s / 2)) / e)),
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
    Mistake("no diagonal", "the diagonal of the Jacobian is missing: raising a score also raises its own weight",
            lambda w, u: -w * np.sum(w * u, axis=-1, keepdims=True)),
    Mistake("plain mean", "the plain mean of upstream is subtracted: it must be weighted with the weights",
            lambda w, u: w * (u - u.mean(axis=-1, keepdims=True))),
    Mistake("plain sum", "the plain sum of upstream is subtracted: it must be weighted with the weights",
            lambda w, u: w * (u - u.sum(axis=-1, keepdims=True))),
    Mistake("sum over queries", "the sum runs over queries (axis -2): every row has its own",
            lambda w, u: w * (u - np.sum(w * u, axis=-2, keepdims=True)) if w.ndim > 1 else w * u),
    Mistake("sum over the first axis", "the sum runs over the first axis: every row has its own, axis=-1, keepdims=True",
            lambda w, u: w * (u - np.sum(w * u, axis=0, keepdims=True))),
    Mistake("log softmax", "that is the slope of log softmax: upstream reaches the weights themselves",
            lambda w, u: u - w * u.sum(axis=-1, keepdims=True)),
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
    mask: Callable | None = np.tri,
    late_mask: bool = False,
    through_softmax: Callable = gradients.softmax_backward,
    change: Callable = lambda dq, dk, dv: (dq, dk, dv),
) -> Callable:
    """attention_backward with one thing changed."""

    def candidate(query: Array, key: Array, value: Array, upstream: Array) -> tuple:
        scores = query @ key.swapaxes(-2, -1) * scale(query)
        visible = mask(query.shape[-2]) > 0 if mask else True
        weights = row_softmax(scores) * visible if late_mask else row_softmax(np.where(visible, scores, -np.inf))
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


def _scaled_by_value_width(query: Array, key: Array, value: Array, upstream: Array) -> tuple:
    return attention_candidate(scale=lambda q: value.shape[-1] ** -0.5)(query, key, value, upstream)


def _one(query: Array) -> float:
    return 1.0


ATTENTION_MISTAKES = (
    Mistake("scale lost on the way back", "the gradient of the scores is not divided by the root of d_h",
            attention_candidate(back_scale=_one)),
    Mistake("no scale", "the scores are not scaled by the root of d_h, neither forward nor back",
            attention_candidate(scale=_one)),
    Mistake("scale squared", "the scores' gradient is divided by d_h, not by its root",
            attention_candidate(back_scale=lambda q: 1 / q.shape[-1])),
    Mistake("no mask", "the weights are recomputed without the causal mask", attention_candidate(mask=None)),
    Mistake("strict mask", "the diagonal is hidden too: a query sees its own key",
            attention_candidate(mask=lambda time: np.tri(time, k=-1))),
    Mistake("late mask", "the mask came after softmax: scores are hidden before it", attention_candidate(late_mask=True)),
    Mistake("softmax skipped", "softmax's backward is missing between weights and scores",
            attention_candidate(through_softmax=lambda w, u: u)),
    Mistake("softmax diagonal", "softmax's backward keeps only its diagonal",
            attention_candidate(through_softmax=lambda w, u: w * u)),
    Mistake("scale by value width", "the scale is the root of the query's width d_h, not of the values' width",
            _scaled_by_value_width),
    Mistake("weights as constants", "query and key get no gradient: the weights depend on both",
            attention_candidate(through_softmax=lambda w, u: 0 * w)),
    Mistake("query and key swapped", "d_query and d_key are swapped",
            attention_candidate(change=lambda dq, dk, dv: (dk, dq, dv))),
    Mistake("other order", "the gradients stand in another order: query, key, value",
            attention_candidate(change=lambda dq, dk, dv: (dv, dk, dq))),
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
    gamma_last: bool = False,
    once_more: bool = False,
    average: Callable = np.mean,
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
            g = upstream * gamma if with_gamma and not gamma_last else upstream
            along = average(g * n, axis=-1, keepdims=True)
            dv = (g - mean_term * average(g, axis=-1, keepdims=True) - deviation_term * along * n) / deviation
            dv = dv * gamma if gamma_last else dv
            dv = dv / deviation if once_more else dv
        over = tuple(range(values.ndim - 1))
        return change(dv, np.sum(upstream * n, axis=over), np.sum(upstream, axis=over), n, upstream)

    return candidate


def _raw_gamma(values: Array, gamma: Array, epsilon: float, upstream: Array) -> tuple:
    d_values, _, d_beta = gradients.layer_norm_backward(values, gamma, epsilon, upstream)
    return d_values, np.sum(upstream * values, axis=tuple(range(values.ndim - 1))), d_beta


def _gamma_again(values: Array, gamma: Array, epsilon: float, upstream: Array) -> tuple:
    d_values, d_gamma, d_beta = gradients.layer_norm_backward(values, gamma, epsilon, upstream)
    return d_values, gamma * d_gamma, gamma * d_beta


LAYER_NORM_MISTAKES = (
    Mistake("mean term missing", "the term of the mean is missing: moving one entry moves the row's mean",
            layer_norm_candidate(mean_term=0.0)),
    Mistake("deviation term missing", "the term of the deviation is missing: moving one entry changes the row's spread",
            layer_norm_candidate(deviation_term=0.0)),
    Mistake("both terms missing", "mean and deviation are taken as constants: both depend on every entry of the row",
            layer_norm_candidate(mean_term=0.0, deviation_term=0.0)),
    Mistake("gamma missing", "gamma is missing from d_values: upstream passes through it first",
            layer_norm_candidate(with_gamma=False)),
    Mistake("gamma last", "gamma multiplies the result: upstream passes through it first, before the two means are taken",
            layer_norm_candidate(gamma_last=True)),
    Mistake("divided by the variance", "d_values is divided by the variance: the deviation, its root, divides once",
            layer_norm_candidate(once_more=True)),
    Mistake("sums for means", "sums stand where means belong: mean and deviation divide by d",
            layer_norm_candidate(average=np.sum)),
    Mistake("sign of the third term", "the third term has the wrong sign: all that moves the deviation is taken off",
            layer_norm_candidate(deviation_term=-1.0)),
    Mistake("epsilon ignored", "the argument epsilon is not used", layer_norm_candidate(keep_epsilon=False)),
    Mistake("epsilon outside", "epsilon is added to the deviation: it belongs inside the root",
            layer_norm_candidate(epsilon_inside=False)),
    Mistake("unbiased variance", "the variance divides by d - 1: LayerNorm divides by d", layer_norm_candidate(ddof=1)),
    Mistake("sums missing", "d_gamma and d_beta are not summed: all positions share gamma and beta",
            layer_norm_candidate(change=lambda dv, dg, db, n, u: (dv, u * n, u))),
    Mistake("summed over the first axis", "d_gamma and d_beta are summed over the first axis alone: sum over all but the last",
            layer_norm_candidate(change=lambda dv, dg, db, n, u: (dv, (u * n).sum(axis=0), u.sum(axis=0)))),
    Mistake("summed over features", "d_gamma and d_beta are summed over features: sum over positions, every axis but the last",
            layer_norm_candidate(change=lambda dv, dg, db, n, u: (dv, (u * n).sum(axis=-1), u.sum(axis=-1)))),
    Mistake("other order", "the gradients are swapped: values, gamma, beta in this order",
            layer_norm_candidate(change=lambda dv, dg, db, n, u: (dg, db, dv))),
    Mistake("gamma and beta swapped", "the gradients are swapped: values, gamma, beta in this order",
            layer_norm_candidate(change=lambda dv, dg, db, n, u: (dv, db, dg))),
    Mistake("gamma's gradient without values", "d_gamma lacks the normalised values that gamma multiplies",
            layer_norm_candidate(change=lambda dv, dg, db, n, u: (dv, db, db))),
    Mistake("gamma's gradient with raw values", "d_gamma takes the values as they came: gamma multiplies the normalised ones",
            _raw_gamma),
    Mistake("gamma in its own gradient", "d_gamma or d_beta contains gamma: neither gamma nor beta passes through gamma",
            _gamma_again),
    Mistake("averaged over positions", "d_gamma and d_beta are averaged over positions: every position adds its share",
            layer_norm_candidate(change=lambda dv, dg, db, n, u: (dv, dg * len(dg) / n.size, db * len(dg) / n.size))),
)  # fmt: skip


# The block


def block_candidate(
    first_skip: float = 1.0,
    second_skip: float = 1.0,
    middle_from_input: bool = False,
    attend: Callable = multi_head_attention,
    norm_backward: Callable = gradients.layer_norm_backward,
    feed_backward: Callable = gradients.feed_forward_backward,
    heads_backward: Callable = gradients.multi_head_attention_backward,
    attention_input_normed: bool = True,
    change: Callable = lambda dx, da, df: (dx, da, df),
) -> Callable:
    """decoder_block_backward with one thing changed."""

    def candidate(values: Array, attention: tuple, feed_forward: tuple, heads: int, upstream: Array) -> tuple:
        gamma1, beta1, *projections = attention
        gamma2, beta2, *layers = feed_forward
        normed1 = layer_norm(values, gamma1, beta1)
        middle = values + attend(normed1, *projections, heads)[0]
        seen = values if middle_from_input else middle
        d_normed2, *d_layers = feed_backward(layer_norm(seen, gamma2, beta2), *layers, upstream)
        d_branch, *d_norm2 = norm_backward(seen, gamma2, 1e-5, d_normed2)
        d_middle = second_skip * upstream + d_branch
        source = normed1 if attention_input_normed else values
        d_normed1, *d_projections = heads_backward(source, *projections, heads, d_middle)
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


def _feed(slope: Callable) -> Callable:
    """feed_forward_backward with another slope of GELU, of what w1 and b1 give."""

    def candidate(values: Array, w1: Array, b1: Array, w2: Array, b2: Array, upstream: Array) -> tuple:
        before = values @ w1 + b1
        d_before = upstream @ w2.T * slope(before)
        return d_before @ w1.T, values.T @ d_before, d_before.sum(axis=0), gelu(before).T @ upstream, upstream.sum(axis=0)

    return candidate


def _heads(
    attend: Callable = multi_head_attention,
    wo_on_the_way_back: Callable = lambda wo: wo.T,
    attend_backward: Callable = gradients.attention_backward,
    change: Callable = lambda d_hiddens, d_weights: (sum(d_hiddens), *d_weights),
) -> Callable:
    """multi_head_attention_backward with one thing changed; d_weights are those of wq, wk, wv, wo."""

    def candidate(hidden: Array, wq: Array, wk: Array, wv: Array, wo: Array, heads: int, upstream: Array) -> tuple:
        merged = attend(hidden, wq, wk, wv, wo, heads)[2]
        inputs = (split_heads(hidden @ weight, heads) for weight in (wq, wk, wv))
        d_heads = attend_backward(*inputs, split_heads(upstream @ wo_on_the_way_back(wo), heads))
        d_projected = [merge_heads(gradient) for gradient in d_heads]
        d_weights = [hidden.T @ gradient for gradient in d_projected] + [merged.T @ upstream]
        return change([d @ w.T for d, w in zip(d_projected, (wq, wk, wv), strict=True)], d_weights)

    return candidate


def _attending(attend: Callable, backward: Callable) -> Callable:
    return block_candidate(attend=attend, heads_backward=_heads(attend, attend_backward=backward))


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
    Mistake("no slope of GELU", "GELU's slope is missing: what comes back through w2 is multiplied by it, entry by entry",
            block_candidate(feed_backward=_feed(np.ones_like))),
    Mistake("slope of ReLU", "the slope of ReLU stands where GELU's belongs",
            block_candidate(feed_backward=_feed(lambda before: before > 0))),
    Mistake("slope without x", "GELU's slope is the gate plus x times the gate's slope: the second term is missing",
            block_candidate(feed_backward=_feed(lambda before: gelu(before) / before))),
    Mistake("W_O untransposed", "W_O goes back transposed: the merged heads get upstream @ wo.T",
            block_candidate(heads_backward=_heads(wo_on_the_way_back=lambda wo: wo))),
    Mistake("W_O skipped", "W_O is skipped on the way back: the merged heads get upstream @ wo.T",
            block_candidate(heads_backward=_heads(wo_on_the_way_back=lambda wo: np.eye(len(wo))))),
    Mistake("W_O's gradient transposed", "the gradient of wo is transposed: merged^T @ upstream",
            block_candidate(heads_backward=_heads(change=lambda dh, dw: (sum(dh), *dw[:3], dw[3].T)))),
    Mistake("values' path only", "the input reaches attention by query, key and value: add all three gradients",
            block_candidate(heads_backward=_heads(change=lambda dh, dw: (dh[2], *dw)))),
    Mistake("W_Q and W_K swapped", "the gradients of wq and wk are swapped",
            block_candidate(heads_backward=_heads(change=lambda dh, dw: (sum(dh), dw[1], dw[0], *dw[2:])))),
    Mistake("W_K and W_V swapped", "the gradients of wk and wv are swapped",
            block_candidate(heads_backward=_heads(change=lambda dh, dw: (sum(dh), dw[0], dw[2], dw[1], dw[3])))),
    Mistake("no mask", "the attention weights are recomputed without the causal mask",
            _attending(mistaken_attention(mask=open_mask), attention_candidate(mask=None))),
    Mistake("no scale", "the scores are not scaled by the root of d_h, neither forward nor back",
            _attending(mistaken_attention(divisor=lambda query, hidden: 1), attention_candidate(scale=_one))),
    Mistake("scale lost on the way back", "the gradient of the scores is not divided by the root of d_h",
            _attending(multi_head_attention, attention_candidate(back_scale=_one))),
    *(Mistake("bias gradients missing", "b1 and b2 get the gradient of what they are added to, summed over positions",
              block_candidate(change=lambda dx, da, df, w=w: (dx, da, tuple(d * k for d, k in zip(df, w, strict=True)))))
      for w in ((1, 1, 1, 0, 1, 1), (1, 1, 1, 1, 1, 0), (1, 1, 1, 0, 1, 0))),
    Mistake("norms' gradients swapped", "the gradients of gamma and beta are swapped",
            block_candidate(change=lambda dx, da, df: (dx, (da[1], da[0], *da[2:]), (df[1], df[0], *df[2:])))),
    Mistake("branches swapped", "the two tuples are swapped: the attention branch comes first",
            block_candidate(change=lambda dx, da, df: (dx, df, da))),
)  # fmt: skip
