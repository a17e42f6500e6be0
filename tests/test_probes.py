"""Plain data survives the way between two processes, and nothing else gets through."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from proof_lm.probes import decode, encode, run_case

leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
trees = st.recursive(
    leaves, lambda t: st.lists(t) | st.tuples(t, t) | st.dictionaries(st.text(), t), max_leaves=12
)


def alike(a, b):
    if isinstance(a, float):
        return type(b) is float and (a == b or (math.isnan(a) and math.isnan(b)))
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(alike, a, b))
    if isinstance(a, dict):
        return type(b) is dict and list(a) == list(b) and all(alike(a[k], b[k]) for k in a)
    return type(a) is type(b) and a == b


@given(trees)
def test_plain_data_comes_back_as_it_was(value):
    assert alike(value, decode(encode(value)))


@given(
    arrays(
        st.sampled_from(["float32", "float64", "int64", "bool", "uint8"]),
        array_shapes(min_dims=0, min_side=0),
    )
)
def test_arrays_come_back_bit_for_bit(array):
    back = decode(encode(array))
    assert back.dtype == array.dtype and back.shape == array.shape and back.tobytes() == array.tobytes()


class Lying(list):
    def __eq__(self, other):
        return True


@pytest.mark.parametrize(
    "value", [object(), lambda: 1, {1: 2}, np.array([object()]), np.array(["a"]), 1j, {1}]
)
def test_other_types_are_refused(value):
    with pytest.raises(TypeError, match="result"):
        encode(value)


def test_a_subclass_arrives_as_the_plain_type():
    assert type(decode(encode(Lying([1])))) is list


@pytest.mark.parametrize(
    "text",
    [
        '{"array": ["object", [1], "AAAA"]}',
        '{"array": ["float64", [3], "AAAA"]}',
        '{"array": ["float64", [-1], ""]}',
        '{"code": "print"}',
        '{"int": "1", "float": "nan"}',
        '{"int": [1]}',
        '{"float": "x"}',
        "[1]",
        "{",
        '{"list": ' * 60 + "[]" + "}" * 60,
    ],
)
def test_text_that_encode_did_not_write_is_refused(text):
    with pytest.raises(ValueError):
        decode(text)


def test_a_nan_literal_is_not_needed_to_carry_nan():
    assert "NaN" not in encode([float("nan"), np.array([np.nan])])
    json.loads(encode([float("nan")]), parse_constant=pytest.fail)


def test_an_error_is_an_answer():
    (answer,) = run_case(lambda: 1 / 0, "call", ((),))
    assert answer.error == "ZeroDivisionError: division by zero"


@pytest.mark.parametrize("fails_with", [RuntimeError, RecursionError, AttributeError])
def test_an_error_whose_text_cannot_be_made_costs_that_call_alone(fails_with):
    class Mute(ValueError):
        def __str__(self):
            raise fails_with

    def refuses_zero(number):
        if not number:
            raise Mute
        return number

    refused, answered = run_case(refuses_zero, "call", ((0,), (1,)))
    assert refused.error == "Mute: " and not answered.error and answered.value == 1


def test_each_call_gets_fresh_arguments_and_changes_are_told():
    def greedy(values):
        values += 1
        return values

    first, second = run_case(greedy, "call", ((np.zeros(2),),) * 2, twice=True)
    assert first.changed == second.changed == [0] and first.repeats
    np.testing.assert_array_equal(first.value, second.value)


def _put_back(mapping: dict) -> None:
    mapping["a"] = mapping.pop("a")


def _give_another_zero(values: list) -> None:
    values[0] = -values[0]


@pytest.mark.parametrize(
    ("argument", "meddle", "told"),
    [
        ({"a": [1.0], "b": [float("nan"), "text"]}, lambda mapping: mapping["b"][0], []),
        ({"a": 1, "b": 2}, _put_back, []),  # the same keys and values, in another order
        (["text", "text"], lambda values: values.__setitem__(0, "".join(["te", "xt"])), []),
        ([0.0, 1.0], _give_another_zero, [1]),
        ([np.eye(2)], lambda arrays: arrays[0].__setitem__((0, 1), 5), [1]),
        ([np.eye(2)], lambda arrays: arrays.__setitem__(0, arrays[0].astype(np.float32)), [1]),
        ({"a": [1, 2]}, lambda mapping: mapping["a"].reverse(), [1]),
    ],
)
def test_a_change_is_told_however_deep_and_nothing_else_is(argument, meddle, told):
    (answer,) = run_case(lambda untouched, value: meddle(value), "call", ((0, argument),))
    assert (answer.error, answer.changed) == ("", told)


def test_what_cannot_be_copied_is_no_argument():
    (answer,) = run_case(lambda values: values.append(lambda: 0), "call", (([],),))
    assert answer.error.startswith("TypeError: result: function is not plain data")


def test_a_function_that_remembers_is_told_apart():
    seen = []
    (answer,) = run_case(lambda: seen.append(1) or len(seen), "call", ((),), twice=True)
    assert answer.value == 1 and not answer.repeats
