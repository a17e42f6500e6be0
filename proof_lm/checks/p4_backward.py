"""Problem set P4 backward: the gradients of a decoder block, what must hold of each and how each goes wrong."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.random import Generator

from proof_lm import gradients
from proof_lm.checks.backward_mistakes import (
    ATTENTION_MISTAKES,
    BLOCK_MISTAKES,
    DIFFERENCE_MISTAKES,
    LAYER_NORM_MISTAKES,
    PROJECTION_MISTAKES,
    SOFTMAX_MISTAKES,
)
from proof_lm.checks.core import Case, Mistake, Property
from proof_lm.checks.exercises import PublicExercise
from proof_lm.checks.general import argument_names, leaves_inputs_alone, matches
from proof_lm.checks.judging import Made, decides, is_truth
from proof_lm.checks.judging_mistakes import WRONG_GRADIENT_CHECK

Shape = tuple[int, ...]
Draw = Callable[[Generator], Sequence[Case]]

CLOSE = {
    "rtol": 1e-6,
    "atol": 1e-8,
    "tolerance": "rtol 1e-6, atol 1e-8: both sides are float64 sums of at most a few thousand terms",
}


# The projection


def projection_properties(shapes: Sequence[Shape]) -> tuple[Property, ...]:
    """Of output_projection_loss_and_grad, on shapes (T, d_in, d_out), all different."""

    def cases(rng: Generator) -> list[Case]:
        made = []
        for number, (t, d, o) in enumerate(shapes):
            context, weights, upstream = _projection_call(rng, t, d, o)
            if (np.sum(context @ weights * upstream) < 0) != bool(number % 2):  # losses of both signs, in turn
                upstream = -upstream
            made.append(Case(f"T = {t}, d_in = {d}, d_out = {o}", ((context, weights, upstream),)))
        return made

    meaning = "The loss is sum(output * upstream) with output = context @ output_projection."
    slope = "The gradient of the loss with respect to the projection is context^T @ upstream."
    where = "lesson 04, One matrix"
    reference = gradients.output_projection_loss_and_grad
    return (
        _item(reference, cases, 0, "the loss", meaning, where, PROJECTION_MISTAKES),
        _item(reference, cases, 1, "the gradient", slope, where, PROJECTION_MISTAKES),
        leaves_inputs_alone(cases, where, argument_names(reference)),
    )


# Numeric gradients


def difference_properties(shapes: Sequence[Shape], epsilons: Sequence[float]) -> tuple[Property, ...]:
    """Of finite_difference_gradient, for parameters of these shapes."""
    where = "lesson 04, Finite differences"

    def cases(rng: Generator) -> list[Case]:
        return [
            Case(f"parameter of shape {shape}, epsilon = {epsilon:g}", (_loss_call(rng, shape, kind, epsilon),),
                 "gradients.differentiate")
            for shape in shapes
            for epsilon, kind in zip(epsilons, ("float", "scalar", "array"), strict=False)
        ]  # fmt: skip

    def strided(rng: Generator) -> list[Case]:
        calls = [(shape, _loss_call(rng, shape, "float", 1e-2)) for shape in shapes if len(shape) > 1]
        label = "parameter of shape {}, not contiguous in memory"
        return [Case(label.format(shape), (call,), "gradients.differentiate_strided") for shape, call in calls]

    close = {"rtol": 1e-6, "atol": 1e-7, "tolerance": "rtol 1e-6, atol 1e-7: rounding is 1e-16 |loss| / epsilon"}
    central = "Entry i is (loss(p + epsilon e_i) - loss(p - epsilon e_i)) / (2 epsilon), with the given epsilon."
    reference = gradients.finite_difference_gradient
    return (
        matches(reference, cases, name="central difference in every entry", meaning=central, lesson=where,
                mistakes=DIFFERENCE_MISTAKES, **close),
        matches(reference, strided, name="any memory layout", lesson=where, mistakes=DIFFERENCE_MISTAKES,
                meaning="A view counts like a copy: flattening it may make a copy that the loss never sees.", **close),
        leaves_inputs_alone(lambda rng: [*cases(rng), *strided(rng)], where, argument_names(reference)),
    )  # fmt: skip


def gradient_check_properties(shapes: Sequence[Shape]) -> tuple[Property, ...]:
    """Of gradient_check, which must tell right gradients from wrong ones."""
    where = "lesson 04, A check that can fail"

    def of(name: str, meaning: str, clue: str, make: Callable[[Generator, Shape], Made]) -> Property:
        makers = {f"parameter of shape {shape}": lambda rng, shape=shape: make(rng, shape) for shape in shapes}
        probe = "gradients.differentiate"
        given = {"probe": probe, "makers": makers, "compare": is_truth, "mistakes": WRONG_GRADIENT_CHECK}
        return decides(name, meaning, clue, lesson=where, **given)

    return (
        of("right gradients pass, wrong ones fail", "A gradient off by one part in a hundred is wrong, anywhere.",
           "compare every entry, the size and the sign", _right_and_wrong),
        of("one wrong entry is enough", "A check that looks at a few entries, or at their mean, misses one bad entry.",
           "every single entry counts", _one_entry),
        of("NaN, infinity and a wrong shape fail", "No comparison with NaN is true, and shapes must not be broadcast.",
           "a difference that is NaN is not small; compare shapes first", _not_numbers),
        of("a gradient of zero passes when it is right", "Dividing by the size of a gradient that is zero gives NaN.",
           "keep a relative error from dividing zero by zero", _zero),
        of("epsilon and tolerance are used", "The caller decides how far to step and how much error to accept.",
           "take epsilon and tolerance from the arguments", _arguments),
    )  # fmt: skip


def _right_and_wrong(rng: Generator, shape: Shape) -> Made:
    loss, p, exact = _loss(rng, shape)
    moved = exact.copy()
    moved.flat[[0, -1]] += 0.5, -0.5  # the sum stays
    wrong = [1.01 * exact, 0.99 * exact, 2 * exact, -exact, exact[::-1] + 1, np.zeros(shape), moved]
    return [((loss, p, exact, 1e-5, 1e-4), True), *(((loss, p, bad, 1e-5, 1e-4), False) for bad in wrong)]


def _one_entry(rng: Generator, shape: Shape) -> Made:
    loss, p, exact = _loss(rng, shape)
    made: Made = [((loss, p, exact, 1e-5, 1e-4), True)]
    for flat in {0, exact.size - 1, int(rng.integers(exact.size))}:
        for factor in (1.02, -1):
            bad = exact.copy()
            bad.flat[flat] *= factor
            made.append(((loss, p, bad, 1e-5, 1e-4), False))
    loss, p, exact = _loss(rng, (20, 20))  # among 400 entries a mean hides one that is 80 tolerances off
    bad = exact.copy()
    bad[13, 7] *= 1.008
    return [*made, ((loss, p, exact, 1e-5, 1e-4), True), ((loss, p, bad, 1e-5, 1e-4), False)]


def _not_numbers(rng: Generator, shape: Shape) -> Made:
    loss, p, exact = _loss(rng, shape)
    made: Made = [((loss, p, exact, 1e-5, 1e-4), True)]
    for number in (np.nan, np.inf):
        bad = exact.copy()
        bad.flat[exact.size - 1] = number
        made.append(((loss, p, bad, 1e-5, 1e-4), False))
    flat_loss = {"cubic": 0.0, "square": 0.0, "linear": 1.5, "coupling": 0.0, "kind": "float"}
    thin = np.full((1, *shape), 1.5)  # equal numbers, one axis too many
    return [*made, ((flat_loss, p, thin[0], 1e-5, 1e-4), True), ((flat_loss, p, thin, 1e-5, 1e-4), False)]


def _zero(rng: Generator, shape: Shape) -> Made:
    nothing = {"cubic": 0.0, "square": 0.0, "linear": 0.0, "coupling": 0.0, "kind": "float"}
    p, bad = rng.normal(size=shape), np.zeros(shape)
    bad.flat[-1] = 1.0
    return [((nothing, p, np.zeros(shape), 1e-5, 1e-4), True), ((nothing, p, bad, 1e-5, 1e-4), False)]


def _arguments(rng: Generator, shape: Shape) -> Made:
    loss, p, exact = _loss(rng, shape, cubic=1.0)
    near = exact * 1.003
    return [
        ((loss, p, exact, 0.1, 0.1), True),  # a step of 0.1 moves a cubic's slope by 0.01
        ((loss, p, exact, 0.1, 1e-5), False),
        ((loss, p, exact, 1e-5, 1e-5), True),
        ((loss, p, near, 1e-5, 0.1), True),
        ((loss, p, near, 1e-5, 1e-5), False),
    ]


def _loss(rng: Generator, shape: Shape, cubic: float = 0.2) -> tuple[dict, np.ndarray, np.ndarray]:
    """A loss, a parameter and the exact gradient there, whose entries lie between 1.5 and 3.5 in size."""
    p = rng.uniform(0.5, 1.0, size=shape) * rng.choice([-1, 1], size=shape)
    slopes = rng.uniform(1.5, 3.5, size=shape) * rng.choice([-1, 1], size=shape)
    square, coupling = 0.25, 0.05 / p.size
    linear = slopes - 3 * cubic * p**2 - 2 * square * p - 2 * coupling * p.sum()
    loss = {"cubic": np.full(shape, cubic), "square": square, "linear": linear, "coupling": coupling, "kind": "float"}
    return loss, p, slopes


def _loss_call(rng: Generator, shape: Shape, kind: str, epsilon: float) -> tuple:
    loss, p, _ = _loss(rng, shape)
    return loss | {"kind": kind, "cubic": rng.normal(size=shape), "coupling": 0.3}, p, epsilon


# Softmax, attention, LayerNorm, block


def softmax_properties(shapes: Sequence[Shape]) -> tuple[Property, ...]:
    """Of softmax_backward, on weights of these shapes (..., S)."""
    where = "lesson 04, Softmax"

    def cases(rng: Generator) -> list[Case]:
        return [Case(f"weights of shape {s}", ((_weights(rng, s, masked=False), rng.normal(size=s)),)) for s in shapes]

    def masked(rng: Generator) -> list[Case]:
        return [Case(f"masked weights of shape {s}", ((_weights(rng, s, masked=True), rng.normal(size=s)),))
                for s in shapes if len(s) > 1]  # fmt: skip

    reference = gradients.softmax_backward
    return (
        matches(reference, cases, name="gradient of the scores", lesson=where, mistakes=SOFTMAX_MISTAKES, **CLOSE,
                meaning="Every score moves every weight of its row: weights * (upstream - sum of weights * upstream)."),
        matches(reference, masked, name="nothing flows behind the mask", lesson=where, **CLOSE,
                mistakes=SOFTMAX_MISTAKES,
                meaning="A weight of zero gives its score no gradient, and no other row of the table is touched."),
        leaves_inputs_alone(cases, where, argument_names(reference)),
    )  # fmt: skip


def attention_properties(shapes: Sequence[Shape]) -> tuple[Property, ...]:
    """Of attention_backward, on query, key (..., T, d_h) and value (..., T, d_v); a shape is (..., T, d_h, d_v)."""
    where = "lesson 04, Attention"

    def cases(rng: Generator) -> list[Case]:
        return [Case(f"query of shape {s[:-1]}, d_v = {s[-1]}", (_attention_call(rng, s),)) for s in shapes]

    reference = gradients.attention_backward
    parts = (
        ("d_query", "dL/dQ = dL/dS @ K / root of d_h, with S the scores: the same scale as in the forward pass."),
        ("d_key", "dL/dK = (dL/dS)^T @ Q / root of d_h: a key gets a gradient from every query that sees it."),
        ("d_value", "dL/dV = weights^T @ upstream: a value gets a gradient from every query that reads it."),
    )
    return (
        *(_item(reference, cases, i, n, meaning, where, ATTENTION_MISTAKES) for i, (n, meaning) in enumerate(parts)),
        leaves_inputs_alone(cases, where, argument_names(reference)),
    )


def layer_norm_properties(shapes: Sequence[Shape], epsilons: Sequence[float]) -> tuple[Property, ...]:
    """Of layer_norm_backward, on values of these shapes (..., d)."""
    where = "lesson 04, LayerNorm"

    def cases(rng: Generator) -> list[Case]:
        return [
            Case(f"values of shape {s}, epsilon = {e:g}", (_norm_call(rng, s, e),)) for s in shapes for e in epsilons
        ]

    def constant(rng: Generator) -> list[Case]:
        calls = [(np.full(s, 2.0), *_norm_call(rng, s, 1e-3)[1:]) for s in shapes]
        return [Case(f"constant rows, shape {s}", (c,)) for s, c in zip(shapes, calls, strict=True)]

    reference = gradients.layer_norm_backward
    parts = (
        ("d_values", "Mean and deviation depend on every entry of a row, so each entry's gradient has three terms."),
        ("d_gamma", "gamma scales every position: its gradient sums upstream * normalised values over all positions."),
        ("d_beta", "beta is added at every position: its gradient sums upstream over all positions."),
    )
    return (
        *(_item(reference, cases, i, n, text, where, LAYER_NORM_MISTAKES) for i, (n, text) in enumerate(parts)),
        matches(reference, constant, name="constant rows", lesson=where, **CLOSE, results=[name for name, _ in parts],
                meaning="A row without spread divides by the root of epsilon, never by zero."),
        leaves_inputs_alone(cases, where, argument_names(reference)),
    )  # fmt: skip


def block_properties(sizes: Sequence[tuple[int, int, int, int]]) -> tuple[Property, ...]:
    """Of decoder_block_backward, for sizes (T, d, h, d_ff)."""
    where = "lesson 04, The whole block"

    def cases(rng: Generator) -> list[Case]:
        return [Case(f"T = {t}, d = {d}, h = {h}, d_ff = {f}", (_block_call(rng, t, d, h, f),)) for t, d, h, f in sizes]

    reference = gradients.decoder_block_backward
    parts = (
        ("d_values", "The input reaches the output past both branches and through both; all paths add up.", ()),
        ("gradients of the attention branch", "gamma1, beta1, W_Q, W_K, W_V, W_O get their gradients in this order.",
         ("gamma1", "beta1", "wq", "wk", "wv", "wo")),
        ("gradients of the feed-forward branch", "gamma2, beta2, W_1, b_1, W_2, b_2 get theirs in this order.",
         ("gamma2", "beta2", "w1", "b1", "w2", "b2")),
    )  # fmt: skip
    return (
        *(_named(_item(reference, cases, i, n, meaning, where, BLOCK_MISTAKES), weights)
          for i, (n, meaning, weights) in enumerate(parts)),
        leaves_inputs_alone(cases, where, argument_names(reference)),
    )  # fmt: skip


def _named(prop: Property, weights: Sequence[str]) -> Property:
    """The property, whose findings speak of the gradient of weights[i] and not of item i."""

    def judge(case: Case, values: list) -> str | None:
        text = prop.judge(case, values)
        return text and re.sub(r"^item (\d+)", lambda found: f"gradient of {weights[int(found[1])]}", text)

    return replace(prop, judge=judge)


def _projection_call(rng: Generator, time: int, d_in: int, d_out: int) -> tuple[np.ndarray, ...]:
    return rng.normal(size=(time, d_in)), _weight(rng, d_in, d_out), rng.normal(size=(time, d_out))


def _item(
    reference: Callable, cases: Draw, item: int, name: str, meaning: str, where: str, mistakes: tuple[Mistake, ...]
) -> Property:
    return matches(reference, cases, item=item, name=name, meaning=meaning, lesson=where, mistakes=mistakes, **CLOSE)


def _weight(rng: Generator, *shape: int) -> np.ndarray:
    return rng.normal(scale=shape[0] ** -0.5, size=shape)


def _weights(rng: Generator, shape: Shape, masked: bool) -> np.ndarray:
    exponentials = np.exp(rng.normal(size=shape))
    if masked:
        exponentials = exponentials * np.tri(*shape[-2:])
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def _attention_call(rng: Generator, shape: Shape) -> tuple[np.ndarray, ...]:
    *lead, width, value_width = shape
    query, key = rng.normal(size=(2, *lead, width))
    return query, key, rng.normal(size=(*lead, value_width)), rng.normal(size=(*lead, value_width))


def _norm_call(rng: Generator, shape: Shape, epsilon: float) -> tuple:
    values = rng.normal(loc=0.7, scale=1.5, size=shape)
    return values, rng.uniform(0.5, 2, size=shape[-1]), epsilon, rng.normal(size=shape)


def _block_call(rng: Generator, time: int, width: int, heads: int, wide: int) -> tuple:
    gamma1, gamma2 = rng.uniform(0.5, 1.5, size=(2, width))
    beta1, beta2, b2 = 0.3 * rng.normal(size=(3, width))
    attention = (gamma1, beta1, *(_weight(rng, width, width) for _ in range(4)))
    b1 = 0.3 * rng.normal(size=wide)
    feed_forward = (gamma2, beta2, _weight(rng, width, wide), b1, _weight(rng, wide, width), b2)
    return rng.normal(size=(time, width)), attention, feed_forward, heads, rng.normal(size=(time, width))


# What a student sees

EXERCISES = (
    PublicExercise(
        "P4.17",
        "output_projection_loss_and_grad",
        projection_properties([(4, 3, 5)]),
        (
            (
                "the shapes do not fit",
                "The gradient has the projection's own shape, (d_in, d_out): which product of context\n"
                "(T, d_in) and upstream (T, d_out), one of them transposed, has it?",
            ),
            (
                "the loss is an array",
                "Multiply output and upstream entry by entry, then sum over everything: one number.",
            ),
            (
                "the numbers are off by a factor",
                "The loss is a plain sum. Nothing is divided by T, and upstream enters once.",
            ),
        ),
    ),
    PublicExercise(
        "P4.18",
        "finite_difference_gradient",
        difference_properties([(3,), (2, 3)], (0.1, 1e-4)),
        (
            (
                "all entries are the same",
                "Move one entry at a time. `np.ndindex(parameter.shape)` walks over every index.",
            ),
            (
                "the error shrinks like epsilon, not like its square",
                "Step to both sides of the point and divide by the\ndistance between the two, 2 epsilon.",
            ),
            (
                "an argument was changed, or a view gives zeros",
                "Work on a float64 copy, or add an array that is zero but for\n"
                "one entry. A flattened view of an array with gaps is a copy that the loss never sees.",
            ),
        ),
    ),
    PublicExercise(
        "P4.19",
        "gradient_check",
        gradient_check_properties([(3,), (2, 3)]),
        (
            (
                "True comes for a wrong gradient",
                "Compare every entry. A mean or a sum hides one bad entry, and a difference\n"
                "without its absolute value hides a wrong sign.",
            ),
            (
                "True comes for NaN or for another shape",
                "Ask whether all entries are close, not whether any is far: NaN is\n"
                "neither. Compare shapes before numbers, or broadcasting will hide the mistake.",
            ),
            (
                "False comes for a gradient of zero",
                "A relative error divides by the size of the gradient. Add a small absolute\n"
                "allowance, as np.allclose does with rtol and atol.",
            ),
        ),
    ),
    PublicExercise(
        "P4.20",
        "softmax_backward",
        softmax_properties([(4,), (3, 4)]),
        (
            (
                "only the diagonal is right",
                "Raising one score lowers all the other weights of its row, so the Jacobian is\n"
                "diag(w) - w w^T, not diag(w).",
            ),
            ("rows mix", "The sum runs over the last axis alone; keepdims=True lets it meet its own row again."),
            (
                "rows of the result do not sum to zero",
                "Softmax ignores a constant added to a row, so a gradient's row must sum\n"
                "to zero. Subtract sum(weights * upstream) from upstream before you multiply by the weights.",
            ),
        ),
    ),
    PublicExercise(
        "P4.21",
        "attention_backward",
        attention_properties([(4, 3, 2), (2, 3, 4, 5)]),
        (
            (
                "d_value is right, the others are not",
                "Walk back in order: upstream to weights (upstream @ V^T), weights to\n"
                "scores (softmax backward), scores to query and key.",
            ),
            (
                "d_query and d_key are off by one factor",
                "The scores were divided by the root of d_h on the way forward; the\n"
                "gradient passes through the same division, once.",
            ),
            (
                "it fails only with leading axes",
                "`.T` turns all axes round. swapaxes(-2, -1) swaps the last two alone.",
            ),
        ),
    ),
    PublicExercise(
        "P4.22",
        "layer_norm_backward",
        layer_norm_properties([(4,), (2, 3, 5)], (1e-5, 0.1)),
        (
            (
                "d_gamma or d_beta has the wrong shape",
                "They are shared by all positions: sum over every axis but the last.",
            ),
            (
                "d_values is right only for small upstream means",
                "Three terms: g itself, minus its mean (the mean of the row\n"
                "moves too), minus n * mean(g * n) (so does its deviation), all over the deviation.\n"
                "Here g = upstream * gamma.",
            ),
            (
                "it fails for a large epsilon",
                "Recompute the deviation as the forward pass has it: epsilon inside the root.",
            ),
        ),
    ),
    PublicExercise(
        "P4.23",
        "decoder_block_backward",
        block_properties([(4, 6, 2, 5)]),
        (
            (
                "d_values is far off",
                "At a residual, the gradient goes both ways and the two add: past the branch as it is,\n"
                "and through it.",
            ),
            (
                "the first branch's gradients are off, the second's are right",
                "What enters the attention branch is the gradient\n"
                "after both paths of the feed-forward residual have been added.",
            ),
            (
                "a weight's gradient is off",
                "Every product needs its own forward input: recompute the normalised values, heads\n"
                "and activations first, and name each one.",
            ),
        ),
    ),
)
