"""Problem set P4: that its cases hold what they claim to hold, and what a student is told."""

import numpy as np
import pytest
import torch

from grading.exercises import find
from proof_lm.checks import PropertyFailed, check, hint
from proof_lm.checks.core import draw_cases
from proof_lm.checks.judging import truth
from proof_lm.checks.p4 import EXERCISES
from proof_lm.probes.judges import _model, attention_function

SEEDS = range(5)
IDS = [exercise.id for exercise in EXERCISES]


def largest_influence_on_the_past(attention, hidden):
    """How far any output row before j moves at most when row j is replaced."""
    rng = np.random.default_rng(1)
    before, moved = attention(hidden), 0.0
    for j in range(1, hidden.shape[-2]):
        for _ in range(3):
            changed = hidden.copy()
            changed[..., j, :] = rng.normal(size=changed[..., j, :].shape)
            moved = max(moved, np.abs(attention(changed) - before)[..., :j, :].max())
    return moved


@pytest.mark.parametrize("seed", SEEDS)
def test_planted_leaks_show_and_causal_attention_shows_none(seed):
    decisions = set()
    for part in find("P4.1").parts:
        for case in draw_cases(part.property, seed):
            for (parts, hidden, _), causal in zip(case.calls, case.facts, strict=True):
                moved = largest_influence_on_the_past(attention_function(parts), hidden)
                least = 5e-9 if "faint" in part.property.name else 1e-4
                assert moved == 0 if causal else moved > least, (part.property.name, case.label)
                decisions.add(causal)
    assert decisions == {True, False}


@pytest.mark.parametrize("seed", SEEDS)
def test_the_stable_configuration_wins_by_a_clear_margin(seed):
    for part in find("P4.2").parts:
        for case in draw_cases(part.property, seed):
            for (experiment,), winner in zip(case.calls, case.facts, strict=True):
                worst = {name: np.abs(np.log(np.divide(n, n[0]))).max() for name, n in experiment.items()}
                first, second = sorted(worst.values())[:2]
                assert min(worst, key=worst.get) == winner
                assert second - first > 0.05


@pytest.mark.parametrize("seed", SEEDS)
def test_planted_differences_are_where_the_decoder_checks_look(seed):
    for part in find("P4.3").parts:
        for case in draw_cases(part.property, seed):
            for (model, original, changed, reloaded), right in zip(case.calls, case.facts, strict=True):
                weights = _model(**model)
                storage = [weights.token_embedding.weight.data_ptr(), weights.lm_head.weight.data_ptr()]
                truths = {
                    "future_ok": np.allclose(original[:, :-1], changed[:, :-1], rtol=0, atol=1e-5),
                    "tied_ok": storage[0] == storage[1],
                    "reload_ok": np.allclose(original, reloaded, rtol=0, atol=1e-5),
                }
                assert {name: truths[name] for name in right} == right, part.property.name
                if "rounding" in part.property.name:
                    assert not np.array_equal(original[:, :-1], changed[:, :-1])
                    assert not np.array_equal(original, reloaded)


@pytest.mark.parametrize("exercise", EXERCISES, ids=IDS)
def test_an_open_answer_and_a_constant_fail_the_public_check_in_one_line(exercise, capsys):
    def stub(*arguments):
        raise NotImplementedError

    for candidate, told in ((stub, "not written yet"), (lambda *arguments: True, "properties fail")):
        with pytest.raises(PropertyFailed) as failure:
            check(exercise.id, candidate)
        assert "\n" not in str(failure.value)
        assert exercise.name in str(failure.value) and told in str(failure.value)
    assert capsys.readouterr().out.count("fails: ") == len(exercise.properties)


@pytest.mark.parametrize("exercise", EXERCISES, ids=IDS)
def test_hints_come_in_three_steps_named_after_a_symptom(exercise, capsys):
    for step in (1, 2, 3):
        hint(exercise.id, step)
        told = capsys.readouterr().out
        assert told.startswith(f"{exercise.id}, hint {step} of 3: ")
        assert "return " not in told and "def " not in told


@pytest.mark.parametrize("exercise_id", IDS)
def test_every_property_of_p4_stands_for_points_and_names_what_to_look_at(exercise_id):
    graded = find(exercise_id)
    assert [part.points > 0 for part in graded.parts] == [True] * len(graded.parts)
    for constant in (True, False, (True, True, True), (False, False, False), "configuration A", None, 0.5):
        assert graded.grade(lambda *arguments, value=constant: value, seed=7).points == 0


@pytest.mark.parametrize("value", [True, np.True_, np.array([True]), np.array(True), 1])
def test_any_kind_of_true_is_true(value):
    assert truth(value) is True


@pytest.mark.parametrize("value", [None, "True", 1.0, 2, [True], np.array([True, True]), torch.tensor(True)])
def test_nothing_else_is(value):
    assert truth(value) is None  # a tensor has become an array when a verdict sees it
