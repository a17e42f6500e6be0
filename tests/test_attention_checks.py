"""Properties of the attention chapter: right answers hold, unusual ones too, known mistakes fail and are named."""

import json
from pathlib import Path

import numpy as np
import pytest

from proof_lm import attention
from proof_lm.checks import attention as checks
from proof_lm.checks import attention_mistakes as wrong
from proof_lm.checks.attention import BATCHED, MULTI, SINGLE
from proof_lm.checks.core import find

SEEDS = range(3)
FORMS = {
    "single": (SINGLE, attention.single_head_attention),
    "multi": (MULTI, attention.multi_head_attention),
    "batched": (BATCHED, attention.batched_multi_head_attention),
}
EVERY_ATTENTION = (
    checks.attention_rows_sum_to_one,
    checks.future_is_hidden,
    checks.past_is_seen,
    checks.scale_is_root_of_head_width,
    checks.output_is_projected_average,
    checks.attention_equals_definition,
    checks.past_order_is_invisible,
)
RIGHT = [
    (checks.rows_sum_to_one(), attention.row_softmax),
    (checks.softmax_is_stable(), attention.row_softmax),
    (checks.masked_row_is_zero(), attention.row_softmax),
    (checks.mask_shows_past_and_present(), attention.causal_mask),
    (checks.mask_refuses_no_time(), attention.causal_mask),
    (checks.heads_hold_neighbouring_features(), attention.split_heads),
    (checks.split_refuses_what_does_not_divide(), attention.split_heads),
    (checks.heads_merge_back(), attention.merge_heads),
    (checks.batch_refuses_other_shapes(), attention.batched_multi_head_attention),
    (checks.sequences_are_separate(), attention.batched_multi_head_attention),
    (checks.heads_may_be_reordered(MULTI), attention.multi_head_attention),
    (checks.heads_may_be_reordered(BATCHED), attention.batched_multi_head_attention),
    (checks.rotation_keeps_lengths(), attention.rope),
    (checks.rotation_depends_on_distance_only(), attention.rope),
    (checks.rotation_equals_definition(), attention.rope),
    *((make(sizes), function) for sizes, function in FORMS.values() for make in EVERY_ATTENTION),
]


def misconception(prop, candidate, seed=41):
    """The finding's text, which must exist."""
    finding, _ = find(prop, candidate, seed)
    assert finding is not None, f"{prop.name} holds for a wrong answer"
    return str(finding)


def in_float32(function):
    def half_as_exact(*arguments):
        small = (a.astype(np.float32) if isinstance(a, np.ndarray) else a for a in arguments)
        return function(*small)

    return half_as_exact


@pytest.mark.parametrize(("prop", "right"), RIGHT, ids=lambda value: getattr(value, "name", ""))
@pytest.mark.parametrize("precision", [lambda function: function, in_float32], ids=["float64", "float32"])
def test_property_holds_for_the_package(prop, right, precision):
    for seed in SEEDS:
        finding, count = find(prop, precision(right), seed)
        assert finding is None and count > 0, finding


@pytest.mark.parametrize("prop", [prop for prop, _ in RIGHT if not prop.judges_errors], ids=lambda p: p.name)
@pytest.mark.parametrize("answer", [None, "text", np.nan, np.zeros((7, 7)), (), (None, None), ...], ids=repr)
def test_no_answer_and_answers_of_the_wrong_form_fail(prop, answer):
    misconception(prop, lambda *given: answer)


@pytest.mark.parametrize("form", FORMS)
def test_attention_by_loops_with_a_finite_fill_is_right(form):
    """Head by head, query by query, with -1e9 instead of -inf."""

    def one_head(hidden, wq, wk, wv):
        query, key, value = hidden @ wq, hidden @ wk, hidden @ wv
        rows = []
        for i in range(len(hidden)):
            scores = [q @ query[i] / np.sqrt(len(q)) if j <= i else -1e9 for j, q in enumerate(key)]
            powers = np.exp(np.array(scores) - max(scores))
            rows.append(powers / powers.sum())
        return np.array(rows), np.array(rows) @ value

    def sequence(hidden, wq, wk, wv, wo, heads=1):
        slices = np.split(np.arange(wq.shape[1]), heads)
        made = [one_head(hidden, wq[:, s], wk[:, s], wv[:, s]) for s in slices]
        merged = np.concatenate([attended for _, attended in made], axis=-1)
        weights = np.stack([weight for weight, _ in made])
        return merged @ wo, weights if heads > 1 else weights[0], merged

    def batch(hidden, *others):
        made = [sequence(row, *others) for row in hidden]
        return [np.stack([one[0] for one in made]), np.stack([one[1] for one in made])]

    sizes, _ = FORMS[form]
    for make in EVERY_ATTENTION:
        finding, _ = find(make(sizes), batch if form == "batched" else sequence)
        assert finding is None, finding


@pytest.mark.parametrize(
    ("form", "mistake"),
    [
        pytest.param(form, mistake, id=f"{form}: {mistake.name}")
        for form in FORMS
        for mistake in wrong.WRONG_ATTENTION + (wrong.WRONG_MULTI_HEAD if form != "single" else ())
    ],
)
def test_mistake_in_attention_is_caught_and_named(form, mistake):
    sizes, _ = FORMS[form]
    if form == "single" and mistake.name == "scale by model width":
        sizes = sizes[1:]  # where d_h = d there is nothing to see
    text = misconception(checks.attention_equals_definition(sizes), mistake.candidate)
    assert mistake.message in text


@pytest.mark.parametrize(
    ("prop", "mistakes"),
    [
        (checks.softmax_is_stable(), wrong.WRONG_STABILITY),
        (checks.masked_row_is_zero(), wrong.WRONG_MASKED_ROW),
        (checks.mask_shows_past_and_present(), wrong.WRONG_MASK),
        (checks.heads_hold_neighbouring_features(), wrong.WRONG_SPLIT),
        (checks.heads_merge_back(), wrong.WRONG_MERGE),
        (checks.rotation_equals_definition(), wrong.WRONG_ROPE),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_mistake_is_caught_and_named(prop, mistakes):
    for mistake in mistakes:
        with np.errstate(all="ignore"):
            assert mistake.message in misconception(prop, mistake.candidate), mistake.name


@pytest.mark.parametrize(
    ("change", "make", "sentence"),
    [
        ({"softmax": wrong.softmax_over_queries}, checks.attention_rows_sum_to_one, "softmax runs over queries"),
        ({"late_mask": True}, checks.attention_rows_sum_to_one, "the mask came after softmax"),
        ({"mask": wrong.open_mask}, checks.attention_rows_sum_to_one, "query 0 gives a weight to the later key 1"),
        ({"mask": wrong.open_mask}, checks.future_is_hidden, "changed the output at the earlier position 0"),
        ({"mask": wrong.strict_mask}, checks.past_is_seen, "the diagonal must stay visible"),
        ({"mask": wrong.transposed_mask}, checks.future_is_hidden, "earlier position"),
        ({"divisor": lambda query, hidden: 1}, checks.scale_is_root_of_head_width, "they are not scaled"),
        (
            {"divisor": lambda query, hidden: query.shape[-1]},
            checks.scale_is_root_of_head_width,
            "that is d_h itself",
        ),
        (
            {"divisor": lambda query, hidden: query.shape[-1] ** -0.5},
            checks.scale_is_root_of_head_width,
            "they are multiplied by the root",
        ),
        ({"order": "kqv"}, checks.scale_is_root_of_head_width, "do not follow from products"),
        ({"project": False}, checks.output_is_projected_average, "it is not multiplied by wo"),
        ({"order": "qkk"}, checks.output_is_projected_average, "not the weighted average of values"),
    ],
)
@pytest.mark.parametrize("form", FORMS)
def test_property_says_what_is_wrong_with_attention(form, change, make, sentence):
    sizes, _ = FORMS[form]
    if change.get("project") is False and form == "single":
        sizes = sizes[:1]  # elsewhere the shape alone tells
    assert sentence in misconception(make(sizes), wrong.mistaken_attention(**change))


def test_model_width_in_the_scale_is_recognised_where_heads_are_many():
    candidate = wrong.mistaken_attention(divisor=lambda query, hidden: hidden.shape[-1] ** 0.5)
    assert "that is the root of the model width d" in misconception(
        checks.scale_is_root_of_head_width(MULTI), candidate
    )


@pytest.mark.parametrize(
    ("candidate", "sentence"),
    [
        (wrong.softmax_over_queries, "softmax runs over queries"),
        (lambda values: np.exp(values) / np.exp(values).sum(), "softmax runs over the whole table"),
        (lambda values: np.exp(values), "does not sum to one"),
        (lambda values: values / values.sum(axis=-1, keepdims=True), "negative or NaN"),
        (lambda values: np.full_like(values, np.nan), "negative or NaN"),
    ],
)
def test_property_says_what_is_wrong_with_softmax(candidate, sentence):
    assert sentence in misconception(checks.rows_sum_to_one([(3, 4), (2, 3, 5)]), candidate)


@pytest.mark.parametrize(
    ("pick", "sentence"),
    [
        (lambda output, weights, attended: output, "3 results were expected, output, weights, attended, in this order"),
        (lambda output, weights, attended: (output, weights), "in this order; tuple of 2 came"),
        (lambda output, weights, attended: (weights, attended, output), "the order is output, weights, attended"),
        (lambda output, weights, attended: (output, weights[0], attended), "weights of shape (5, 5) was expected"),
        (lambda output, weights, attended: (output, weights / 2, attended), "weights were scaled after softmax"),
    ],
)
def test_results_of_another_form_are_told_apart(pick, sentence):
    sizes = [checks.Sizes(5, 6, head_width=4, value_width=3)]

    def candidate(*given):
        return pick(*attention.single_head_attention(*given))

    assert sentence in misconception(checks.attention_rows_sum_to_one(sizes), candidate)


def test_the_width_of_the_values_in_the_scale_is_recognised():
    def candidate(hidden, wq, wk, wv, wo):
        scaled = wrong.mistaken_attention(divisor=lambda query, hidden: wv.shape[-1] ** 0.5)
        return scaled(hidden, wq, wk, wv, wo)

    sizes = [checks.Sizes(5, 6, head_width=4, value_width=3)]
    assert "the values' width d_v" in misconception(checks.scale_is_root_of_head_width(sizes), candidate)


def test_leak_that_the_weights_do_not_show_is_caught_by_intervention():
    def leaky(hidden, wq, wk, wv, wo):
        output, weights, attended = attention.single_head_attention(hidden, wq, wk, wv, wo)
        return output + 0.01 * hidden.mean(axis=0), weights, attended

    assert find(checks.attention_rows_sum_to_one(SINGLE), leaky)[0] is None
    assert "earlier position 0" in misconception(checks.future_is_hidden(SINGLE), leaky)


def test_leak_at_one_position_of_one_sequence_is_caught():
    def leaky(hidden, *others):
        output, weights = attention.batched_multi_head_attention(hidden, *others)
        output[-1, -2] += 0.01 * hidden[-1, -1]
        return output, weights

    assert "changed the output at the earlier position" in misconception(checks.future_is_hidden(BATCHED), leaky)


def test_sequences_that_mix_are_caught():
    def mixing(hidden, *others):
        output, weights = attention.batched_multi_head_attention(hidden, *others)
        return output + 0.01 * output.mean(axis=0), weights

    assert "changed sequence" in misconception(checks.sequences_are_separate(), mixing)


def test_attention_with_positions_notices_a_shuffled_past():
    def positioned(hidden, *others):
        return attention.single_head_attention(hidden + np.arange(len(hidden))[:, None], *others)

    assert "the output changed" in misconception(checks.past_order_is_invisible(SINGLE), positioned)


def test_heads_of_different_scale_are_caught_by_reordering():
    def uneven(hidden, wq, wk, wv, wo, heads):
        scale = np.repeat(np.arange(1, heads + 1), hidden.shape[-1] // heads)
        return attention.multi_head_attention(hidden, wq * scale, wk, wv, wo, heads)

    assert "the output changed" in misconception(checks.heads_may_be_reordered(MULTI), uneven)


@pytest.mark.parametrize(
    ("candidate", "make"),
    [
        (wrong.half_split_rope, checks.rotation_keeps_lengths),
        (lambda values, positions: values * (1 + 0.1 * positions[:, None]), checks.rotation_keeps_lengths),
        (lambda values, positions: values, checks.rotation_depends_on_distance_only),
        (lambda values, positions: values + positions[:, None], checks.rotation_depends_on_distance_only),
    ],
)
def test_what_is_no_rotation_is_caught(candidate, make):
    misconception(make(), candidate)


def test_every_lesson_pointer_names_a_heading_that_exists():
    """A finding sends the reader to a heading; it must be there."""
    course = Path(__file__).parents[1] / "course"
    for prop, _ in RIGHT:
        number, heading = prop.lesson.removeprefix("lesson ").split(", ", 1)
        (lesson,) = course.glob(f"{number}_*.ipynb")
        sources = "\n".join("".join(cell["source"]) for cell in json.loads(lesson.read_text())["cells"])
        assert f"# {heading}\n" in sources + "\n", prop.lesson
