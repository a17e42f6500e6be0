"""Softmax, causal mask, heads, attention and rotary positions in NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from proof_lm.attention import (
    MultiHeadAttention,
    batched_multi_head_attention,
    blocked_causal_attention,
    causal_attention,
    causal_mask,
    merge_heads,
    multi_head_attention,
    rope,
    row_softmax,
    single_head_attention,
    split_heads,
)

B, T, D, H = 3, 5, 8, 2  # d_h = 4: every size differs from every other

LOGITS = hnp.arrays(
    np.float64,
    hnp.array_shapes(min_dims=1, max_dims=4, max_side=6),
    elements=st.floats(-1e6, 1e6),
)


def draw(seed=0, batch=(), time=T, width=D, scale=0.5):
    """Hidden states (*batch, T, d) and the four square projections."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(*batch, time, width))
    return hidden, [rng.normal(scale=scale, size=(width, width)) for _ in range(4)]


# Softmax ------------------------------------------------------------------------------------------


@given(LOGITS)
@settings(max_examples=100, deadline=None)
def test_softmax_rows_are_finite_non_negative_and_sum_to_one(values):
    weights = row_softmax(values)
    assert weights.shape == values.shape
    assert np.isfinite(weights).all() and (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-12)


@given(hnp.arrays(np.float64, (3, 4), elements=st.floats(-30, 30)), st.floats(-1e4, 1e4))
@settings(max_examples=50, deadline=None)
def test_softmax_does_not_notice_a_constant_added_to_a_row(values, constant):
    np.testing.assert_allclose(row_softmax(values + constant), row_softmax(values), rtol=1e-8)


def test_softmax_is_the_ratio_of_exponentials_where_those_can_be_computed():
    values = np.random.default_rng(1).normal(size=(2, 3, 4))
    expected = np.exp(values) / np.exp(values).sum(axis=-1)[..., None]
    np.testing.assert_allclose(row_softmax(values), expected, rtol=1e-13)


def test_softmax_of_large_logits_is_finite_and_silent():
    with np.errstate(all="raise", under="ignore"):
        np.testing.assert_array_equal(row_softmax([[1000, 0], [0, -1000]]), [[1, 0], [1, 0]])


def test_softmax_of_a_fully_masked_row_is_zeros_and_leaves_the_other_rows_alone():
    with np.errstate(all="raise"):
        weights = row_softmax([[-np.inf, -np.inf], [0.0, -np.inf]])
    np.testing.assert_array_equal(weights, [[0, 0], [1, 0]])


def test_gradient_through_a_fully_masked_row_is_zero_not_nan():
    weights, upstream = row_softmax(np.full((1, 3), -np.inf)), np.array([[1.0, -2.0, 3.0]])
    gradient = weights * (upstream - (weights * upstream).sum(axis=-1, keepdims=True))
    np.testing.assert_array_equal(gradient, np.zeros((1, 3)))


def test_softmax_shows_nan_in_its_own_row_only():
    weights = row_softmax([[np.nan, 0.0], [0.0, 0.0]])
    assert np.isnan(weights[0]).all()
    np.testing.assert_array_equal(weights[1], [0.5, 0.5])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_softmax_keeps_the_dtype_and_leaves_its_input_alone(dtype):
    values = np.random.default_rng(2).normal(size=(2, 6)).astype(dtype)[:, ::2]
    before = values.copy()
    assert row_softmax(values).dtype == dtype
    np.testing.assert_array_equal(values, before)


# Mask ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("time", [1, 2, 7])
def test_mask_is_true_exactly_where_the_key_is_not_later_than_the_query(time):
    mask = causal_mask(time)
    assert mask.dtype == bool and mask.shape == (time, time)
    assert all(mask[query, key] == (key <= query) for query in range(time) for key in range(time))


@pytest.mark.parametrize("time", [0, -1])
def test_mask_refuses_a_time_below_one(time):
    with pytest.raises(ValueError, match=f"time must be at least 1, got {time}"):
        causal_mask(time)


# Heads --------------------------------------------------------------------------------------------


def test_split_gives_each_head_its_own_run_of_features_at_every_time():
    values = np.arange(T * 6).reshape(T, 6)
    heads = split_heads(values, 3)
    assert heads.shape == (3, T, 2)
    for head in range(3):
        np.testing.assert_array_equal(heads[head], values[:, 2 * head : 2 * head + 2])


@given(st.lists(st.integers(1, 3), max_size=2), st.integers(1, 5), st.integers(1, 4), st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_merge_undoes_split_and_split_undoes_merge(leading, time, heads, head_width):
    values = np.random.default_rng(3).normal(size=(*leading, time, heads * head_width))
    split = split_heads(values, heads)
    assert split.shape == (*leading, heads, time, head_width)
    np.testing.assert_array_equal(merge_heads(split), values)
    np.testing.assert_array_equal(split_heads(merge_heads(split), heads), split)


@pytest.mark.parametrize("heads", [3, 0, -2, 16])
def test_split_refuses_heads_that_do_not_divide_the_width(heads):
    with pytest.raises(ValueError, match=f"heads must divide the width 8, got {heads}"):
        split_heads(np.zeros((T, D)), heads)


# Attention ----------------------------------------------------------------------------------------


def by_the_book(query, key, value):
    """Causal attention written as sums over visible keys, one query at a time."""
    rows = []
    for i, q in enumerate(query):
        score = np.array([q @ key[j] / np.sqrt(len(q)) for j in range(i + 1)])
        weight = np.exp(score) / np.exp(score).sum()
        rows.append(sum(weight[j] * value[j] for j in range(i + 1)))
    return np.array(rows)


def test_two_token_example_gives_the_numbers_worked_out_on_paper():
    hidden = [[1, 0.5], [0.3, 0.9]]
    wq, wk, wv = [[1.2, 0.1], [0.4, 0.7]], [[0.8, 0.2], [0.5, 0.9]], [[0.6, 0.4], [0.3, 1.0]]
    output, weights, _ = single_head_attention(hidden, wq, wk, wv, [[1.1, -0.2], [0.5, 0.8]])
    np.testing.assert_allclose(weights, [[1, 0], [0.52, 0.48]], atol=0.005)
    np.testing.assert_allclose(output, [[1.28, 0.57], [1.15, 0.64]], atol=0.0051)


def test_single_head_draw_gives_the_stated_weights():
    rng = np.random.default_rng(41)
    hidden = rng.normal(size=(5, 6))
    output, weights, attended = single_head_attention(hidden, *(rng.normal(scale=0.25, size=(6, 6)) for _ in "qkvo"))
    assert output.shape == attended.shape == (5, 6) and weights.shape == (5, 5)
    assert [f"{weight:.3f}" for weight in weights[-1]] == ["0.276", "0.127", "0.206", "0.256", "0.135"]


def test_single_head_equals_the_sum_over_visible_keys_when_all_widths_differ():
    rng = np.random.default_rng(4)
    hidden, wq, wk = rng.normal(size=(T, 7)), rng.normal(size=(7, 3)), rng.normal(size=(7, 3))
    wv, wo = rng.normal(size=(7, 4)), rng.normal(size=(4, 7))
    output, weights, attended = single_head_attention(hidden, wq, wk, wv, wo)
    expected = by_the_book(hidden @ wq, hidden @ wk, hidden @ wv)
    np.testing.assert_allclose(attended, expected, rtol=1e-12)
    np.testing.assert_allclose(output, expected @ wo, rtol=1e-11)
    np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-12)


def test_multi_head_is_single_heads_side_by_side_scaled_by_the_root_of_the_head_width():
    hidden, (wq, wk, wv, wo) = draw()
    output, weights, merged = multi_head_attention(hidden, wq, wk, wv, wo, H)
    assert output.shape == merged.shape == (T, D) and weights.shape == (H, T, T)
    for head, columns in enumerate((slice(0, 4), slice(4, 8))):
        expected = by_the_book(*(hidden @ weight[:, columns] for weight in (wq, wk, wv)))
        np.testing.assert_allclose(merged[:, columns], expected, rtol=1e-11)
        _, alone, _ = single_head_attention(hidden, wq[:, columns], wk[:, columns], wv[:, columns], wo[columns])
        np.testing.assert_allclose(weights[head], alone, rtol=1e-12)
    np.testing.assert_allclose(output, merged @ wo, rtol=1e-12)


def test_multi_head_draw_has_the_stated_shapes():
    hidden = np.random.default_rng(41).normal(size=(5, 6))
    rng = np.random.default_rng(42)
    projections = [rng.normal(scale=0.2, size=(6, 6)) for _ in range(4)]
    _, weights, merged = multi_head_attention(hidden, *projections, heads=2)
    assert weights.shape == (2, 5, 5) and merged.shape == (5, 6)
    output, weights = batched_multi_head_attention(np.stack([hidden, hidden + 0.1]), *projections, heads=2)
    assert output.shape == (2, 5, 6) and weights.shape == (2, 2, 5, 5)


@pytest.mark.parametrize("position", range(T))
@pytest.mark.parametrize("heads", [1, H])
def test_no_output_before_a_replaced_position_changes(position, heads):
    hidden, projections = draw(5)
    before, _, _ = multi_head_attention(hidden, *projections, heads)
    hidden[position] = np.random.default_rng(6).normal(size=D)
    after, _, _ = multi_head_attention(hidden, *projections, heads)
    np.testing.assert_allclose(after[:position], before[:position], atol=1e-12)
    assert (np.abs(after[position:] - before[position:]).max(axis=-1) > 1e-6).all()


@pytest.mark.parametrize("row", range(B))
def test_no_sequence_sees_another(row):
    hidden, projections = draw(7, batch=(B,))
    before, weights = batched_multi_head_attention(hidden, *projections, H)
    alone, weights_alone, _ = multi_head_attention(hidden[row], *projections, H)
    np.testing.assert_allclose(before[row], alone, rtol=1e-11)
    np.testing.assert_allclose(weights[row], weights_alone, rtol=1e-11)
    hidden[row] = np.random.default_rng(8).normal(size=(T, D))
    after, _ = batched_multi_head_attention(hidden, *projections, H)
    others = [index for index in range(B) if index != row]
    np.testing.assert_array_equal(after[others], before[others])


@pytest.mark.parametrize("shape", [(T, D), (2, B, T, D)])
def test_batched_attention_refuses_what_is_not_a_batch(shape):
    with pytest.raises(ValueError, match=r"hidden_batch must be \(B, T, d\), got shape"):
        batched_multi_head_attention(np.zeros(shape), *draw()[1], H)


def test_large_inputs_stay_finite():
    hidden, projections = draw(9)
    output, weights, _ = multi_head_attention(1000 * hidden, *projections, H)
    assert np.isfinite(output).all()
    np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-12)


def test_attention_keeps_float32_takes_lists_and_leaves_its_inputs_alone():
    hidden, projections = draw(10, batch=(B,))
    small = [array.astype(np.float32) for array in (hidden, *projections)]
    before = [array.copy() for array in small]
    output, weights = batched_multi_head_attention(*small, H)
    assert output.dtype == weights.dtype == np.float32
    for array, copy in zip(small, before, strict=True):
        np.testing.assert_array_equal(array, copy)
    exact, _ = batched_multi_head_attention(hidden.tolist(), *(weight.tolist() for weight in projections), H)
    np.testing.assert_allclose(output, exact, atol=1e-5)


def test_attention_agrees_with_torch():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(11)
    query, key, value = rng.normal(size=(3, B, H, T, 4))
    expected = torch.nn.functional.scaled_dot_product_attention(
        *(torch.from_numpy(array) for array in (query, key, value)), is_causal=True
    )
    np.testing.assert_allclose(causal_attention(query, key, value)[0], expected.numpy(), rtol=1e-12)


@pytest.mark.parametrize("time", [1, 3, 4, 5, 9])
@pytest.mark.parametrize("block", [1, 4, 64])
def test_blocked_attention_is_causal_attention(time, block):
    query, key, value = np.random.default_rng(26).normal(size=(3, B, H, time, 4))
    for found, expected in zip(
        blocked_causal_attention(query, key, value, block), causal_attention(query, key, value), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-14)
    assert blocked_causal_attention(query, key, value, block, with_weights=False)[1] is None


def test_blocked_attention_of_rows_far_and_near_is_causal_attention_and_one_row_changes_no_earlier_bit():
    query, key, value = np.random.default_rng(28).normal(size=(3, H, T, 4))
    calm, _ = blocked_causal_attention(query, key, value)
    query[:, -1] *= 1e4  # its exponentials would overflow
    for found, expected in zip(
        blocked_causal_attention(query, key, value), causal_attention(query, key, value), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-14)
    np.testing.assert_array_equal(blocked_causal_attention(query, key, value)[0][:, :-1], calm[:, :-1])


@pytest.mark.parametrize("attention", [causal_attention, blocked_causal_attention])
def test_a_query_whose_scores_are_all_minus_infinity_attends_to_nothing(attention):
    query, key = np.full((2, 1), 1e300), np.full((2, 1), -1e300)
    with np.errstate(over="ignore"):
        attended, weights = attention(query, key, np.ones((2, 1)))
    np.testing.assert_array_equal(attended, 0)
    np.testing.assert_array_equal(weights, 0)


def test_blocked_attention_keeps_float32_and_leaves_its_inputs_alone():
    arrays = np.random.default_rng(27).normal(scale=100, size=(3, H, T, 4)).astype(np.float32)
    before = arrays.copy()
    attended, _ = blocked_causal_attention(*arrays, block=2)
    assert attended.dtype == np.float32 and np.isfinite(attended).all()
    np.testing.assert_array_equal(arrays, before)


# The layer ----------------------------------------------------------------------------------------


def test_layer_with_zero_biases_is_batched_multi_head_attention():
    layer = MultiHeadAttention(D, H, np.random.default_rng(12))
    hidden, _ = draw(13, batch=(B,))
    output, weights = batched_multi_head_attention(hidden, layer.wq, layer.wk, layer.wv, layer.wo, H)
    np.testing.assert_allclose(layer(hidden), output, rtol=1e-12)
    np.testing.assert_allclose(layer.weights, weights, rtol=1e-12)


@pytest.mark.parametrize("name", ["wq", "bq", "wk", "wv", "bv", "wo", "bo"])
def test_layer_uses_every_parameter(name):
    layer = MultiHeadAttention(D, H, np.random.default_rng(14))
    hidden, _ = draw(15, batch=(B,))
    before = layer(hidden)
    layer.parameters()[name][...] += np.random.default_rng(16).normal(size=layer.parameters()[name].shape)
    assert np.abs(layer(hidden) - before).max() > 1e-3


def test_key_bias_moves_all_scores_of_a_query_alike_and_so_changes_nothing():
    layer = MultiHeadAttention(D, H, np.random.default_rng(17))
    hidden, _ = draw(18, batch=(B,))
    before = layer(hidden)
    layer.bk[...] = np.random.default_rng(19).normal(size=D)
    np.testing.assert_allclose(layer(hidden), before, atol=1e-12)


def test_layer_counts_four_matrices_and_four_biases():
    assert MultiHeadAttention(512, 8, np.random.default_rng(0)).parameter_count == 1_050_624


def test_layer_names_the_argument_that_is_wrong():
    with pytest.raises(ValueError, match="num_heads must divide d_model 8, got 3"):
        MultiHeadAttention(8, 3, np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"x must be \(B, T, 8\), got shape \(5, 8\)"):
        MultiHeadAttention(8, 2, np.random.default_rng(0))(np.zeros((5, 8)))


# Rotary positions ---------------------------------------------------------------------------------


def test_rope_turns_interleaved_pairs_by_position_times_frequency():
    turned = rope([[1.0, 0.0, 0.0, 1.0]], [3])
    slow = 3 * 10000.0 ** (-2 / 4)
    np.testing.assert_allclose(turned, [[np.cos(3), np.sin(3), -np.sin(slow), np.cos(slow)]], rtol=1e-14)


@given(st.integers(0, 500), st.integers(0, 500), st.integers(0, 500), st.sampled_from([100.0, 10000.0]))
@settings(max_examples=60, deadline=None)
def test_rope_dot_product_depends_on_the_distance_only(query_position, key_position, shift, base):
    query, key = np.random.default_rng(20).normal(size=(2, 1, 6))
    here = rope(query, [query_position], base) @ rope(key, [key_position], base).T
    there = rope(query, [query_position + shift], base) @ rope(key, [key_position + shift], base).T
    np.testing.assert_allclose(there, here, atol=1e-9)


def test_rope_dot_product_does_depend_on_the_distance():
    query, key = np.random.default_rng(21).normal(size=(2, 1, 6))
    scores = [(rope(query, [distance]) @ rope(key, [0]).T).item() for distance in range(6)]
    assert np.abs(np.diff(scores)).min() > 1e-3


def test_rope_keeps_the_length_of_every_pair_and_leaves_position_zero_alone():
    values = np.random.default_rng(22).normal(size=(B, H, T, 6))
    turned = rope(values, np.arange(T))
    lengths = [np.linalg.norm(array.reshape(B, H, T, 3, 2), axis=-1) for array in (values, turned)]
    np.testing.assert_allclose(*lengths, rtol=1e-12)
    np.testing.assert_array_equal(turned[..., 0, :], values[..., 0, :])


def test_rope_treats_every_leading_index_alike():
    values = np.random.default_rng(23).normal(size=(B, H, T, 6))
    turned = rope(values, np.arange(7, 7 + T))
    for index in np.ndindex(B, H):
        np.testing.assert_array_equal(turned[index], rope(values[index], np.arange(7, 7 + T)))


def test_rope_uses_its_base():
    values = np.random.default_rng(24).normal(size=(T, 4))
    first, second = rope(values, np.arange(T), 10.0), rope(values, np.arange(T), 10000.0)
    np.testing.assert_array_equal(first[:, :2], second[:, :2])
    assert np.abs(first[1:, 2:] - second[1:, 2:]).min() > 1e-6


def test_rope_keeps_float32_takes_integers_and_is_exact_far_out():
    values = np.random.default_rng(25).normal(size=(2, 8))
    turned = rope(values.astype(np.float32), [100_000, 100_001])
    assert turned.dtype == np.float32
    np.testing.assert_allclose(turned, rope(values, [100_000, 100_001]), atol=1e-6)
    np.testing.assert_allclose(rope([[1, 0]], [1]), [[np.cos(1), np.sin(1)]], rtol=1e-14)


def test_rope_refuses_an_odd_width():
    with pytest.raises(ValueError, match="values must have an even last axis to turn in pairs, got 5"):
        rope(np.zeros((T, 5)), np.arange(T))
