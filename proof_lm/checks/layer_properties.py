"""Properties of a PyTorch module that a student builds from sizes, whatever its parameters are called.

A case's facts are the sizes; its calls are those of proof_lm.probes.layers: arguments, setting, inputs.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.random import Generator

from proof_lm.checks.core import Case, Mistake, Property, difference, same
from proof_lm.checks.layer_roles import NoRoles, Roles, parameters, weights
from proof_lm.probes import Answer

Sizes = dict[str, int]  # with B and T
RTOL, ATOL = 1e-4, 3e-5
ROUNDING = "rtol 1e-4, atol 3e-5 beside float64: room for a mask, a table or a softmax in float32"
HIDDEN = 1e-6
EPSILON = 1e-8  # of a central difference: so small that hardly any ReLU changes sides within it
SINGLE = {"rtol": 2e-3, "atol": 2e-3}


@dataclass(frozen=True)
class Kind:
    """What sort of module it is: how to build it, feed it, and compute what it should give."""

    arguments: Callable[[Sizes], list]
    draw: Callable[[Generator, Sizes], np.ndarray]  # an input
    change: Callable[[Generator, Sizes, np.ndarray, int, int], np.ndarray]  # a copy with position (b, t) replaced
    roles: Callable[[Sequence[dict], Sizes], Iterator[Roles]]
    compute: Callable[[Any, dict, np.ndarray, Sizes], np.ndarray]  # (recipe, weights, input, sizes) -> output
    right: tuple  # recipes that are all accepted
    lesson: str = ""

    def setting(self, rng: Generator, **more: Any) -> dict:
        return {"seed": int(rng.integers(2**31)), **more}

    def fits(self, layout: Sequence[dict], sizes: Sizes, setting: dict, wrong: Callable) -> tuple[Any, Roles] | str:
        """The first (recipe, roles) for which `wrong(recipe, weights)` is None, else what it says of the likeliest."""
        said, values = "", parameters(layout, setting)
        try:
            for roles in self.roles(layout, sizes):
                found = weights(roles, values)
                for recipe in self.right:
                    text = wrong(recipe, found)
                    if text is None:
                        return recipe, roles
                    said = said or text
        except NoRoles as reason:
            return str(reason)
        return said


def label(sizes: Sizes, more: str = "") -> str:
    return ", ".join(f"{name} = {size}" for name, size in sizes.items()) + more


def known_weights(kind: Kind, table: Sequence[Sizes], mistakes: tuple[Mistake, ...], *, gains: Sequence[float] = (1.0,),
                  method: str = "", name: str, meaning: str) -> Property:  # fmt: skip
    """The output under weights that the grader sets, for every size and gain."""

    def cases(rng: Generator) -> list[Case]:
        made = []
        for sizes in table:
            for gain in gains:
                setting = kind.setting(rng, gain=gain, method=method)
                values = kind.draw(rng, sizes)
                more = "" if gain == 1 else f", weights of scale {gain:g}"
                call = (kind.arguments(sizes), setting, values)
                made.append(Case(label(sizes, more), (call,), "layers.outputs", sizes))
        return made

    def judge(case: Case, values: list) -> str | None:
        (_, setting, given), (value,) = case.calls[0], values

        if np.size(value["outputs"][0]) and np.isnan(value["outputs"][0]).all():
            return (
                "every output is NaN; frequent causes are a mask that hides the diagonal too, so that a row sees no key, and "
                "0 * -inf in a mask: take torch.full((T, T), -inf), then triu with diagonal=1"
            )

        def wrong(recipe: Any, found: dict) -> str | None:
            return difference(value["outputs"][0], kind.compute(recipe, found, given, case.facts), RTOL, ATOL)

        result = kind.fits(value["layout"], case.facts, setting, wrong)
        return result if isinstance(result, str) else None

    def explains(mistake: Mistake, case: Case, answers: list[Answer]) -> bool:
        return explained(kind, mistake, case, answers, lambda v: v["outputs"][0], kind.compute)

    return Property(name, meaning, cases, judge, ROUNDING, kind.lesson, mistakes, explains=explains)


def explained(
    kind: Kind, mistake: Mistake, case: Case, answers: list[Answer], read: Callable, compute: Callable
) -> bool:
    """Whether a mistake's recipe computes what came, under the likeliest assignments."""
    (answer,), (_, setting, given, *_) = answers, case.calls[0]
    if answer.error or not isinstance(answer.value, dict):
        return False
    came = np.asarray(read(answer.value), dtype=float)
    try:
        with np.errstate(all="ignore"):
            for roles in islice(kind.roles(answer.value["layout"], case.facts), 2):
                found = weights(roles, parameters(answer.value["layout"], setting))
                planted = compute(mistake.candidate, found, given, case.facts)
                blank = np.isnan(planted)
                if planted.shape != came.shape or blank.all() or (np.isnan(came) != blank).any():
                    continue
                if same(np.where(blank, 0, came), np.where(blank, 0, planted), RTOL, ATOL):
                    return True
    except (NoRoles, ValueError, KeyError, TypeError):
        return False
    return False


def single_precision(kind: Kind, table: Sequence[Sizes], method: str = "") -> Property:
    """The output in float32 is that in float64, within what float32 allows."""

    def cases(rng: Generator) -> list[Case]:
        made = []
        for sizes in table:
            setting, values = kind.setting(rng, method=method), kind.draw(rng, sizes)
            single = setting | {"precision": "float32"}
            calls = tuple((kind.arguments(sizes), each, values) for each in (setting, single))
            made.append(Case(label(sizes, ", float64 and float32"), calls, "layers.outputs"))
        return made

    def judge(case: Case, values: list) -> str | None:
        double, single = (value["outputs"] for value in values)
        text = difference(single, double, **SINGLE)
        return text and f"float32 beside float64: {text}"

    text = "rtol 2e-3, atol 2e-3: float32 has seven digits and sums a few hundred terms"
    meaning = "The module works in float32, as PyTorch builds it, and in float64."
    return Property("float32 and float64", meaning, cases, judge, text, "lesson 06, Arrays become tensors", manners=True)


def future_hidden(kind: Kind, table: Sequence[Sizes]) -> Property:
    """Replacing position (b, t) changes the outputs (b, t), (b, t + 1), … and no other."""

    def cases(rng: Generator) -> list[Case]:
        made = []
        for sizes in table:
            original = kind.draw(rng, sizes)
            places = [(b, t) for t in range(sizes["T"]) for b in range(sizes["B"])]
            if len(places) > 16:  # every position, in one sequence of the batch after the other
                places = [(t % sizes["B"], t) for t in range(sizes["T"])]
            changed = [kind.change(rng, sizes, original, b, t) for b, t in places]
            call = (kind.arguments(sizes), kind.setting(rng), original, *changed)
            made.append(
                Case(label(sizes, ", every position replaced in turn"), (call,), "layers.outputs", (sizes, places))
            )
        return made

    def judge(case: Case, values: list) -> str | None:
        sizes, places = case.facts
        original, *others = (np.asarray(v, dtype=float) for v in values[0]["outputs"])
        if original.ndim != 3 or original.shape[:2] != (sizes["B"], sizes["T"]):
            return f"an output of shape (B, T, …) was expected, shape {original.shape} came"
        if not np.isfinite(original).all():
            return "the output is not finite: a row without a visible key gives NaN"
        for (b, t), output in zip(places, others, strict=True):
            moved = ~(np.abs(output - original) <= HIDDEN).all(axis=-1)  # (B, T); NaN counts as moved
            if moved[b, :t].any():
                return f"replacing position {t} of sequence {b} changed the output at position {int(moved[b].argmax())}"
            if np.delete(moved, b, axis=0).any():
                return f"replacing a position of sequence {b} changed the output of another sequence"
            if not moved[b, t:].all():
                still = t + int((~moved[b, t:]).argmax())
                return f"replacing position {t} of sequence {b} left the output at position {still} as it was"
        return None

    meaning = "Each output depends on its own position and on all earlier ones of its sequence, and on nothing else."
    tolerance = "1e-6 in float64: hidden keys have weight 0, so that nothing but rounding may move"
    lesson = "lesson 06, The intervention"
    return Property("the future is hidden, the past is seen", meaning, cases, judge, tolerance, lesson)


def batch_permutes(kind: Kind, table: Sequence[Sizes]) -> Property:
    """Sequences in another order, or one alone, give the same outputs in that order."""

    def cases(rng: Generator) -> list[Case]:
        made = []
        for sizes in table:
            values, order = kind.draw(rng, sizes), rng.permutation(sizes["B"])
            call = (kind.arguments(sizes), kind.setting(rng), values, values[order], values[-1:])
            made.append(Case(label(sizes, ", sequences in another order"), (call,), "layers.outputs", order))
        return made

    def judge(case: Case, values: list) -> str | None:
        whole, permuted, last = values[0]["outputs"]
        text = difference(permuted, np.asarray(whole)[case.facts], 0, HIDDEN)
        if text:
            return f"with the sequences in another order, {text}"
        text = difference(last, np.asarray(whole)[-1:], 0, HIDDEN)
        return text and f"with the last sequence alone, {text}"

    meaning = "A batch is several sequences side by side: their order and number change no sequence's output."
    lesson = "lesson 06, The axes, once more"
    return Property("the batch may be reordered", meaning, cases, judge, "1e-6 in float64", lesson, manners=True)


def any_length(kind: Kind, sizes: Sizes, shapes: Sequence[tuple[int, int]], width: str) -> Property:
    """One module, fed batches of several shapes in turn; sizes[width] is the output's last axis."""

    def cases(rng: Generator) -> list[Case]:
        most = {"B": max(b for b, _ in shapes), "T": max(t for _, t in shapes)}
        whole = kind.draw(rng, sizes | most)
        inputs = [np.ascontiguousarray(whole[:b, :t]) for b, t in shapes]
        call = (kind.arguments(sizes), kind.setting(rng), *inputs, whole)
        return [
            Case(
                f"{label(sizes)}; (B, T) = {', '.join(map(str, shapes))} in turn",
                (call,),
                "layers.outputs",
                sizes[width],
            )
        ]

    def judge(case: Case, values: list) -> str | None:
        *outputs, whole = values[0]["outputs"]
        for (b, t), output in zip(shapes, outputs, strict=True):
            if output.shape != (b, t, case.facts):
                return f"for B = {b}, T = {t}, shape {(b, t, case.facts)} was expected, shape {output.shape} came"
            text = difference(output, whole[:b, :t], 0, HIDDEN)
            if text:
                return f"B = {b}, T = {t}, the beginning of a longer input, has another output than within it: {text}"
        return None

    meaning = "Batch size and length are the input's, not the module's, and one call leaves nothing for the next."
    lesson = "lesson 06, The axes, once more"
    return Property("any batch size and length", meaning, cases, judge, "1e-6", lesson, manners=True)


def parameters_known(kind: Kind, table: Sequence[Sizes], meaning: str, twins: str = "") -> Property:
    """The parameters are those of the layer, each once, none left over; biases of matrices are free.

    With `twins` no two matrices may start with the same numbers: it says what to do instead.
    """

    def cases(rng: Generator) -> list[Case]:
        return [Case(label(sizes), ((kind.arguments(sizes),),), "layers.build", sizes) for sizes in table]

    def judge(case: Case, values: list) -> str | None:
        layout = values[0]
        try:
            roles = next(kind.roles(layout, case.facts))
        except NoRoles as reason:
            return str(reason)
        used = {piece.index for piece in roles.values() if piece}
        for index, entry in enumerate(layout):
            if index not in used:
                return f"a parameter of shape {tuple(entry['shape'])} is one too many"
        starts = [entry["start"] for entry in layout if len(entry["shape"]) > 1]
        if twins and len(set(starts)) < len(starts):
            return f"two matrices start with the same numbers: {twins}"
        return None

    return Property("parameters", meaning, cases, judge, lesson="lesson 06, A module owns its parameters")


def all_learn(kind: Kind, table: Sequence[Sizes], width: str) -> Property:
    """Gradients reach every parameter and the input, are finite and are those of the output."""

    def cases(rng: Generator) -> list[Case]:
        made = []
        for sizes in table:
            values = kind.draw(rng, sizes)
            upstream = rng.normal(size=(sizes["B"], sizes["T"], sizes[width]))
            call = (kind.arguments(sizes), kind.setting(rng), values, upstream)
            made.append(Case(label(sizes), (call,), "layers.gradients", (sizes, int(rng.integers(2**31)))))
        return made

    def judge(case: Case, values: list) -> str | None:
        (_, setting, given, upstream), (value,), (sizes, seed) = case.calls[0], values, case.facts
        layout, grads = value["layout"], list(value["gradients"])
        moving = given.dtype.kind == "f"
        for entry, gradient in zip(layout, grads, strict=True):
            text = f"the parameter of shape {tuple(entry['shape'])}"
            if gradient is None:
                return f"{text} gets no gradient: the output does not depend on it, or the way to it is cut"
            if not np.isfinite(gradient).all():
                return f"the gradient of {text} is not finite"
            if not np.any(gradient) and len(entry["shape"]) > 1:
                return f"the gradient of {text} is zero throughout"
        if moving and (value["input"] is None or not np.isfinite(value["input"]).all()):
            return "the input gets no finite gradient"
        found = kind.fits(layout, sizes, setting, lambda recipe, w: difference(
            value["outputs"][0], kind.compute(recipe, w, given, sizes), RTOL, ATOL))  # fmt: skip
        if isinstance(found, str):
            return None  # whose gradients they should be, the output does not tell

        recipe, roles = found
        rng = np.random.default_rng(seed)
        steps = [rng.normal(size=tuple(entry["shape"])) for entry in layout]
        shift = rng.normal(size=given.shape) if moving else np.zeros(1)
        terms = [g * s for g, s in zip([*grads, value["input"] if moving else 0.0], [*steps, shift], strict=True)]

        def loss(size: float) -> float:
            values = parameters(layout, setting)
            moved = weights(roles, [value + size * step for value, step in zip(values, steps, strict=True)])
            point = given + size * shift if moving else given
            return float(np.sum(kind.compute(recipe, moved, point, sizes) * upstream))

        slope = (loss(EPSILON) - loss(-EPSILON)) / (2 * EPSILON)
        allowed = 1e-4 * sum(float(np.abs(term).sum()) for term in terms) + 1e-4
        if abs(sum(float(term.sum()) for term in terms) - slope) <= allowed:
            return None
        return (
            "a small step of all weights and the input moves the output otherwise than the gradients say: a path is cut"
        )

    meaning = "Training can move every weight: each gets a gradient, finite, and the one that belongs to the output."
    tolerance = "1e-4 of the sum of all terms: a central difference and float32 tables"
    return Property("gradients reach everything", meaning, cases, judge, tolerance, "lesson 06, Every gradient")


def training_is_evaluation(kind: Kind, table: Sequence[Sizes]) -> Property:
    """Nothing is drawn at random: training mode gives what evaluation mode gives, twice."""

    def cases(rng: Generator) -> list[Case]:
        made = []
        for sizes in table:
            values, setting = kind.draw(rng, sizes), kind.setting(rng)
            calls = [(kind.arguments(sizes), setting | {"training": on}, values, values) for on in (False, True)]
            made.append(Case(label(sizes), tuple(calls), "layers.outputs"))
        return made

    def judge(case: Case, answers: list[Answer]) -> str | None:
        for answer in answers:
            if answer.error:
                return f"a result was expected, your code raised {answer.error}"
            if any(index >= 2 for index in answer.changed):
                return (
                    "the input was changed in place; work on a copy, for instance x = x + branch instead of x += branch"
                )
        evaluated, trained = (answer.value["outputs"] for answer in answers)
        if difference(evaluated[1], evaluated[0], 0, 0):
            return "a second call with the same input gives another output"
        text = difference(trained, evaluated, 0, HIDDEN)
        return text and f"in training mode, {text}: no dropout is asked for"

    meaning = "The output depends on weights and input alone; the input is left as it was."
    name = "same input, same output, in either mode"
    lesson = "lesson 06, A module owns its parameters"
    return Property(name, meaning, cases, judge, "1e-6", lesson, judges_errors=True, manners=True)
