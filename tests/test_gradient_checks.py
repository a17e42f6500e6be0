"""The properties of a backward pass hold for ours and fail, with a name, for each known mistake."""

import numpy as np
import pytest

from proof_lm import gradients as ours
from proof_lm.checks import gradients as checks
from proof_lm.checks.core import find

PROPERTIES = [
    (checks.projection_gradient_is_the_slope, ours.output_projection_loss_and_grad),
    (checks.softmax_gradient_is_the_slope, ours.softmax_backward),
    (checks.attention_gradient_is_the_slope, ours.attention_backward),
    (checks.layer_norm_gradient_is_the_slope, ours.layer_norm_backward),
    (checks.gelu_gradient_is_the_slope, ours.gelu_backward),
    (checks.block_gradient_is_the_slope, ours.decoder_block_backward),
    (checks.score_gradients_sum_to_zero, ours.softmax_backward),
    (checks.norm_gradients_sum_to_zero, ours.layer_norm_backward),
    (checks.future_gets_no_gradient, ours.attention_backward),
]
RIGHT_GRADIENT = {"mean of all", "loss without upstream"}  # these get the loss wrong, which is not asked here
SLOPES = [
    (prop, mistake) for prop, _ in PROPERTIES[:6] for mistake in prop.mistakes if mistake.name not in RIGHT_GRADIENT
]


@pytest.mark.parametrize(("prop", "function"), PROPERTIES, ids=[prop.name for prop, _ in PROPERTIES])
@pytest.mark.parametrize("seed", [41, 1, 2, 3])
def test_property_holds_for_the_package(prop, function, seed):
    finding, cases = find(prop, function, seed)
    assert finding is None and cases >= 2


@pytest.mark.parametrize(
    ("prop", "mistake"), SLOPES, ids=[f"{prop.lesson[11:]} {mistake.name}" for prop, mistake in SLOPES]
)
def test_slope_of_the_loss_finds_and_names_the_mistake(prop, mistake):
    finding, _ = find(prop, mistake.candidate)
    assert finding is not None and finding.misconception


@pytest.mark.parametrize(("prop", "function"), PROPERTIES[:6], ids=[prop.lesson for prop, _ in PROPERTIES[:6]])
def test_one_percent_too_much_fails(prop, function):
    def scaled(value):
        return tuple(map(scaled, value)) if isinstance(value, tuple) else 1.01 * value

    finding, _ = find(prop, lambda *arguments: scaled(function(*arguments)))
    assert "another of the same kind came" in finding.detail


@pytest.mark.parametrize(("prop", "function"), PROPERTIES, ids=[prop.name for prop, _ in PROPERTIES])
def test_nan_none_and_a_missing_result_fail(prop, function):
    def nothing_but_nan(value):
        return tuple(map(nothing_but_nan, value)) if isinstance(value, tuple) else np.full_like(value, np.nan)

    for candidate in (
        lambda *arguments: nothing_but_nan(function(*arguments)),
        lambda *arguments: None,
        lambda *arguments: (),
    ):
        assert find(prop, candidate)[0] is not None


def test_plain_sum_of_upstream_breaks_the_row_sums():
    finding, _ = find(checks.score_gradients_sum_to_zero, lambda weights, upstream: weights * upstream)
    assert "row sum of zero was expected" in finding.detail


def test_gradient_without_mask_reaches_the_future():
    def unmasked(query, key, value, upstream):
        return upstream @ value.swapaxes(-2, -1) @ key, np.ones_like(key), np.ones_like(value)

    finding, _ = find(checks.future_gets_no_gradient, unmasked)
    assert "d_key: a loss on position 0 reaches another position" in finding.detail
