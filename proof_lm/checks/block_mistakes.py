"""Known mistakes in the parts of a block: code that makes each one, and the sentence that names it."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from proof_lm.attention import multi_head_attention, row_softmax
from proof_lm.block import (
    decoder_block,
    feed_forward,
    gelu,
    layer_norm,
    masked_cross_entropy,
    tiny_transformer_forward,
)
from proof_lm.checks.core import Mistake

# LayerNorm: candidates take (values, gamma, beta, epsilon) ------------------------------------------------


def _normalise(values: NDArray, axis: int | tuple[int, ...] | None, epsilon: float, ddof: int = 0) -> NDArray:
    spread = np.sqrt(values.var(axis=axis, ddof=ddof, keepdims=True) + epsilon)
    return (values - values.mean(axis=axis, keepdims=True)) / spread


def _norm_mistake(name: str, message: str, normalise: Callable[[NDArray, float], NDArray]) -> Mistake:
    return Mistake(name, message, lambda x, gamma, beta, epsilon=1e-5: gamma * normalise(x, epsilon) + beta)


WRONG_AXIS = (
    _norm_mistake(
        "norm over time",
        "the statistics run over time: every position depends on the others, later ones too; use axis=-1",
        lambda x, epsilon: _normalise(x, -2, epsilon),
    ),
    _norm_mistake(
        "norm over everything",
        "one mean and one variance for the whole array: each position has its own, over axis=-1",
        lambda x, epsilon: _normalise(x, None, epsilon),
    ),
    _norm_mistake(
        "norm over time and features",
        "the statistics run over time and features together: each position has its own, over axis=-1 alone",
        lambda x, epsilon: _normalise(x, (-2, -1), epsilon),
    ),
    _norm_mistake(
        "norm over batch",
        "the statistics run over the first axis, as BatchNorm's do: sequences mix; use axis=-1",
        lambda x, epsilon: _normalise(x, 0, epsilon),
    ),
)
WRONG_FORMULA = (
    _norm_mistake(
        "epsilon outside the root",
        "epsilon was added to the standard deviation: it belongs to the variance, under the root",
        lambda x, epsilon: (x - x.mean(-1, keepdims=True)) / (x.std(-1, keepdims=True) + epsilon),
    ),
    _norm_mistake(
        "no epsilon",
        "epsilon is missing: it is added to the variance, under the root, and keeps a constant row from 0 / 0",
        lambda x, epsilon: _normalise(x, -1, 0.0),
    ),
    _norm_mistake(
        "epsilon fixed",
        "the argument epsilon has no effect: a fixed value stands in its place",
        lambda x, epsilon: _normalise(x, -1, 1e-5),
    ),
    _norm_mistake(
        "unbiased variance",
        "the variance was divided by d - 1: LayerNorm divides by d (ddof=0)",
        lambda x, epsilon: _normalise(x, -1, epsilon, ddof=1),
    ),
    _norm_mistake(
        "no root",
        "the centred values were divided by the variance: take its square root",
        lambda x, epsilon: (x - x.mean(-1, keepdims=True)) / (x.var(-1, keepdims=True) + epsilon),
    ),
    _norm_mistake(
        "mean kept",
        "the mean was not subtracted: that is a scaling only, not LayerNorm",
        lambda x, epsilon: x / np.sqrt(x.var(-1, keepdims=True) + epsilon),
    ),
    _norm_mistake(
        "RMSNorm",
        "the values were divided by their root mean square: that is RMSNorm; subtract the mean first",
        lambda x, epsilon: x / np.sqrt((x**2).mean(-1, keepdims=True) + epsilon),
    ),
    _norm_mistake(
        "centred only",
        "the mean was subtracted, but the rows were not divided by their spread",
        lambda x, epsilon: x - x.mean(-1, keepdims=True),
    ),
    Mistake(
        "gamma ignored",
        "gamma has no effect: the normalised values must be multiplied by it",
        lambda x, gamma, beta, epsilon=1e-5: layer_norm(x, 1.0, beta, epsilon),
    ),
    Mistake(
        "beta ignored",
        "beta has no effect: it must be added after the scaling",
        lambda x, gamma, beta, epsilon=1e-5: layer_norm(x, gamma, 0.0, epsilon),
    ),
    Mistake(
        "beta scaled",
        "beta was added before the scaling: gamma multiplies the normalised values only",
        lambda x, gamma, beta, epsilon=1e-5: gamma * layer_norm(x, 1.0, beta, epsilon),
    ),
)

# GELU: candidates take (values) --------------------------------------------------------------------------


def _gate(inner: NDArray) -> NDArray:
    return 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * inner))


WRONG_GELU = (
    Mistake(
        "ReLU",
        "that is ReLU: it has a corner at 0 and never goes below it",
        lambda x: np.maximum(x, 0.0),
    ),
    Mistake(
        "SiLU",
        "that is SiLU, x * sigmoid(x): GELU weighs by the normal distribution",
        lambda x: x * 0.5 * (1 + np.tanh(x / 2)),
    ),
    Mistake(
        "only the gate",
        "the gate came without the value: multiply it by x",
        lambda x: _gate(x + 0.044715 * x**3),
    ),
    Mistake(
        "no half",
        "twice the value came: the gate is half of 1 + tanh(...)",
        lambda x: 2 * gelu(x),
    ),
    Mistake(
        "no cubic term",
        "the cubic term 0.044715 x^3 is missing inside tanh",
        lambda x: x * _gate(x),
    ),
    Mistake(
        "square in place of cube",
        "inside tanh stands x^2 where x^3 belongs: the gate loses its symmetry",
        lambda x: x * _gate(x + 0.044715 * x**2),
    ),
    Mistake(
        "bracket closed early",
        "the root of 2 / pi multiplies the whole sum x + 0.044715 x^3: a bracket closes too early",
        lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * x + 0.044715 * x**3)),
    ),
    Mistake(
        "no root",
        "the factor inside tanh is the root of 2 / pi, not 2 / pi itself",
        lambda x: 0.5 * x * (1 + np.tanh(2 / np.pi * (x + 0.044715 * x**3))),
    ),
)

# Feed-forward: candidates take (values, w1, b1, w2, b2) ---------------------------------------------------

WRONG_FEED_FORWARD = (
    Mistake(
        "no activation",
        "there is no activation: two linear maps in a row are one linear map",
        lambda x, w1, b1, w2, b2: (x @ w1 + b1) @ w2 + b2,
    ),
    Mistake(
        "ReLU",
        "ReLU stands where GELU belongs",
        lambda x, w1, b1, w2, b2: np.maximum(x @ w1 + b1, 0) @ w2 + b2,
    ),
    Mistake(
        "activation on the result",
        "GELU acts on the result as well: the second map must stay linear",
        lambda x, w1, b1, w2, b2: gelu(feed_forward(x, w1, b1, w2, b2)),
    ),
    Mistake(
        "activation last",
        "GELU acts after the second map: it belongs between the two",
        lambda x, w1, b1, w2, b2: gelu((x @ w1 + b1) @ w2 + b2),
    ),
    Mistake(
        "biases ignored",
        "neither b1 nor b2 has an effect: each linear map adds its own bias",
        lambda x, w1, b1, w2, b2: feed_forward(x, w1, 0.0, w2, 0.0),
    ),
    Mistake(
        "b1 ignored",
        "b1 has no effect: it is added before GELU",
        lambda x, w1, b1, w2, b2: feed_forward(x, w1, 0.0, w2, b2),
    ),
    Mistake(
        "b1 after the activation",
        "b1 was added after GELU: it belongs inside",
        lambda x, w1, b1, w2, b2: (gelu(x @ w1) + b1) @ w2 + b2,
    ),
    Mistake(
        "b2 ignored",
        "b2 has no effect: it is added after the second map",
        lambda x, w1, b1, w2, b2: feed_forward(x, w1, b1, w2, 0.0),
    ),
    Mistake(
        "residual inside",
        "the input was added to the result: the residual belongs to the block",
        lambda x, w1, b1, w2, b2: x + feed_forward(x, w1, b1, w2, b2),
    ),
)

# Block: candidates take (values, attention_weights, feed_forward_weights, heads), here x, a, f, h ----------


def _norm(values: NDArray, weights: tuple) -> NDArray:
    return layer_norm(values, *weights[:2])


def _attend(values: NDArray, weights: tuple, heads: int) -> NDArray:
    return multi_head_attention(values, *weights[2:], heads)[0]


def _attend_unmasked(values: NDArray, weights: tuple, heads: int) -> NDArray:
    query, key, value, out = (np.asarray(weight) for weight in weights[2:])
    width = len(query) // heads
    parts = [slice(head * width, (head + 1) * width) for head in range(heads)]
    scores = [values @ query[:, p] @ (values @ key[:, p]).T / width**0.5 for p in parts]
    mixed = [row_softmax(score) @ values @ value[:, p] for score, p in zip(scores, parts, strict=True)]
    return np.concatenate(mixed, axis=-1) @ out


def _feed(values: NDArray, weights: tuple) -> NDArray:
    return feed_forward(values, *weights[2:])


def _post_norm(x: NDArray, a: tuple, f: tuple, h: int) -> NDArray:
    y = _norm(x + _attend(x, a, h), a)
    return _norm(y + _feed(y, f), f)


def _residual_from_norm(x: NDArray, a: tuple, f: tuple, h: int) -> NDArray:
    normal = _norm(x, a)
    normal = _norm(normal + _attend(normal, a, h), f)
    return normal + _feed(normal, f)


def _stale_residual(x: NDArray, a: tuple, f: tuple, h: int) -> NDArray:
    return x + _feed(_norm(x + _attend(_norm(x, a), a, h), f), f)


def _parallel(x: NDArray, a: tuple, f: tuple, h: int) -> NDArray:
    return x + _attend(_norm(x, a), a, h) + _feed(_norm(x, f), f)


def _no_residual(x: NDArray, a: tuple, f: tuple, h: int) -> NDArray:
    return _feed(_norm(_attend(_norm(x, a), a, h), f), f)


def _no_second_residual(x: NDArray, a: tuple, f: tuple, h: int) -> NDArray:
    return _feed(_norm(x + _attend(_norm(x, a), a, h), f), f)


def _no_norm(x: NDArray, a: tuple, f: tuple, h: int) -> NDArray:
    y = x + _attend(x, a, h)
    return y + _feed(y, f)


def _no_second_norm(x: NDArray, a: tuple, f: tuple, h: int) -> NDArray:
    y = x + _attend(_norm(x, a), a, h)
    return y + _feed(y, f)


def _merged_added(x: NDArray, a: tuple, f: tuple, h: int) -> NDArray:
    y = x + multi_head_attention(_norm(x, a), *a[2:], h)[2]
    return y + _feed(_norm(y, f), f)


def _no_mask(x: NDArray, a: tuple, f: tuple, h: int) -> NDArray:
    y = x + _attend_unmasked(_norm(x, a), a, h)
    return y + _feed(_norm(y, f), f)


def _feed_forward_first(x: NDArray, a: tuple, f: tuple, h: int) -> NDArray:
    y = x + _feed(_norm(x, f), f)
    return y + _attend(_norm(y, a), a, h)


WRONG_BLOCK = (
    Mistake(
        "post-norm",
        "that is post-norm: the sum was normalised; pre-norm normalises only what a sublayer reads",
        _post_norm,
    ),
    Mistake(
        "residual from the norm",
        "the residual carries the normalised input: add the sublayer's output to the stream as it came in",
        _residual_from_norm,
    ),
    Mistake(
        "no residual",
        "the sublayers replace the stream: add each one's output to what came in",
        _no_residual,
    ),
    Mistake(
        "no second residual",
        "the feed-forward layer replaces the stream: add its output to it",
        _no_second_residual,
    ),
    Mistake(
        "stale residual",
        "the second sum starts from the block's input, so what attention added is lost",
        _stale_residual,
    ),
    Mistake(
        "parallel",
        "the feed-forward layer reads the block's input: it must read the stream after attention",
        _parallel,
    ),
    Mistake(
        "feed-forward first",
        "the feed-forward layer comes before attention: the order is the other way round",
        _feed_forward_first,
    ),
    Mistake(
        "no norm",
        "nothing is normalised: each sublayer must read a normalised copy of the stream",
        _no_norm,
    ),
    Mistake(
        "no second norm",
        "the feed-forward layer reads the stream itself: it must read a normalised copy",
        _no_second_norm,
    ),
    Mistake(
        "no feed-forward layer",
        "the feed-forward layer is missing: the second sum adds it",
        lambda x, a, f, h: x + _attend(_norm(x, a), a, h),
    ),
    Mistake(
        "merged heads added",
        "the merged heads were added as they are: the first result of attention has gone through wo",
        _merged_added,
    ),
    Mistake(
        "final norm",
        "the result was normalised once more: the stream leaves the block as it is",
        lambda x, a, f, h: _norm(decoder_block(x, a, f, h), f),
    ),
    Mistake(
        "one norm for both",
        "gamma1 and beta1 were used for both norms: the second has gamma2 and beta2",
        lambda x, a, f, h: decoder_block(x, a, (*a[:2], *f[2:]), h),
    ),
    Mistake(
        "no mask",
        "attention sees later positions: is the causal mask missing?",
        _no_mask,
    ),
    Mistake(
        "one head",
        "the argument heads has no effect: attention runs over the full width at once",
        lambda x, a, f, h: decoder_block(x, a, f, 1),
    ),
)

# With silent sublayers some of these look alike: what is then common to them comes first.
WRONG_STREAM = (
    Mistake(
        "normalised stream",
        "the stream itself was normalised: carry it as it came in, and normalise only what a sublayer reads",
        _post_norm,
    ),
    Mistake(
        "replaced stream",
        "a sublayer replaces the stream: add its output to what came in",
        _no_residual,
    ),
    *WRONG_BLOCK,
)

# Logits: candidates take (token_ids, token_embedding, positional_embedding, blocks, output_projection, heads)


def _final_norm(
    ids: NDArray, tokens: NDArray, positions: NDArray, blocks: list, head: NDArray, h: int
) -> NDArray:
    hidden = tiny_transformer_forward(ids, tokens, positions, blocks, np.eye(len(head)), h)
    return layer_norm(hidden, 1.0, 0.0) @ head


def _positions_by_id(ids: NDArray, tokens: NDArray, positions: NDArray, *rest: object) -> NDArray:
    by_id = np.resize(positions, tokens.shape)
    return tiny_transformer_forward(ids, tokens + by_id, np.zeros_like(positions), *rest)


WRONG_LOGITS = (
    Mistake(
        "no positions",
        "the positions were not added: the same token starts alike everywhere",
        lambda i, e, p, *rest: tiny_transformer_forward(i, e, np.zeros_like(p), *rest),
    ),
    Mistake(
        "positions by token id",
        "positions were looked up by token id: row t of their table belongs to step t",
        _positions_by_id,
    ),
    Mistake(
        "positions from one",
        "positions are counted from 1: step 0 gets row 0 of their table",
        lambda i, e, p, *rest: tiny_transformer_forward(i, e, np.roll(p, -1, axis=0), *rest),
    ),
    Mistake(
        "embeddings scaled",
        "the token embeddings were scaled by the root of d: this model adds positions to them as they are",
        lambda i, e, *rest: tiny_transformer_forward(i, e * e.shape[-1] ** 0.5, *rest),
    ),
    Mistake(
        "first block only",
        "only the first block was passed: go through all of them",
        lambda i, e, p, b, o, h: tiny_transformer_forward(i, e, p, b[:1], o, h),
    ),
    Mistake(
        "last block only",
        "only the last block had an effect: each one reads what the one before returned",
        lambda i, e, p, b, o, h: tiny_transformer_forward(i, e, p, b[-1:], o, h),
    ),
    Mistake(
        "blocks reversed",
        "the blocks were passed in reverse order",
        lambda i, e, p, b, o, h: tiny_transformer_forward(i, e, p, b[::-1], o, h),
    ),
    Mistake(
        "final norm",
        "the stream was normalised before the projection: this model has no final norm",
        _final_norm,
    ),
    Mistake(
        "probabilities",
        "probabilities came: logits are the projection itself, before any softmax",
        lambda *given: row_softmax(tiny_transformer_forward(*given)),
    ),
    Mistake(
        "log-probabilities",
        "log-probabilities came: logits are the projection itself, before any softmax",
        lambda *given: np.log(row_softmax(tiny_transformer_forward(*given))),
    ),
)

# Loss: candidates take (logits, labels, loss_mask), here x, y, m ------------------------------------------


def _surprise(logits: NDArray, labels: NDArray) -> NDArray:
    """-log probability of each label, (...)."""
    shifted = logits - logits.max(axis=-1, keepdims=True)
    picked = np.take_along_axis(shifted, labels[..., None], axis=-1)[..., 0]
    return np.log(np.exp(shifted).sum(axis=-1)) - picked


def _unshifted(logits: NDArray, labels: NDArray, mask: NDArray) -> float:
    probability = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    return float(-np.log(np.take_along_axis(probability, labels[..., None], axis=-1)[..., 0])[mask].mean())


def _mean_of_means(logits: NDArray, labels: NDArray, mask: NDArray) -> float:
    kept = np.maximum(mask.sum(axis=-1), 1)
    return float(((_surprise(logits, labels) * mask).sum(axis=-1) / kept).mean())


def _one_sequence(logits: NDArray, labels: NDArray, mask: NDArray) -> float:
    logits[np.arange(len(labels)), labels]  # IndexError with leading axes
    return masked_cross_entropy(logits, labels, mask)


WRONG_LOSS = (
    Mistake(
        "indexed as one sequence",
        "it works for one sequence alone: select what is kept first, logits[loss_mask] is (kept, V) for any axes",
        _one_sequence,
    ),
    Mistake(
        "every label at every position",
        "[:, labels] picks every label at every position: pair each row with its own, [np.arange(n), labels]",
        lambda x, y, m: float((_surprise(x[m][:, None], np.tile(y[m], (m.sum(), 1)))).mean()) if m.any() else 0.0,
    ),
    Mistake(
        "mean over all",
        "the sum over kept tokens was divided by the number of all tokens: divide by the number kept",
        lambda x, y, m: float((_surprise(x, y) * m).mean()),
    ),
    Mistake(
        "sum",
        "the losses were added up and not averaged",
        lambda x, y, m: float(_surprise(x, y)[m].sum()),
    ),
    Mistake(
        "mask ignored",
        "loss_mask has no effect: masked tokens count as well",
        lambda x, y, m: float(_surprise(x, y).mean()),
    ),
    Mistake(
        "mask inverted",
        "the masked tokens were kept and the kept ones left out: True means kept",
        lambda x, y, m: masked_cross_entropy(x, y, ~m),
    ),
    Mistake(
        "mean of row means",
        "each sequence was averaged by itself first: every kept token counts the same",
        _mean_of_means,
    ),
    Mistake(
        "shifted again",
        "logits and labels were shifted against each other: the labels are shifted already",
        lambda x, y, m: masked_cross_entropy(x[..., :-1, :], y[..., 1:], m[..., 1:]),
    ),
    Mistake(
        "softmax twice",
        "softmax was taken twice: probabilities were treated as logits",
        lambda x, y, m: masked_cross_entropy(row_softmax(x), y, m),
    ),
    Mistake(
        "no normaliser",
        "the label's logit was taken for a log-probability: subtract the row's log-sum-exp",
        lambda x, y, m: float(-np.take_along_axis(x, y[..., None], -1)[..., 0][m].mean()),
    ),
    Mistake(
        "sign",
        "the sign is the wrong way round: the loss is minus the mean log-probability",
        lambda x, y, m: -masked_cross_entropy(x, y, m),
    ),
    Mistake(
        "no logarithm",
        "the label's probability came without its logarithm: the loss is the mean of -log p",
        lambda x, y, m: float(-np.exp(-_surprise(x, y))[m].mean()) if m.any() else 0.0,
    ),
    Mistake(
        "perplexity",
        "exp of the loss came, the perplexity: return the loss itself",
        lambda x, y, m: math.exp(masked_cross_entropy(x, y, m)),
    ),
    Mistake(
        "divided by sequences",
        "the sum was divided by the number of sequences: divide by the number of kept positions",
        lambda x, y, m: float(_surprise(x, y)[m].sum() / len(y)),
    ),
    Mistake(
        "bits",
        "the logarithm has base 2: the loss is in nats, ln",
        lambda x, y, m: masked_cross_entropy(x, y, m) / math.log(2),
    ),
    Mistake(
        "overflow",
        "exp overflows for large logits: subtract each row's largest logit first",
        _unshifted,
    ),
)
