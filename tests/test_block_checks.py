"""Properties of the block chapter: right answers pass, known mistakes fail and are named."""

import math
from dataclasses import replace

import numpy as np
import pytest

from proof_lm.block import (
    DecoderBlock,
    decoder_block,
    feed_forward,
    gelu,
    layer_norm,
    masked_cross_entropy,
    tiny_transformer_forward,
)
from proof_lm.checks import block, block_mistakes, loss
from proof_lm.checks.core import find, same

GROUPS = {
    "layer_norm": (
        layer_norm,
        (
            block.each_row_standardised,
            block.each_position_normalised_alone,
            block.constant_row_becomes_beta,
            block.layer_norm_matches,
        ),
        block_mistakes.WRONG_AXIS + block_mistakes.WRONG_FORMULA,
    ),
    "gelu": (
        gelu,
        (block.gelu_weighs_by_normal_probability, block.gelu_mirror_differs_by_x),
        block_mistakes.WRONG_GELU,
    ),
    "feed_forward": (
        feed_forward,
        (block.each_position_fed_alone, block.feed_forward_matches),
        block_mistakes.WRONG_FEED_FORWARD,
    ),
    "decoder_block": (
        decoder_block,
        (
            block.zero_sublayers_leave_identity,
            block.residual_reads_unnormalised_input,
            block.no_later_position_is_read,
            block.decoder_block_matches,
        ),
        block_mistakes.WRONG_BLOCK,
    ),
    "tiny_transformer_forward": (
        tiny_transformer_forward,
        (loss.tiny_transformer_matches,),
        block_mistakes.WRONG_LOGITS,
    ),
    "masked_cross_entropy": (
        masked_cross_entropy,
        (
            loss.uniform_logits_cost_ln_vocabulary,
            loss.padding_changes_nothing,
            loss.labels_shifted_once,
            loss.nothing_kept_costs_nothing,
            loss.loss_survives_large_logits,
            loss.masked_loss_matches,
        ),
        block_mistakes.WRONG_LOSS,
    ),
}
PROPERTIES = [(right, prop) for right, properties, _ in GROUPS.values() for prop in properties]
MISTAKES = [
    pytest.param(properties, mistake, id=f"{name}: {mistake.name}")
    for name, (_, properties, mistakes) in GROUPS.items()
    for mistake in mistakes
]


def exact_gelu(values):
    values = np.asarray(values)
    return values * 0.5 * (1 + np.vectorize(math.erf)(values / math.sqrt(2)))


@pytest.mark.parametrize(("right", "prop"), PROPERTIES, ids=lambda item: getattr(item, "name", None))
def test_property_holds_for_the_package_whatever_the_seed(right, prop):
    for seed in range(10):
        finding, count = find(prop, right, seed)
        assert finding is None, str(finding)
        assert count >= 2


def test_a_float32_norm_of_constant_rows_is_right():
    def single(values, gamma, beta, epsilon=1e-5):
        return layer_norm(*(np.asarray(array, np.float32) for array in (values, gamma, beta)), np.float32(epsilon))

    wide = replace(block.constant_row_becomes_beta, cases=block.constant_row_cases([(50, 33), (50, 7)]))
    for seed in range(10):
        assert find(wide, single, seed)[0] is None


@pytest.mark.parametrize(
    ("prop", "candidate", "sentence"),
    [
        (loss.nothing_kept_costs_nothing, lambda x, y, m: np.float64("nan"), "a mean over nothing is 0 / 0"),
        (loss.nothing_kept_costs_nothing, lambda x, y, m: 1.0, "0 was expected, 1 came"),
        (loss.loss_survives_large_logits, lambda x, y, m: float("inf"), "inf came: exp of a large logit overflows"),
        (loss.loss_survives_large_logits, lambda x, y, m: min(masked_cross_entropy(x, y, m), 27.6), "too small"),
        (loss.uniform_logits_cost_ln_vocabulary, lambda x, y, m: y, "one number was expected, array of shape (4,) came"),
        (loss.labels_shifted_once, lambda x, y, m: None, "one number was expected, None came"),
    ],
)
def test_a_loss_of_another_kind_is_told_apart(prop, candidate, sentence):
    assert sentence in str(find(prop, candidate)[0])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # some mistakes overflow or average nothing
@pytest.mark.parametrize(("properties", "mistake"), MISTAKES)
def test_mistake_fails_a_property_and_is_named_there(properties, mistake):
    for seed in range(5):
        findings = [finding for prop in properties if (finding := find(prop, mistake.candidate, seed)[0])]
        assert findings
        assert mistake.message in [finding.misconception for finding in findings]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # some mistakes overflow or average nothing
@pytest.mark.parametrize(("properties", "mistake"), MISTAKES)
def test_no_other_mistake_is_named_in_its_place(properties, mistake):
    for prop in properties:
        finding, _ = find(prop, mistake.candidate)
        if finding and finding.misconception:
            named = next(other for other in prop.mistakes if other.message == finding.misconception)
            assert find(prop, named.candidate)[0].detail == finding.detail


def test_exact_gelu_is_accepted_everywhere():
    def feed(values, w1, b1, w2, b2):
        return exact_gelu(values @ w1 + b1) @ w2 + b2

    for seed in range(10):
        for prop in (block.gelu_weighs_by_normal_probability, block.gelu_mirror_differs_by_x):
            assert find(prop, exact_gelu, seed)[0] is None
        assert find(block.feed_forward_matches, feed, seed)[0] is None


@pytest.mark.parametrize("name", GROUPS)
def test_float32_answers_are_accepted(name):
    right, properties, _ = GROUPS[name]
    for prop in properties:
        finding, _ = find(prop, lambda *given: np.asarray(right(*given), dtype=np.float32))
        assert finding is None, str(finding)


@pytest.mark.parametrize("name", GROUPS)
@pytest.mark.parametrize("wrong", [None, "text", math.nan, np.zeros((7, 7)), [], ...], ids=repr)
def test_no_answer_and_answers_of_the_wrong_form_fail(name, wrong):
    _, properties, _ = GROUPS[name]
    for prop in properties:
        assert find(prop, lambda *given: wrong)[0] is not None


@pytest.mark.parametrize("name", ["layer_norm", "gelu", "feed_forward", "decoder_block"])
def test_answers_that_are_nan_somewhere_fail(name):
    right, properties, _ = GROUPS[name]

    def spoiled(*given):
        result = np.array(right(*given))
        result.flat[-1] = math.nan
        return result

    for prop in properties:
        assert find(prop, spoiled)[0] is not None


def test_a_norm_that_leaks_from_one_batch_row_is_seen_by_position():
    def leaking(values, gamma, beta, epsilon=1e-5):
        values = np.array(values)
        if values.ndim == 3:
            values[1, 2] += 0.1 * values[0, 0]
        return layer_norm(values, gamma, beta, epsilon)

    finding, _ = find(block.each_position_normalised_alone, leaking)
    assert "position [0, 0] was replaced, and the result at [1, 2] changed" in finding.detail


def test_the_same_interventions_serve_a_layer_with_weights_of_its_own():
    prop = replace(block.no_later_position_is_read, cases=block.stream_cases([(2, 5, 8)]))
    for norm in ("pre", "post"):
        assert find(prop, DecoderBlock(norm=norm))[0] is None
    finding, _ = find(prop, lambda hidden: hidden + hidden.mean(axis=1, keepdims=True))
    assert "changed" in finding.detail


def test_an_infinite_value_equals_only_itself():
    assert same(math.inf, math.inf)
    assert not same(1.0, math.inf)
    assert not same(-math.inf, math.inf)
