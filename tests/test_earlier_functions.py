"""An exercise that builds on earlier ones is judged with the student's own functions and with right ones."""

import json

import pytest

from grading.exercises import exercises, find
from proof_lm.probes import answer_plan, decode, encode
from proof_lm.probes.earlier import defined_by, reached, rebound

WRONG_SOFTMAX = """
import numpy as np
def row_softmax(values):
    values = np.exp(values)
    return values / values.sum()
softmax = row_softmax
def causal_mask(time):
    return np.tri(time, dtype=bool)
def split_heads(values, heads):
    return values.reshape(len(values), heads, -1).swapaxes(0, 1)
def merge_heads(values):
    return values.swapaxes(0, 1).reshape(values.shape[1], -1)
def weights_of(query, key):
    scores = query @ key.swapaxes(-1, -2) / query.shape[-1] ** 0.5
    return {softmax}(np.where(causal_mask(scores.shape[-1]), scores, -np.inf))
def multi_head_attention(hidden, wq, wk, wv, wo, heads):
    query, key, value = (split_heads(np.asarray(hidden) @ w, heads) for w in (wq, wk, wv))
    weights = weights_of(query, key)
    merged = merge_heads(weights @ value)
    return merged @ wo, weights, merged
"""


def run(source: str, name: str):
    namespace: dict = {"__name__": "answer"}
    exec(source, namespace)
    return namespace[name]


@pytest.mark.parametrize("called", ["row_softmax", "softmax"])
def test_a_wrong_earlier_function_costs_no_points_and_is_named(called):
    attention = run(WRONG_SOFTMAX.replace("{softmax}", called), "multi_head_attention")
    verdict = find("P4.7").grade(attention, seed=11)
    assert verdict.points == verdict.max_points
    assert "it fails only with your own row_softmax, or what that calls: correct that first" in str(verdict)
    assert len(verdict.findings) == 1
    softmax = run(WRONG_SOFTMAX.replace("{softmax}", called), "row_softmax")
    assert find("P4.4").grade((softmax, attention), seed=11).points < find("P4.4").points


def test_two_wrong_earlier_functions_cost_no_points_either():
    open_mask = WRONG_SOFTMAX.replace("np.tri(time, dtype=bool)", "np.ones((time, time), bool)")
    source = open_mask.replace("{softmax}", "softmax")
    verdict = find("P4.7").grade(run(source, "multi_head_attention"), seed=11)
    assert verdict.points == verdict.max_points
    assert "your own earlier functions" in str(verdict)


def test_a_mistake_of_its_own_is_found_beside_a_wrong_earlier_function():
    source = WRONG_SOFTMAX.replace("{softmax}", "row_softmax").replace(" / query.shape[-1] ** 0.5", "")
    verdict = find("P4.7").grade(run(source, "multi_head_attention"), seed=11)
    assert verdict.points < verdict.max_points
    assert "not scaled" in str(verdict)


def test_own_ways_between_right_functions_are_right():
    """Earlier functions with other keywords or results fit each other, though not the course's."""
    source = """
import numpy as np
def layer_norm(x, gamma, beta, eps=1e-5):
    return gamma * (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps) + beta
def multi_head_attention(hidden, wq, wk, wv, wo, heads, give_all=True):
    time = len(hidden)
    query, key, value = ((hidden @ w).reshape(time, heads, -1).swapaxes(0, 1) for w in (wq, wk, wv))
    scores = np.where(np.tri(time, dtype=bool), query @ key.swapaxes(1, 2) / query.shape[-1] ** 0.5, -1e30)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    merged = (weights @ value).swapaxes(0, 1).reshape(hidden.shape)
    return (merged @ wo, weights, merged) if give_all else merged @ wo
def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
def decoder_block(x, a, f, heads):
    x = np.asarray(x)
    x = x + multi_head_attention(layer_norm(x, a[0], a[1], eps=1e-5), *a[2:], heads, give_all=False)
    y = gelu(layer_norm(x, f[0], f[1], eps=1e-5) @ f[2] + f[3])
    return x + y @ f[4] + f[5]
"""
    verdict = find("P4.10").grade(run(source, "decoder_block"), seed=11)
    assert verdict.points == verdict.max_points, str(verdict)


def test_no_plan_holds_the_function_it_asks_for():
    asked: list[str] = []
    for exercise in exercises("p4_numpy_block").values():
        plan = decode(exercise.plan(0))
        source = "" if isinstance(plan, list) else plan["source"]
        assert not [name for name in exercise.names if f"def {name}(" in source]
        assert [name for name in asked if f"def {name}(" in source] == asked
        asked += exercise.names


@pytest.mark.parametrize("runs", [[], {}, {"own": []}, {"own": [], "right": [], "gelu": []}, 7])
def test_other_runs_than_were_asked_for_are_no_answer(runs):
    with pytest.raises(ValueError):
        find("P4.5").judge(0, encode(runs))


def test_answers_left_out_of_one_run_are_no_answer():
    exercise = find("P4.6")
    source = WRONG_SOFTMAX.replace("{softmax}", "softmax")
    functions = run(source, "split_heads"), run(source, "merge_heads")
    runs = decode(answer_plan(exercise.plan(0), functions))
    runs["right"] = runs["right"] + runs["right"][:1]
    with pytest.raises(ValueError, match="more answers than cases"):
        exercise.judge(0, encode(runs))


def test_rebinding_leaves_the_students_own_functions_as_they_are():
    source = "def low(): return 1\ndef high(extra=0, *, more=0): return low() + extra + more\nnumber = 1"
    high = run(source, "high")
    right = defined_by("def low(): return 10", ["low"])
    assert rebound(high, right)(5, more=2) == 17
    assert high(5) == 6
    assert reached(high, ["low", "number", "absent"]) == ["low"]
    assert rebound(json, right) is json and rebound((high, 7), right)[1] == 7
