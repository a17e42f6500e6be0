"""What a student's process sends back may be anything: no verdict breaks on it, believes it or repeats it."""

import base64
import json

import numpy as np
import pytest

from grading.exercises import PROBLEM_SETS, exercises
from proof_lm.probes import decode, encode
from tests.attacks import CANARY

SEED = 3
EXERCISES = {key: exercise for name in PROBLEM_SETS for key, exercise in exercises(name).items()}
VALUES = {
    "nothing": None,
    "text": CANARY,
    "texts": [CANARY, [CANARY, (CANARY,)]],
    "text by text": {CANARY: CANARY},
    "expected keys": dict.fromkeys(("outputs", "layout", "gradients", "input", "loss", "parameters"), CANARY),
    "no items": [],
    "an empty dictionary": {},
    "a large number": 10**4000,
    "a negative number": -1,
    "true": True,
    "not a number": float("nan"),
    "infinity": float("inf"),
    "an empty array": np.zeros((0, 3)),
    "a scalar array": np.array(1.5),
    "an array of many axes": np.zeros((1,) * 8),
    "bytes": np.frombuffer(b"\x02\x03\xff", dtype=np.uint8),
    "arrays of two shapes": [np.zeros(2), np.zeros((3, 1))],
    "the largest integers": np.full((2, 2), 2**64 - 1, dtype=np.uint64),
    "half precision": np.array([65504, np.nan, -np.inf], dtype=np.float16),
    "no number": np.full((3, 4), np.nan),
    "nested": [[[[[[[1.0]]]]]]],
    "ragged": [[1.0], [1.0, 2.0]],
}


def answers(exercise, value, **fields):
    """Encoded answers to the plan of an exercise, all of them the same."""
    asked = decode(exercise.plan(SEED))
    cases = asked if isinstance(asked, list) else asked["cases"]
    one = {"value": value, "error": "", "changed": [], "repeats": True} | fields
    run = [[one for _ in case["calls"]] for case in cases]
    return encode(run if isinstance(asked, list) else {"own": run, "right": run})


def verdict(exercise, text):
    """What grading says of a text that came back."""
    try:
        found = exercise.judge(SEED, text)
    except ValueError as error:
        found = exercise.no_answer(f"what came back is no answer ({error})")
    return found


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("key", EXERCISES)
def test_forged_value_breaks_nothing_and_is_not_repeated(key, name):
    found = verdict(EXERCISES[key], answers(EXERCISES[key], VALUES[name]))
    assert found.points < found.max_points
    assert CANARY not in str(found)


FIELDS = [
    {"error": CANARY}, {"error": f"ValueError: {CANARY}"}, {"error": f"{CANARY}: x"}, {"changed": [CANARY]},
    {"changed": CANARY}, {"repeats": CANARY}, {"error": [CANARY]}, {"error": None}, {"changed": None}, {"error": 5},
    {"changed": {CANARY: 1}}, {"changed": [10**400]}, {CANARY: 1}, {"points": 43},
]  # fmt: skip


@pytest.mark.parametrize("fields", FIELDS, ids=str)
@pytest.mark.parametrize("key", EXERCISES)
def test_forged_field_breaks_nothing_and_is_not_repeated(key, fields):
    found = verdict(EXERCISES[key], answers(EXERCISES[key], np.ones((2, 2)), **fields))
    assert found.points < found.max_points
    assert CANARY not in str(found)


def array(dtype, shape, data=b""):
    return json.dumps({"array": [dtype, shape, base64.b64encode(data).decode()]})


TEXTS = [
    "", "43.0", "null", "[]", "{}", '{"list": 5}', f'{{"{CANARY}": 1}}', f'{{"{CANARY}": []}}', f'"{CANARY}"',
    f'{{"int": "{CANARY}"}}', f'{{"float": "{CANARY}"}}', f'{{"float": ["{CANARY}"]}}', '{"int": 1e999}',
    '{"int": [1]}', '{"int": "' + "9" * 5000 + '"}', "1e999", "NaN", '{"int": null}', "9" * 5000,
    f'{{"dict": ["{CANARY}"]}}', '{"dict": [["a"]]}', '{"dict": [[["a"], 1]]}', f'{{"array": ["{CANARY}"]}}',
    f'{{"array": ["{CANARY}", [1], "{CANARY}"]}}', f'{{"array": ["float64", [1], "{CANARY}"]}}',
    '{"array": ["float64", 5, ""]}', '{"array": [["float64"], [0], ""]}', '{"array": ["float64", [0], 5]}',
    '{"array": ["float64", [0], "\\u00e9\\ud800"]}', '"\\ud800"', "[" * 100_000, '{"list": [' * 50_000,
    array("float64", [2**70, 0]), array("float64", [2**62, 2**62, 0]), array("bool", [-1, 0]), array("bool", [True]),
    array("float64", [0] * 100), array("float64", [1.5]), array("float64", [10**400, 0]), array("object", [0]),
    array("float64", [1], b"1234567"), array("float64", [1] * 65, b"12345678"), array("float64", ["0"]),
    f'{{"list": [{{"list": [{{"dict": [["{CANARY}", null]]}}]}}]}}', '{"list": [{"list": [null]}]}',
    f'{{"dict": [["own", "{CANARY}"], ["right", "{CANARY}"]]}}', f'{{"dict": [["own", []], ["{CANARY}", []]]}}',
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text[:40])
@pytest.mark.parametrize("key", ["P4.1", "P4.14", "P4.20"])
def test_forged_text_breaks_nothing_and_is_not_repeated(key, text):
    found = verdict(EXERCISES[key], text)
    assert found.points == 0
    assert CANARY not in str(found)
    str(found).encode()


def test_shape_is_no_way_to_send_numbers():
    """A finding names shapes, and those of arrays without entries could be any numbers."""
    for shape in ([10**15, 0], [0, *[7] * 40], [0, *[999] * 6]):
        with pytest.raises(ValueError, match="shape"):
            decode(array("float64", shape))
    assert decode(array("float64", [0, 5, 300])).shape == (0, 5, 300)


def test_booleans_are_true_or_false():
    assert decode(array("bool", [3], b"\x00\x02\xff")).tobytes() == b"\x00\x01\x01"


@pytest.mark.parametrize("opening", ["[],", "{},", '{"list":[]},'])
def test_small_parts_in_great_number_are_refused_before_they_take_memory(opening):
    with pytest.raises(ValueError, match="parts"):
        decode('{"list":[' + opening * 1_100_000 + "null]}")
