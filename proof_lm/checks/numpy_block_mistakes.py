"""Known mistakes that show in values only: softmax, mask, positions and loss, beside those of the chapter's tables."""

import numpy as np
from numpy.typing import NDArray

from proof_lm.attention import causal_mask, multi_head_attention, rope, row_softmax, single_head_attention
from proof_lm.block import decoder_block, masked_cross_entropy, tiny_transformer_forward
from proof_lm.checks.attention_mistakes import mistaken_attention
from proof_lm.checks.core import Mistake


def _shares(powers: NDArray, axis: int | tuple[int, ...] | None = -1) -> NDArray:
    return powers / powers.sum(axis=axis, keepdims=True)


WRONG_SOFTMAX = (
    Mistake(
        "over queries",
        "columns sum to one and rows do not: softmax runs over queries (axis -2) instead of keys (axis -1)",
        lambda values: _shares(np.exp(values), -2),
    ),
    Mistake(
        "over the first axis",
        "the sum runs over the first axis, whatever that is: keys stand on the last one, axis=-1",
        lambda values: _shares(np.exp(values), 0),
    ),
    Mistake(
        "over everything",
        "the whole table sums to one: every row is a distribution of its own, axis=-1 with keepdims=True",
        lambda values: _shares(np.exp(values), None),
    ),
    Mistake(
        "over axis 1",
        "axis=1 is the last axis of a table only: with leading axes it is another one; use axis=-1",
        lambda values: _shares(np.exp(values), 1),
    ),
    Mistake(
        "not divided",
        "the exponentials came as they are: divide each row by its sum",
        lambda values: np.exp(values - values.max(axis=-1, keepdims=True)),
    ),
    Mistake("base 2", "powers of 2 were taken: softmax uses exp", lambda values: _shares(np.exp2(values))),
    Mistake("log softmax", "logarithms came: softmax is their exp", lambda values: np.log(row_softmax(values))),
    Mistake(
        "sigmoid",
        "each value was squashed by itself (sigmoid): shares depend on the other values of the row",
        lambda values: 1 / (1 + np.exp(-values)),
    ),
    Mistake(
        "plain shares",
        "values were divided by their sum, without exp: negative values give negative weights",
        lambda values: _shares(np.asarray(values)),
    ),
    Mistake(
        "softmin",
        "the sign is the wrong way round: large values get the small weights",
        lambda values: row_softmax(-values),
    ),
)



def _scaled_by_value_width(hidden: NDArray, wq: NDArray, wk: NDArray, wv: NDArray, wo: NDArray) -> tuple:
    scaled = mistaken_attention(divisor=lambda query, hidden: wv.shape[-1] ** 0.5)
    return scaled(hidden, wq, wk, wv, wo)


WRONG_SINGLE = (
    Mistake(
        "scale by value width",
        "scores are divided by the root of the values' width d_v: they sum d_h products, the width of the queries",
        _scaled_by_value_width,
    ),
    Mistake(
        "attended and output swapped",
        "the results come as (output, weights, attended): output is after wo, attended before it",
        lambda *given: single_head_attention(*given)[::-1],
    ),
    Mistake(
        "attended after wo",
        "the third result is what the weights average, before wo: the output was given twice",
        lambda *given: (*single_head_attention(*given)[:2], single_head_attention(*given)[0]),
    ),
)
WRONG_HEADS = (
    Mistake(
        "one head",
        "the argument heads has no effect: attention runs over the whole width at once",
        lambda *given: multi_head_attention(*given[:-1], 1),
    ),
    Mistake(
        "softmax over heads",
        "softmax runs over heads: every head has its own shares, over the keys",
        mistaken_attention(softmax=lambda scores: np.moveaxis(row_softmax(np.moveaxis(scores, -3, -1)), -1, -3)),
    ),
    Mistake(
        "wo transposed",
        "wo was transposed: the output is merged @ wo",
        lambda hidden, wq, wk, wv, wo, heads: multi_head_attention(hidden, wq, wk, wv, wo.T, heads),
    ),
    Mistake(
        "merged and output swapped",
        "the results come as (output, weights, merged): output is after wo, merged before it",
        lambda *given: multi_head_attention(*given)[::-1],
    ),
    Mistake(
        "merged after wo",
        "the third result is merged, the heads side by side before wo: the output was given twice",
        lambda *given: (*multi_head_attention(*given)[:2], multi_head_attention(*given)[0]),
    ),
)

WRONG_AFFINE = (
    Mistake(
        "gamma and beta swapped",
        "gamma and beta are swapped in both norms",
        lambda x, a, f, h: decoder_block(x, (a[1], a[0], *a[2:]), (f[1], f[0], *f[2:]), h),
    ),
)

WRONG_POSITIONS = (
    Mistake(
        "turned by 2p + 1",
        "the first pair turns by the angle m itself, since base^0 = 1: pairs are counted from 0",
        lambda values, positions, base=10000.0: rope(values, positions * base ** (-2 / values.shape[-1]), base),
    ),
    Mistake(
        "one frequency",
        "every pair turns by the same angle: later pairs turn more slowly, by base^(-2p / d_h)",
        lambda values, positions, base=10000.0: rope(values, positions, 1.0),
    ),
    Mistake(
        "not interleaved back",
        "the turned pairs were laid side by side by halves: put them back at (0, 1), (2, 3), ...",
        lambda values, positions, base=10000.0: _by_halves(rope(values, positions, base)),
    ),
    Mistake(
        "angles rise",
        "the exponent's sign is wrong: later pairs turn more slowly, not faster",
        lambda values, positions, base=10000.0: rope(values, positions, 1 / base),
    ),
)


def _by_halves(values: NDArray) -> NDArray:
    return np.concatenate([values[..., 0::2], values[..., 1::2]], axis=-1)


WRONG_BATCH = (
    Mistake(
        "sequences in one row",
        "the sequences were joined into one long one, so that later ones see earlier ones",
        lambda hidden, wq, wk, wv, wo, heads: _joined(hidden, wq, wk, wv, wo, heads),
    ),
    Mistake(
        "first sequence for all",
        "every sequence got the first one's result",
        lambda hidden, *rest: tuple(
            np.stack([result] * len(hidden)) for result in multi_head_attention(hidden[0], *rest)[:2]
        ),
    ),
    Mistake(
        "one head",
        "the argument heads has no effect: attention runs over the whole width at once",
        lambda hidden, wq, wk, wv, wo, heads: multi_head_attention(hidden, wq, wk, wv, wo, 1)[:2],
    ),
)


def _joined(hidden: NDArray, wq: NDArray, wk: NDArray, wv: NDArray, wo: NDArray, heads: int) -> tuple[NDArray, NDArray]:
    batch, time, width = hidden.shape
    output, weights, _ = multi_head_attention(hidden.reshape(-1, width), wq, wk, wv, wo, heads)
    blocks = [weights[:, b * time : (b + 1) * time, b * time : (b + 1) * time] for b in range(batch)]
    return output.reshape(hidden.shape), np.stack(blocks)


WRONG_MODEL = (
    Mistake(
        "first block repeated",
        "the first block's weights were used in every block",
        lambda i, e, p, b, o, h: tiny_transformer_forward(i, e, p, [b[0]] * len(b), o, h),
    ),
    Mistake(
        "one head",
        "the argument heads has no effect: every block attends over the whole width at once",
        lambda i, e, p, b, o, h: tiny_transformer_forward(i, e, p, b, o, 1),
    ),
    Mistake(
        "last position only",
        "the logits of one position came: every position has its own",
        lambda *given: tiny_transformer_forward(*given)[-1],
    ),
    Mistake(
        "no projection",
        "the hidden states came: multiply them by output_projection",
        lambda i, e, p, b, o, h: tiny_transformer_forward(i, e, p, b, np.eye(len(o)), h),
    ),
    Mistake(
        "tied head",
        "the token embedding was used as the output projection: use the argument",
        lambda i, e, p, b, o, h: tiny_transformer_forward(i, e, p, b, e.T, h),
    ),
    Mistake(
        "last positions",
        "the last rows of the table of positions were taken: step t gets row t, counted from 0",
        lambda i, e, p, b, o, h: tiny_transformer_forward(i, e, p[-len(i) :], b, o, h),
    ),
)
WRONG_ACTIVATION = (
    Mistake(
        "sigmoid 1.702",
        "x * sigmoid(1.702 x) is a coarser stand-in, off by 0.02: use the tanh or the exact form",
        lambda x: x / (1 + np.exp(-1.702 * x)),
    ),
    Mistake(
        "tanh without x outside",
        "tanh of the inner sum alone came: GELU is x times half of 1 + tanh(...)",
        lambda x: np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)),
    ),
    Mistake(
        "root of pi over 2",
        "the factor inside tanh is the root of 2 / pi, not of pi / 2",
        lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(np.pi / 2) * (x + 0.044715 * x**3))),
    ),
)
WRONG_MEAN = (
    Mistake(
        "mean over the vocabulary",
        "the mean runs over the vocabulary too: each position has one label and one loss",
        lambda x, y, m: masked_cross_entropy(x, y, m) / x.shape[-1],
    ),
)
WRONG_MASK_KIND = (
    Mistake(
        "numbers to be added",
        "the table holds 0 and -inf, to be added: True and False are expected",
        lambda time: np.where(causal_mask(time), 0.0, -np.inf),
    ),
)
