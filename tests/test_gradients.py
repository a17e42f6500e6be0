"""Every backward pass against central differences over all entries and against torch autograd."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from proof_lm import gradients
from proof_lm.attention import causal_attention, multi_head_attention, row_softmax
from proof_lm.block import decoder_block, feed_forward, gelu, layer_norm, masked_cross_entropy

EPSILON, TOLERANCE = 1e-5, 1e-6


@dataclass(frozen=True)
class Part:
    """A function of arrays: its draw of inputs, forward, backward, and the forward in torch."""

    draw: Callable  # (rng, leading axes, time, heads, head width, feed-forward width) -> inputs
    forward: Callable
    backward: Callable  # (*inputs, upstream) -> one gradient for every input
    torch_forward: Callable


def one(function):
    """A backward that returns one gradient, as a tuple of one."""
    return lambda *arguments: (function(*arguments),)


def draw_block(rng, leading, time, heads, head_width, d_ff):
    d = heads * head_width
    square = [rng.normal(scale=d**-0.5, size=(d, d)) for _ in range(4)]
    mlp = [rng.normal(scale=0.4, size=shape) for shape in ((d, d_ff), (d_ff,), (d_ff, d), (d,))]
    norms = [rng.normal(centre, 0.4, d) for centre in (1, 0, 1, 0)]
    return [rng.normal(size=(*leading, time, d)), *norms[:2], *square, *norms[2:], *mlp]


def torch_attention(hidden, wq, wk, wv, wo, heads):
    split = [(hidden @ weight).unflatten(-1, (heads, -1)).transpose(-3, -2) for weight in (wq, wk, wv)]
    merged = F.scaled_dot_product_attention(*split, is_causal=True).transpose(-3, -2).flatten(-2)
    return merged @ wo


def torch_feed_forward(values, w1, b1, w2, b2):
    return F.gelu(values @ w1 + b1, approximate="tanh") @ w2 + b2


def torch_block(x, gamma1, beta1, wq, wk, wv, wo, gamma2, beta2, w1, b1, w2, b2, heads):
    x = x + torch_attention(F.layer_norm(x, gamma1.shape, gamma1, beta1), wq, wk, wv, wo, heads)
    return x + torch_feed_forward(F.layer_norm(x, gamma2.shape, gamma2, beta2), w1, b1, w2, b2)


def flat_block_backward(*arguments, heads):
    *inputs, upstream = arguments
    d_values, d_attention, d_feed_forward = gradients.decoder_block_backward(
        inputs[0], tuple(inputs[1:7]), tuple(inputs[7:]), heads, upstream
    )
    return d_values, *d_attention, *d_feed_forward


def parts(heads: int) -> dict[str, Part]:
    """The parts of a block; those with heads have this many."""

    def norm(values, gamma, beta):
        return layer_norm(values, gamma, beta, 1e-3)

    def norm_backward(values, gamma, beta, upstream):
        return gradients.layer_norm_backward(values, gamma, 1e-3, upstream)

    def softmax_backward(scores, upstream):
        return gradients.softmax_backward(row_softmax(scores), upstream)

    def heads_of(rng, leading, time, heads, head_width, d_ff):
        shapes = (head_width, head_width, head_width + 1)
        return [rng.normal(size=(*leading, heads, time, width)) for width in shapes]

    def multi_head(*inputs):
        return multi_head_attention(*inputs, heads)[0]

    def multi_head_backward(*arguments):
        *inputs, upstream = arguments
        return gradients.multi_head_attention_backward(*inputs, heads, upstream)

    def block(*inputs):
        return decoder_block(inputs[0], inputs[1:7], inputs[7:], heads)

    return {
        "linear": Part(
            lambda *sizes: [draw_block(*sizes)[i] for i in (0, 9)],
            lambda values, weight: values @ weight,
            gradients.linear_backward,
            lambda values, weight: values @ weight,
        ),
        "softmax": Part(
            lambda *sizes: draw_block(*sizes)[:1],
            row_softmax,
            one(softmax_backward),
            lambda scores: torch.softmax(scores, dim=-1),
        ),
        "attention": Part(
            heads_of,
            lambda *inputs: causal_attention(*inputs)[0],
            gradients.attention_backward,
            lambda *inputs: F.scaled_dot_product_attention(*inputs, is_causal=True),
        ),
        "multi_head_attention": Part(
            lambda *sizes: [draw_block(*sizes)[i] for i in (0, 3, 4, 5, 6)],
            multi_head,
            multi_head_backward,
            lambda *inputs: torch_attention(*inputs, heads),
        ),
        "layer_norm": Part(
            lambda *sizes: draw_block(*sizes)[:3],
            norm,
            norm_backward,
            lambda values, gamma, beta: F.layer_norm(values, gamma.shape, gamma, beta, 1e-3),
        ),
        "gelu": Part(
            lambda *sizes: [3 * draw_block(*sizes)[0]],
            gelu,
            one(gradients.gelu_backward),
            lambda values: F.gelu(values, approximate="tanh"),
        ),
        "feed_forward": Part(
            lambda *sizes: [draw_block(*sizes)[i] for i in (0, 9, 10, 11, 12)],
            feed_forward,
            gradients.feed_forward_backward,
            torch_feed_forward,
        ),
        "decoder_block": Part(
            draw_block,
            block,
            lambda *arguments: flat_block_backward(*arguments, heads=heads),
            lambda *inputs: torch_block(*inputs, heads=heads),
        ),
    }


PARTS = tuple(parts(1))
SIZES = {
    "seed": st.integers(0, 2**32 - 1),
    "leading": st.lists(st.integers(1, 2), max_size=2),
    "time": st.integers(1, 4),
    "heads": st.integers(1, 3),
    "head_width": st.integers(2, 3),
    "d_ff": st.integers(1, 5),
}


def drawn(name, seed, leading, time, heads, head_width, d_ff):
    """A part, its inputs and a random upstream."""
    rng = np.random.default_rng(seed)
    part = parts(heads)[name]
    inputs = part.draw(rng, tuple(leading), time, heads, head_width, d_ff)
    return part, inputs, rng.normal(size=np.shape(part.forward(*inputs)))


def loss_of(part, inputs, position, upstream):
    """The loss sum(output * upstream) as a function of one input."""

    def loss(value):
        return np.sum(part.forward(*inputs[:position], value, *inputs[position + 1 :]) * upstream)

    return loss


@pytest.mark.parametrize("name", PARTS)
@given(**SIZES)
@settings(max_examples=8, deadline=None)
def test_backward_equals_central_differences_in_every_entry(name, **sizes):
    part, inputs, upstream = drawn(name, **sizes)
    found = part.backward(*inputs, upstream)
    assert len(found) == len(inputs)
    for position, (value, gradient) in enumerate(zip(inputs, found, strict=True)):
        loss = loss_of(part, inputs, position, upstream)
        fine, coarse = (gradients.finite_difference_gradient(loss, value, step) for step in (EPSILON, 2 * EPSILON))
        numeric = (4 * fine - coarse) / 3  # rows with little spread bend so much that the epsilon^2 term must go
        np.testing.assert_allclose(gradient, numeric, rtol=1e-6, atol=5e-8, err_msg=f"input {position}")


@pytest.mark.parametrize("name", PARTS)
@given(**SIZES)
@settings(max_examples=25, deadline=None)
def test_backward_equals_torch_autograd(name, **sizes):
    part, inputs, upstream = drawn(name, **sizes)
    tensors = [torch.tensor(value, requires_grad=True) for value in inputs]
    part.torch_forward(*tensors).backward(torch.tensor(upstream))
    for gradient, tensor in zip(part.backward(*inputs, upstream), tensors, strict=True):
        np.testing.assert_allclose(gradient, tensor.grad.numpy(), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", PARTS)
def test_backward_leaves_its_arguments_alone(name):
    part, inputs, upstream = drawn(name, 41, [2], 3, 2, 3, 5)
    before = [value.copy() for value in (*inputs, upstream)]
    part.backward(*inputs, upstream)
    for value, old in zip((*inputs, upstream), before, strict=True):
        np.testing.assert_array_equal(value, old)


@pytest.mark.parametrize("name", PARTS)
def test_one_percent_error_in_any_one_gradient_is_caught(name):
    part, inputs, upstream = drawn(name, 41, [2], 3, 2, 3, 5)
    for position, gradient in enumerate(part.backward(*inputs, upstream)):
        loss = loss_of(part, inputs, position, upstream)
        arguments = (EPSILON, TOLERANCE)
        rng = np.random.default_rng(41)
        assert gradients.gradient_check(loss, inputs[position], gradient, *arguments)
        assert not gradients.gradient_check(loss, inputs[position], 1.01 * gradient, *arguments)
        assert gradients.directional_gradient_check(loss, inputs[position], gradient, EPSILON, 1e-5, rng)
        assert not gradients.directional_gradient_check(loss, inputs[position], 1.01 * gradient, EPSILON, 1e-5, rng)


@given(seed=st.integers(0, 2**32 - 1), data=st.data())
@settings(max_examples=30, deadline=None)
def test_one_percent_error_in_any_single_entry_is_caught(seed, data):
    part, inputs, upstream = drawn("attention", seed, [], 3, 2, 3, 1)
    gradient = part.backward(*inputs, upstream)[2]
    entry = np.unravel_index(data.draw(st.integers(0, gradient.size - 1)), gradient.shape)
    planted = gradient.copy()
    planted[entry] *= 1.01
    loss = loss_of(part, inputs, 2, upstream)
    caught = not gradients.gradient_check(loss, inputs[2], planted, EPSILON, TOLERANCE)
    assert caught or abs(gradient[entry]) < 1e-5  # below that, one percent drowns in the room for rounding


# The projection of the lesson ---------------------------------------------------------------------------


def lesson_projection():
    rng = np.random.default_rng(44)
    return rng.normal(size=(4, 6)), rng.normal(scale=0.2, size=(6, 6)), rng.normal(size=(4, 6))


def test_projection_of_the_lesson_agrees_with_differences_to_the_last_digits():
    context, projection, upstream = lesson_projection()
    loss, gradient = gradients.output_projection_loss_and_grad(context, projection, upstream)
    assert isinstance(loss, float) and loss == pytest.approx(np.vdot(context @ projection, upstream))
    numeric = gradients.finite_difference_gradient(
        lambda value: gradients.output_projection_loss_and_grad(context, value, upstream)[0], projection, 1e-5
    )
    np.testing.assert_allclose(gradient, numeric, atol=1e-8, rtol=1e-6)
    assert np.abs(gradient - numeric).max() < 1e-9


def test_projection_from_one_width_to_another():
    rng = np.random.default_rng(1)
    context, projection, upstream = rng.normal(size=(5, 3)), rng.normal(size=(3, 7)), rng.normal(size=(5, 7))
    _, gradient = gradients.output_projection_loss_and_grad(context, projection, upstream)
    assert gradients.gradient_check(lambda value: np.sum(context @ value * upstream), projection, gradient, 1e-5, 1e-6)


# Finite differences and the checks over them ------------------------------------------------------------


def test_central_difference_of_a_cubic_has_the_error_that_taylor_predicts():
    # ((x + e)^3 - (x - e)^3) / 2e = 3 x^2 + e^2; a one-sided difference would be off by 3 x e
    numeric = gradients.finite_difference_gradient(lambda x: float(np.sum(x**3)), np.array([[1.0, -2.0]]), 1e-2)
    np.testing.assert_allclose(numeric, [[3 + 1e-4, 12 + 1e-4]], rtol=1e-9)


def test_differences_take_float32_integers_lists_and_scalars():
    def loss(x):
        return np.sum(np.asarray(x) ** 2)

    for parameter in (np.array([1, 2]), [1, 2], np.array([1, 2], dtype=np.float32)):
        numeric = gradients.finite_difference_gradient(loss, parameter, 1e-5)
        assert numeric.dtype == np.float64
        np.testing.assert_allclose(numeric, [2, 4], rtol=1e-8)
    np.testing.assert_allclose(gradients.finite_difference_gradient(loss, 3.0, 1e-5), 6, rtol=1e-8)


def test_parameter_is_left_as_it_was_even_when_the_loss_raises_or_writes():
    parameter = np.arange(6.0).reshape(2, 3)
    calls = []

    def raises(value):
        calls.append(value)
        if len(calls) == 6:
            raise RuntimeError("loss failed")
        return value.sum()

    def writes(value):
        value *= 2
        return value.sum()

    with pytest.raises(RuntimeError, match="loss failed"):
        gradients.finite_difference_gradient(raises, parameter, 1e-5)
    np.testing.assert_allclose(gradients.finite_difference_gradient(writes, parameter, 1e-5), 2, rtol=1e-8)
    np.testing.assert_array_equal(parameter, np.arange(6.0).reshape(2, 3))


@pytest.mark.parametrize("epsilon", [0, -1e-5, np.nan, np.inf])
def test_epsilon_that_gives_no_difference_is_refused_by_name(epsilon):
    with pytest.raises(ValueError, match="epsilon must be positive"):
        gradients.finite_difference_gradient(np.sum, np.ones(2), epsilon)


CHECKS = {
    "every entry": gradients.gradient_check,
    "directions": lambda *arguments: gradients.directional_gradient_check(*arguments, np.random.default_rng(41)),
}


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_checks_refuse_to_pass_over_nothing(check):
    with pytest.raises(ValueError, match="no entries"):
        check(np.sum, np.zeros((0, 3)), np.zeros((0, 3)), 1e-5, 1e-6)


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
@pytest.mark.parametrize("epsilon", [0, -1e-5, np.inf, np.nan])
def test_checks_refuse_a_step_that_is_none(check, epsilon):
    with pytest.raises(ValueError, match="epsilon must be positive and finite"):
        check(np.sum, np.ones(3), np.ones(3), epsilon, 1e-6)


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
@pytest.mark.parametrize(
    "wrong",
    [np.ones(1), np.float64(1), np.ones((3, 1)), [1, np.nan, 1], [1, np.inf, 1], np.zeros(3)],
    ids=["shape 1", "scalar", "column", "nan", "inf", "zeros"],
)
def test_checks_say_false_to_a_wrong_shape_and_to_numbers_that_are_none(check, wrong):
    assert check(np.sum, np.arange(3.0), np.ones(3), 1e-5, 1e-6) is True
    assert check(np.sum, np.arange(3.0), wrong, 1e-5, 1e-6) is False


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
@pytest.mark.parametrize("loss", [lambda x: np.nan, lambda x: np.inf if x[0] > 0 else 0.0])
def test_checks_say_false_when_the_loss_is_no_number(check, loss):
    assert check(loss, np.zeros(1), np.array([np.inf]), 1e-5, 1e-6) is False
    assert check(loss, np.zeros(1), np.zeros(1), 1e-5, 1e-6) is False


def test_directions_need_few_losses_and_at_least_one_direction():
    calls = []
    arguments = (lambda x: calls.append(0) or np.sum(x), np.ones((30, 40)), np.ones((30, 40)), 1e-5, 1e-6)
    assert gradients.directional_gradient_check(*arguments, np.random.default_rng(41), directions=5)
    assert len(calls) == 10
    with pytest.raises(ValueError, match="directions must be at least 1"):
        gradients.directional_gradient_check(*arguments, np.random.default_rng(41), directions=0)


def test_layer_norm_followed_by_a_plain_sum_has_no_gradient_to_check():
    rng = np.random.default_rng(41)
    values, gamma, plain = rng.normal(size=(4, 6)), np.ones(6), np.ones((4, 6))

    def wrong_backward(upstream):  # treats mean and deviation as constants
        centred = upstream - upstream.mean(axis=-1, keepdims=True)
        return centred / np.sqrt(values.var(axis=-1, keepdims=True) + 1e-5)

    def passes(upstream):
        return gradients.gradient_check(
            lambda x: np.sum(layer_norm(x, gamma, np.zeros(6)) * upstream),
            values,
            wrong_backward(upstream),
            1e-5,
            1e-6,
        )

    assert passes(plain)
    assert not passes(rng.normal(size=(4, 6)))


# What masks and extremes do -----------------------------------------------------------------------------


def test_fully_masked_row_gets_a_zero_gradient_and_no_nan():
    scores = np.array([[-np.inf, -np.inf, -np.inf], [1.0, -np.inf, 0.5], [1000.0, -1000.0, 0.0]])
    gradient = gradients.softmax_backward(row_softmax(scores), np.array([[1.0, 2, 3]] * 3))
    assert np.isfinite(gradient).all()
    assert (gradient[0] == 0).all() and gradient[1, 1] == 0
    np.testing.assert_allclose(gradient.sum(axis=-1), 0, atol=1e-15)


def test_future_keys_and_values_get_no_gradient_from_earlier_queries():
    rng = np.random.default_rng(41)
    query, key, value, upstream = rng.normal(size=(4, 3, 7, 5))
    upstream[:, 4:] = 0  # the loss looks at queries 0 to 3 only
    d_query, d_key, d_value = gradients.attention_backward(query, key, value, upstream)
    for gradient in (d_query, d_key, d_value):
        assert (gradient[:, 4:] == 0).all() and (gradient[:, :4] != 0).any()


def test_leading_axes_are_so_many_separate_attentions():
    rng = np.random.default_rng(41)
    inputs = rng.normal(size=(4, 2, 3, 5, 4))
    together = gradients.attention_backward(*inputs)
    for b, h in np.ndindex(2, 3):
        for whole, alone in zip(together, gradients.attention_backward(*inputs[:, b, h]), strict=True):
            np.testing.assert_allclose(whole[b, h], alone, rtol=1e-12)


def test_extreme_inputs_give_finite_gradients():
    rng = np.random.default_rng(41)
    hidden = 1e3 * rng.normal(size=(5, 4))
    assert all(np.isfinite(g).all() for g in gradients.attention_backward(hidden, hidden, hidden, hidden))
    constant_row = gradients.layer_norm_backward(np.full((1, 4), 7.0), np.ones(4), 1e-5, np.ones((1, 4)))
    assert all(np.isfinite(g).all() for g in constant_row)
    assert np.isfinite(gradients.gelu_backward(np.array([-50.0, 0, 50]), np.ones(3))).all()
    np.testing.assert_allclose(gradients.gelu_backward(np.array([-50.0, 0, 50]), np.ones(3)), [0, 0.5, 1])


@given(
    seed=st.integers(0, 2**32 - 1),
    leading=st.lists(st.integers(1, 4), min_size=1, max_size=2),
    vocabulary=st.integers(1, 5),
)
@settings(max_examples=25, deadline=None)
def test_cross_entropy_backward_equals_differences_and_autograd(seed, leading, vocabulary):
    rng = np.random.default_rng(seed)
    logits = rng.normal(scale=3, size=(*leading, vocabulary))
    labels, kept = rng.integers(vocabulary, size=leading), rng.random(leading) < 0.6
    gradient = gradients.cross_entropy_backward(logits, labels, kept)
    assert gradients.gradient_check(
        lambda value: masked_cross_entropy(value, labels, kept), logits, gradient, EPSILON, TOLERANCE
    )
    tensor = torch.tensor(logits, requires_grad=True)
    losses = F.cross_entropy(tensor.flatten(0, -2), torch.tensor(labels).flatten(), reduction="none").reshape(leading)
    torch.where(torch.tensor(kept), losses, 0).sum().div(max(int(kept.sum()), 1)).backward()
    np.testing.assert_allclose(gradient, tensor.grad.numpy(), atol=1e-12)


def test_cross_entropy_of_no_kept_position_has_zero_gradient_and_never_reads_masked_labels():
    logits = np.random.default_rng(41).normal(size=(3, 4))
    nothing = gradients.cross_entropy_backward(logits, [0, 1, 2], [False] * 3)
    assert nothing.shape == (3, 4) and not nothing.any()
    filler = gradients.cross_entropy_backward(logits, [0, -100, 99], [True, False, False])
    assert filler[0].any() and not filler[1:].any()


def test_block_backward_refuses_heads_that_do_not_divide_the_width():
    rng = np.random.default_rng(41)
    inputs = draw_block(rng, (), 3, 2, 3, 5)
    with pytest.raises(ValueError, match="heads must divide"):
        flat_block_backward(*inputs, inputs[0], heads=4)
