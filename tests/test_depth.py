"""The depth experiment: the lesson's figures, and what they do not depend on."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proof_lm.depth import gradient_norm_by_depth

FIGURES = {
    (False, False): "0.700 0.490 0.240 0.058 0.014",
    (False, True): "0.150 0.022 0.001 0.000 0.000",
    (True, False): "1.125 1.341 0.621 2.672 10.149",
    (True, True): "0.987 0.982 0.855 0.777 0.927",
}


@pytest.mark.parametrize(("configuration", "figures"), FIGURES.items())
def test_norms_of_the_lesson(configuration, figures):
    norms = [gradient_norm_by_depth(depth, *configuration) for depth in (1, 2, 4, 8, 12)]
    assert " ".join(f"{norm:.3f}" for norm in norms) == figures


@given(
    depth=st.integers(1, 12),
    width=st.integers(1, 9),
    seed=st.integers(0, 2**32 - 1),
    normalized=st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_without_residual_every_layer_costs_exactly_its_gain(depth, width, seed, normalized):
    norm = gradient_norm_by_depth(depth, False, normalized, width, seed)
    assert isinstance(norm, float)
    np.testing.assert_allclose(norm, (0.15 if normalized else 0.70) ** depth, rtol=1e-9)


@given(depth=st.integers(1, 12), width=st.integers(1, 9), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_with_residual_every_layer_multiplies_by_one_plus_or_minus_its_gain_at_most(depth, width, seed):
    for normalized, gain in ((True, 0.15), (False, 0.70)):
        norm = gradient_norm_by_depth(depth, True, normalized, width, seed)
        assert (1 - gain) ** depth * (1 - 1e-9) <= norm <= (1 + gain) ** depth * (1 + 1e-9)


def test_configurations_share_directions_and_the_same_call_gives_the_same_bits():
    # at depth 1: |v + g Q'v|^2 = 1 + 2 g c + g^2 with c = <v, Q'v>; the same c under both gains
    def overlap(normalized, gain):
        return (gradient_norm_by_depth(1, True, normalized) ** 2 - 1 - gain**2) / (2 * gain)

    assert overlap(True, 0.15) == pytest.approx(overlap(False, 0.70))
    assert gradient_norm_by_depth(8, True, True) == gradient_norm_by_depth(8, True, True)
    assert gradient_norm_by_depth(8, True, True, seed=1) != gradient_norm_by_depth(8, True, True, seed=2)


@pytest.mark.parametrize(("depth", "width"), [(0, 8), (-1, 8), (3, 0)])
def test_sizes_below_one_are_refused(depth, width):
    with pytest.raises(ValueError, match="depth and width must be at least 1"):
        gradient_norm_by_depth(depth, True, True, width)
