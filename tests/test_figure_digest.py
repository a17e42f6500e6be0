"""The digest stored beside every figure changes with what the figure says and with nothing else."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from proof_lm.plots import figure_digest, heat_map, show_figure

DEPTHS = np.array([1, 2, 4, 8, 12])
NORMS = np.array([0.7, 0.49, 0.24, 0.058, 0.014])


def draw(norms=NORMS, title="Gradient norm", label="plain", xlabel="depth", scale="log", ticks=None):
    figure, axes = plt.subplots()
    axes.plot(DEPTHS, norms, label=label)
    axes.fill_between(DEPTHS, norms * 0.9, norms * 1.1)
    axes.set(title=title, xlabel=xlabel, yscale=scale)
    if ticks:
        axes.set_xticks(DEPTHS, ticks)
    axes.legend()
    return digest_and_close(figure)


def digest_and_close(figure, noise=0.0):
    try:
        return figure_digest(figure, noise)
    finally:
        plt.close(figure)


@pytest.mark.parametrize(
    "change",
    [
        {"norms": NORMS * np.array([1, 1, 1, 1, 1.2])},
        {"norms": NORMS[::-1]},
        {"title": "Activation norm"},
        {"label": "residual"},
        {"xlabel": "layer"},
        {"scale": "linear"},
        {"ticks": list("abcde")},
    ],
    ids=lambda change: next(iter(change)),
)
def test_digest_sees_what_a_reader_would_see(change):
    assert draw(**change) != draw()


def test_digest_is_deaf_to_rounding_errors():
    assert draw(norms=NORMS * (1 + 1e-12)) == draw()


HUNDREDTHS = st.integers(-50, 50).map(lambda number: number / 100)


@given(arrays(float, (4,), elements=HUNDREDTHS), st.booleans())
def test_round_numbers_do_not_tip_over(values, up):
    nudged = np.nextafter(values, np.inf if up else -np.inf)

    def of(numbers):
        figure, axes = plt.subplots()
        axes.plot(numbers)
        return digest_and_close(figure)

    assert of(nudged) == of(values)


def test_stated_noise_is_no_difference_and_more_is():
    def of(errors):
        figure, axes = plt.subplots()
        axes.imshow(errors)
        return digest_and_close(figure, noise=1e-8)

    rng = np.random.default_rng(41)
    assert of(rng.normal(scale=1e-11, size=(4, 4))) == of(rng.normal(scale=1e-11, size=(4, 4)))
    assert of(np.zeros((4, 4))) != of(np.full((4, 4), 1e-6))


def test_large_images_are_compared_beyond_the_values_that_are_written_out():
    def of(values):
        figure, axes = plt.subplots()
        axes.imshow(values)
        return digest_and_close(figure)

    values = np.random.default_rng(41).random((20, 20))
    changed = values.copy()
    changed[-1, -1] = 0.5 * changed[-1, -1]
    assert of(values) == of(values.copy())
    assert of(values) != of(changed)
    assert of(values.reshape(10, 40)) != of(values)


def test_bars_scatter_and_errors_are_in_the_digest():
    def of(**change):
        heights, points, spread = (change.get(name, 1.0) for name in ("heights", "points", "spread"))
        figure, axes = plt.subplots()
        axes.bar(["plain", "residual"], [1.0, 2.0 * heights])
        axes.scatter([0, 1], [0.5, points])
        axes.errorbar([0, 1], [1.0, 2.0], yerr=[0.1, 0.2 * spread])
        return digest_and_close(figure)

    assert of() == of()
    for name in ("heights", "points", "spread"):
        assert of(**{name: 1.5}) != of(), name


def test_figures_without_alt_text_are_refused():
    figure, _ = plt.subplots()
    with pytest.raises(ValueError, match="alt"):
        show_figure(figure, " ")
    with pytest.raises(ValueError, match="noise"):
        show_figure(figure, "A line.", noise=-1.0)
    plt.close(figure)


def test_a_shown_figure_is_closed(capsys):
    heat_map(np.eye(3), "Identity", "column", "row", "Ones on the diagonal.", annotate=".0f")
    assert plt.get_fignums() == []
    assert capsys.readouterr().out == "Ones on the diagonal.\n"


def test_heat_map_wants_a_matrix():
    with pytest.raises(ValueError, match="values: expected a matrix"):
        heat_map(np.zeros((2, 3, 3)), "Heads", "key", "query", "Three axes.")
