"""LayerNorm, GELU, feed-forward, blocks, logits and masked loss in NumPy."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proof_lm.block import (
    MLP,
    DecoderBlock,
    LayerNorm,
    decoder_block,
    feed_forward,
    gelu,
    layer_norm,
    masked_cross_entropy,
    tiny_transformer_forward,
)


def block_weights(rng, d=6, d_ff=24, scale=0.3, plain=False):
    """One block's two tuples; gammas, betas and biases random unless plain."""

    def vector(size, centre):
        return np.full(size, float(centre)) if plain else centre + rng.normal(scale=0.3, size=size)

    wq, wk, wv, wo = (rng.normal(scale=scale, size=(d, d)) for _ in range(4))
    w1, w2 = rng.normal(scale=scale, size=(d, d_ff)), rng.normal(scale=scale, size=(d_ff, d))
    attention = (vector(d, 1), vector(d, 0), wq, wk, wv, wo)
    return attention, (vector(d, 1), vector(d, 0), w1, vector(d_ff, 0), w2, vector(d, 0))


# LayerNorm ----------------------------------------------------------------------------------------


def test_layer_norm_of_one_hot_row_is_the_value_worked_out_by_hand():
    result = layer_norm(np.array([1.0, 0, 0, 0]), np.ones(4), np.zeros(4))
    expected = np.array([0.75, -0.25, -0.25, -0.25]) / math.sqrt(0.1875 + 1e-5)
    np.testing.assert_allclose(result, expected, rtol=1e-14)
    assert f"{result[0]:.5f}" == "1.73200"


def test_layer_norm_of_a_constant_row_is_beta():
    beta = np.array([1.0, -2, 3])
    np.testing.assert_allclose(layer_norm(np.full((2, 3), 7.0), np.full(3, 5.0), beta), [beta, beta])


@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.integers(1, 4), min_size=0, max_size=3),
    st.integers(2, 9),
    st.floats(0.1, 50),
)
@settings(max_examples=50, deadline=None)
def test_layer_norm_gives_every_row_mean_zero_and_variance_one(seed, leading, d, spread):
    values = np.random.default_rng(seed).normal(3, spread, (*leading, d))
    result = layer_norm(values, np.ones(d), np.zeros(d))
    assert result.shape == values.shape
    variance = values.var(axis=-1)
    np.testing.assert_allclose(result.mean(axis=-1), 0, atol=1e-9)
    np.testing.assert_allclose(result.var(axis=-1), variance / (variance + 1e-5), rtol=1e-6)


def test_layer_norm_of_a_batch_is_layer_norm_of_each_row_by_itself():
    rng = np.random.default_rng(0)
    values, gamma, beta = rng.normal(size=(2, 3, 5)), rng.normal(size=5), rng.normal(size=5)
    together = layer_norm(values, gamma, beta, 0.1)
    for index in np.ndindex(2, 3):
        np.testing.assert_allclose(together[index], layer_norm(values[index], gamma, beta, 0.1))


def test_layer_norm_keeps_float32_takes_lists_and_leaves_its_input_alone():
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    before = values.copy()
    ones, zeros = np.ones(3, np.float32), np.zeros(3, np.float32)
    assert layer_norm(values, ones, zeros).dtype == np.float32
    np.testing.assert_array_equal(values, before)
    from_lists = layer_norm([[0, 1, 2], [3, 4, 5]], [1, 1, 1], [0, 0, 0])
    np.testing.assert_allclose(from_lists, layer_norm(before, ones, zeros), rtol=1e-5)


# GELU and feed-forward ----------------------------------------------------------------------------


def test_gelu_stays_within_5e_4_of_the_exact_form():
    values = np.linspace(-8, 8, 2001)
    exact = np.array([value * 0.5 * (1 + math.erf(value / math.sqrt(2))) for value in values])
    np.testing.assert_allclose(gelu(values), exact, atol=5e-4)


def test_gelu_known_points():
    np.testing.assert_allclose(gelu(np.array([-40.0, 0, 1, 40])), [0, 0, 0.841192, 40], atol=1e-6)


def test_gelu_minus_its_mirror_image_is_the_identity():
    values = np.linspace(-5, 5, 101)
    np.testing.assert_allclose(gelu(values) - gelu(-values), values, atol=1e-14)


def test_feed_forward_treats_every_position_alike_and_alone():
    rng = np.random.default_rng(1)
    w1, b1, w2, b2 = (rng.normal(size=shape) for shape in ((4, 7), 7, (7, 4), 4))
    values = rng.normal(size=(2, 3, 4))
    together = feed_forward(values, w1, b1, w2, b2)
    for index in np.ndindex(2, 3):
        np.testing.assert_allclose(together[index], feed_forward(values[index], w1, b1, w2, b2))


def test_feed_forward_uses_both_biases():
    zeros = np.zeros((3, 4))
    b1, b2 = np.array([1.0, -1, 2, 0.5, 3]), np.array([1.0, 2, 3, 4])
    np.testing.assert_allclose(feed_forward(zeros, np.zeros((4, 5)), b1, np.zeros((5, 4)), b2), [b2] * 3)
    w2 = np.random.default_rng(2).normal(size=(5, 4))
    np.testing.assert_allclose(feed_forward(zeros, np.zeros((4, 5)), b1, w2, b2), [gelu(b1) @ w2 + b2] * 3)


# The block ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("silenced", [(5, 4), (4, 4)])
def test_block_with_zero_sublayers_is_the_identity(silenced):
    rng = np.random.default_rng(3)
    attention, mlp = (list(weights) for weights in block_weights(rng))
    attention[silenced[0]] = np.zeros((6, 6))  # W_O, or W_V
    mlp[silenced[1]], mlp[5] = np.zeros((24, 6)), np.zeros(6)  # w2 and b2
    values = rng.normal(size=(5, 6))
    np.testing.assert_array_equal(decoder_block(values, tuple(attention), tuple(mlp), 2), values)


def test_block_with_silent_attention_adds_feed_forward_of_the_normalised_stream():
    rng = np.random.default_rng(4)
    attention, mlp = block_weights(rng)
    attention = (*attention[:5], np.zeros((6, 6)))
    values = rng.normal(2, 3, (5, 6))
    expected = values + feed_forward(layer_norm(values, mlp[0], mlp[1]), *mlp[2:])
    np.testing.assert_allclose(decoder_block(values, attention, mlp, 3), expected)


def test_block_reads_no_later_position():
    rng = np.random.default_rng(5)
    attention, mlp = block_weights(rng)
    values = rng.normal(size=(7, 6))
    original = decoder_block(values, attention, mlp, 3)
    for position in range(7):
        changed = values.copy()
        changed[position] = rng.normal(size=6)
        moved = np.abs(decoder_block(changed, attention, mlp, 3) - original).max(axis=-1)
        assert moved[:position].max(initial=0) < 1e-12
        assert moved[position:].min() > 1e-6


def test_block_refuses_heads_that_do_not_divide_the_width():
    attention, mlp = block_weights(np.random.default_rng(6))
    with pytest.raises(ValueError, match="heads"):
        decoder_block(np.zeros((5, 6)), attention, mlp, 4)


# Classes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_class_block_keeps_the_shape_of_a_batch(norm):
    hidden = np.random.default_rng(7).normal(size=(2, 5, 8))
    assert DecoderBlock(norm=norm)(hidden).shape == (2, 5, 8)


def test_class_block_keeps_sequences_apart_and_the_future_hidden():
    rng = np.random.default_rng(8)
    block = DecoderBlock(d_model=12, num_heads=3, d_ff=20, seed=1)
    hidden = rng.normal(size=(4, 5, 12))
    changed = hidden.copy()
    changed[1, 2] = rng.normal(size=12)
    moved = np.abs(block(changed) - block(hidden)).max(axis=-1)  # (B, T)
    expected = np.zeros((4, 5), bool)
    expected[1, 2:] = True
    np.testing.assert_array_equal(moved > 1e-9, expected)


def test_pre_norm_and_post_norm_are_two_graphs_over_the_same_weights():
    hidden = 3 + np.random.default_rng(9).normal(size=(2, 5, 8))
    pre, post = DecoderBlock(norm="pre"), DecoderBlock(norm="post")
    np.testing.assert_array_equal(pre.mlp.w1, post.mlp.w1)
    first = hidden + pre.attention(pre.norm1(hidden))
    np.testing.assert_allclose(pre(hidden), first + pre.mlp(pre.norm2(first)))
    first = post.norm1(hidden + post.attention(hidden))
    np.testing.assert_allclose(post(hidden), post.norm2(first + post.mlp(first)))
    np.testing.assert_allclose(post(hidden).mean(axis=-1), 0, atol=1e-12)  # the stream itself is normalised
    assert np.abs(pre(hidden).mean(axis=-1)).min() > 0.5


def test_class_parts_are_the_functions():
    rng = np.random.default_rng(10)
    values = rng.normal(size=(2, 3, 8))
    norm, mlp = LayerNorm(8, epsilon=0.5), MLP(8, 20, rng)
    norm.gamma, norm.beta, mlp.b1, mlp.b2 = (rng.normal(size=size) for size in (8, 8, 20, 8))
    np.testing.assert_array_equal(norm(values), layer_norm(values, norm.gamma, norm.beta, 0.5))
    np.testing.assert_array_equal(mlp(values), feed_forward(values, mlp.w1, mlp.b1, mlp.w2, mlp.b2))


def test_same_seed_same_block_other_seed_other_block():
    hidden = np.random.default_rng(11).normal(size=(1, 3, 8))
    np.testing.assert_array_equal(DecoderBlock(seed=7)(hidden), DecoderBlock(seed=7)(hidden))
    assert np.abs(DecoderBlock(seed=7)(hidden) - DecoderBlock(seed=8)(hidden)).max() > 1e-3


def count(layer):
    return sum(array.size for array in layer.parameters().values())


def test_parameter_counts_of_the_published_size():
    block = DecoderBlock(512, 8, 2048)
    assert count(block.attention) == 1_050_624
    assert count(block.mlp) == 2_099_712
    assert count(block.norm1) + count(block.norm2) == 2_048
    assert block.parameter_count == 3_152_384


@given(st.integers(1, 4), st.integers(1, 5), st.integers(1, 40))
@settings(max_examples=25, deadline=None)
def test_parameter_count_follows_the_formula(heads, d_h, d_ff):
    d = heads * d_h
    assert DecoderBlock(d, heads, d_ff).parameter_count == 4 * d * d + 2 * d * d_ff + 9 * d + d_ff


def test_parameters_are_the_arrays_that_the_block_computes_with():
    block = DecoderBlock()
    hidden = np.random.default_rng(14).normal(size=(2, 5, 8))
    for name in ("attention.wo", "attention.bo", "mlp.w2", "mlp.b2"):
        block.parameters()[name][:] = 0
    np.testing.assert_array_equal(block(hidden), hidden)
    block.parameters()["mlp.b2"][:] = 1
    np.testing.assert_array_equal(block(hidden), hidden + 1)


def test_unknown_norm_is_refused_by_name():
    with pytest.raises(ValueError, match="norm must be 'pre' or 'post', got 'none'"):
        DecoderBlock(norm="none")


# Logits -------------------------------------------------------------------------------------------


def lesson_model():
    rng = np.random.default_rng(43)
    wq, wk, wv, wo = (rng.normal(scale=0.2, size=(6, 6)) for _ in range(4))
    w1, w2 = rng.normal(scale=0.15, size=(6, 24)), rng.normal(scale=0.15, size=(24, 6))
    embedding, positions = rng.normal(scale=0.2, size=(9, 6)), rng.normal(scale=0.2, size=(5, 6))
    projection = rng.normal(scale=0.2, size=(6, 9))
    one, zero = np.ones(6), np.zeros(6)
    block = (one, zero, wq, wk, wv, wo), (one, zero, w1, np.zeros(24), w2, zero)
    return embedding, positions, [block], projection


def test_tiny_transformer_gives_logits_of_every_position():
    embedding, positions, blocks, projection = lesson_model()
    logits = tiny_transformer_forward([0, 1, 2, 3, 4], embedding, positions, blocks, projection, 2)
    assert logits.shape == (5, 9)
    hidden = decoder_block(embedding[:5] + positions, *blocks[0], 2)
    np.testing.assert_allclose(logits, hidden @ projection)


def test_tiny_transformer_without_blocks_is_embedding_plus_position_times_projection():
    embedding, positions, _, projection = lesson_model()
    logits = tiny_transformer_forward(np.array([3, 3], np.int32), embedding, positions, [], projection, 2)
    np.testing.assert_allclose(logits, (embedding[[3, 3]] + positions[:2]) @ projection)


def test_tiny_transformer_passes_every_block_in_order():
    embedding, positions, _, projection = lesson_model()
    rng = np.random.default_rng(12)
    first, second = block_weights(rng), block_weights(rng)
    hidden = embedding[[8, 0, 7]] + positions[:3]
    expected = decoder_block(decoder_block(hidden, *first, 3), *second, 3) @ projection
    logits = tiny_transformer_forward([8, 0, 7], embedding, positions, [first, second], projection, 3)
    np.testing.assert_allclose(logits, expected)


@pytest.mark.parametrize("token_ids", [[0, 9], [-1, 2], [0, 1, 2, 3, 4, 5]])
def test_tiny_transformer_refuses_impossible_token_ids_by_name(token_ids):
    with pytest.raises(ValueError, match=r"^token_ids "):
        tiny_transformer_forward(token_ids, *lesson_model(), 2)


# Loss ---------------------------------------------------------------------------------------------


def test_uniform_logits_cost_ln_vocabulary():
    loss = masked_cross_entropy(np.full((4, 9), 3.0), [0, 8, 4, 4], [True] * 4)
    assert loss == pytest.approx(math.log(9), rel=1e-14)
    assert type(loss) is float


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(1, 4), min_size=0, max_size=3))
@settings(max_examples=50, deadline=None)
def test_loss_is_the_mean_over_kept_positions_one_by_one(seed, leading):
    rng = np.random.default_rng(seed)
    logits, labels = rng.normal(0, 3, (*leading, 7)), rng.integers(0, 7, leading)
    mask = rng.random(leading) < 0.6
    terms = [
        math.log(math.fsum(np.exp(logits[index]))) - logits[index][labels[index]]
        for index in np.ndindex(*leading)
        if mask[index]
    ]
    expected = math.fsum(terms) / len(terms) if terms else 0.0
    assert masked_cross_entropy(logits, labels, mask) == pytest.approx(expected, abs=1e-12)


def test_masked_padding_changes_nothing_whatever_stands_there():
    rng = np.random.default_rng(13)
    logits, labels = rng.normal(size=(2, 3, 5)), rng.integers(0, 5, (2, 3))
    mask = np.array([[True, True, False], [True, False, True]])
    padded_logits = np.concatenate([logits, np.full((2, 4, 5), np.nan)], axis=1)
    padded_labels = np.concatenate([labels, np.full((2, 4), -100)], axis=1)
    padded_mask = np.concatenate([mask, np.zeros((2, 4), bool)], axis=1)
    plain = masked_cross_entropy(logits, labels, mask)
    assert masked_cross_entropy(padded_logits, padded_labels, padded_mask) == plain


def test_all_false_mask_costs_zero():
    assert masked_cross_entropy(np.ones((2, 3, 5)), np.zeros((2, 3), int), np.zeros((2, 3), bool)) == 0.0


def test_loss_is_stable_and_blind_to_a_shift_of_a_row():
    logits = np.array([[1000.0, 0], [0, -1000]])
    assert masked_cross_entropy(logits, [0, 1], [True, True]) == pytest.approx(500)
    small = np.array([[0.3, -0.2], [1.0, 2.0]])
    shifted = small + np.array([[1e4], [-1e4]])
    keep = [True, True]
    assert masked_cross_entropy(shifted, [1, 0], keep) == pytest.approx(
        masked_cross_entropy(small, [1, 0], keep), abs=1e-9
    )


@pytest.mark.parametrize("label", [-1, 5])
def test_kept_label_outside_the_vocabulary_is_refused_by_name(label):
    with pytest.raises(ValueError, match=r"^labels must lie in 0\.\.4"):
        masked_cross_entropy(np.zeros((2, 5)), [0, label], [True, True])


def test_shapes_that_do_not_match_are_refused_by_name():
    with pytest.raises(ValueError, match="loss_mask"):
        masked_cross_entropy(np.zeros((2, 5)), [0, 1], [True, True, False])
