"""P5.2: one AdamW step, with decoupled decay for some of the parameters and bias correction."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from proof_lm.checks.core import Case, Mistake, Property, difference, kind
from proof_lm.checks.general import argument_names, behaves, matches
from proof_lm.checks.p5.manners import CLOSE, one_of

LESSON = "lesson 07, AdamW with parameter groups"
Shape = tuple[int, ...]
Arrays = dict[str, np.ndarray]
# Some begin with another or hold it, so that only equality tells which one decays.
NAMES = ("up", "up.weight", "up.bias", "bias", "weight", "gamma", "gamma.bias")


@dataclass(frozen=True)
class AdamW:
    """adamw_step: the right way unless told otherwise."""

    decay: str = "decoupled"  # "none", "gradient", "all", "inverted", "without rate", "after", "doubled", "added"
    corrects: str = "both"  # "first", "second", "none"
    exponent: int = 0  # added to the number of the step in the corrections
    epsilon: str = "outside"  # "inside", "none", "squared away"
    second: str = "squares"  # "no root", "first squared", "magnitudes"
    betas: str = "given"  # "swapped", "defaults"
    share: str = "one minus beta"  # of the new gradient: "one"
    counts: bool = True
    keeps: str = "moments"  # what is handed back: "corrected"
    sign: float = -1.0
    moments: str = "both"  # "not kept"

    def __call__(
        self, parameters: Arrays, gradients: Arrays, state: dict, learning_rate: float, decayed: Collection[str],
        beta1: float = 0.9, beta2: float = 0.95, epsilon: float = 1e-8, weight_decay: float = 0.1,
    ) -> tuple[Arrays, dict]:  # fmt: skip
        """Arrays by name, and a state of "step", "first" and "second" -> both after the step."""
        if self.betas != "given":
            beta1, beta2 = (beta2, beta1) if self.betas == "swapped" else (0.9, 0.95)
        step = state["step"] + 1
        number = step + self.exponent
        new: Arrays = {}
        after: dict[str, Any] = {"step": step if self.counts else state["step"], "first": {}, "second": {}}
        for name, value in parameters.items():
            pull = weight_decay if self.decays(name in decayed) else 0.0
            gradient = gradients[name] + (pull * value if self.decay == "gradient" else 0.0)
            part1, part2 = (1.0, 1.0) if self.share == "one" else (1 - beta1, 1 - beta2)
            first = beta1 * state["first"][name] + part1 * gradient
            grown = {"first squared": first**2, "magnitudes": np.abs(gradient)}.get(self.second, gradient**2)
            second = beta2 * state["second"][name] + part2 * grown
            mean = first / (1 - beta1**number) if self.corrects in ("both", "first") else first
            square = second / (1 - beta2**number) if self.corrects in ("both", "second") else second
            moved = value + self.sign * learning_rate * mean / self.spread(square, epsilon)
            new[name] = moved + self.pull(learning_rate, pull, value, moved)
            kept = (mean, square) if self.keeps == "corrected" else (first, second)
            after["first"][name], after["second"][name] = kept
        return new, state if self.moments == "not kept" else after

    def decays(self, asked: bool) -> bool:
        return {"none": False, "all": True, "inverted": not asked}.get(self.decay, asked)

    def spread(self, square: np.ndarray, epsilon: float) -> np.ndarray:
        if self.second == "no root":
            return square + epsilon
        if self.epsilon == "inside":
            return np.sqrt(square + epsilon)
        return np.sqrt(square) + (epsilon if self.epsilon == "outside" else 0.0)

    def pull(self, rate: float, pull: float, before: np.ndarray, moved: np.ndarray) -> Any:
        size = {"without rate": 1.0, "doubled": 2 * rate, "gradient": 0.0, "added": -rate}.get(self.decay, rate)
        return -size * pull * (moved if self.decay == "after" else before)


adamw_step = AdamW()

RESULTS = ("new parameters", "new state")

WRONG_DECAY = (
    Mistake("none", "nothing decays: what is named in decayed is pulled towards zero", AdamW(decay="none")),
    Mistake(
        "in the gradient",
        "the decay went into the gradient (L2): the root of the second moment then divides it away; "
        "AdamW subtracts learning_rate * weight_decay * parameter by itself",
        AdamW(decay="gradient"),
    ),
    Mistake("everything", "everything decays: only the parameters named in decayed do", AdamW(decay="all")),
    Mistake(
        "the others",
        "the wrong ones decay: decayed names those that do, whatever their shape",
        AdamW(decay="inverted"),
    ),
    Mistake(
        "without the rate",
        "the decay is not scaled by the learning rate: subtract learning_rate * weight_decay * parameter",
        AdamW(decay="without rate"),
    ),
    Mistake("added", "the sign of the decay is wrong: it pulls towards zero", AdamW(decay="added")),
    Mistake("doubled", "the decay is twice as strong: there is no factor 2", AdamW(decay="doubled")),
    Mistake(
        "after the step",
        "the parameter had moved before it decayed: both parts of the step start from the old parameter",
        AdamW(decay="after"),
    ),
)
WRONG_CORRECTION = (
    Mistake(
        "none",
        "no bias correction: both averages start at zero, so divide them by 1 - beta ** step",
        AdamW(corrects="none"),
    ),
    Mistake(
        "first only", "the second moment is not corrected: divide it by 1 - beta2 ** step", AdamW(corrects="first")
    ),
    Mistake(
        "second only", "the first moment is not corrected: divide it by 1 - beta1 ** step", AdamW(corrects="second")
    ),
    Mistake(
        "a step ahead",
        "the correction is a step ahead: its exponent is the number of the step under way, 1 for the first",
        AdamW(exponent=1),
    ),
    Mistake(
        "a step behind",
        "the correction is a step behind: its exponent is the number of the step under way, 1 for the first",
        AdamW(exponent=-1),
    ),
)
WRONG_STEP = (
    Mistake("inside", "epsilon stands under the root: it is added to the root", AdamW(epsilon="inside")),
    Mistake("no epsilon", "the argument epsilon has no effect", AdamW(epsilon="none")),
    Mistake("no root", "the root is missing: divide by the root of the second moment", AdamW(second="no root")),
    Mistake("ascent", "the step goes uphill: subtract it", AdamW(sign=1.0)),
    Mistake("swapped", "beta1 and beta2 are swapped: beta1 belongs to the first moment", AdamW(betas="swapped")),
    Mistake("defaults", "the arguments beta1 and beta2 have no effect", AdamW(betas="defaults")),
)
WRONG_MOMENTS = (
    Mistake(
        "kept as corrected",
        "the corrected moments were kept: keep the running averages, and correct a copy at each step",
        AdamW(keeps="corrected"),
    ),
    Mistake("not kept", "the old state came back: return the new moments and step", AdamW(moments="not kept")),
    Mistake("not counted", "the step was not counted: the new state has step + 1", AdamW(counts=False)),
    Mistake(
        "sums",
        "the new gradient enters whole: an average takes 1 - beta of it",
        AdamW(share="one"),
    ),
    Mistake(
        "first squared",
        "the second moment averages squares of the first moment: it averages squares of the gradient",
        AdamW(second="first squared"),
    ),
    Mistake("magnitudes", "the second moment averages magnitudes: it averages squares", AdamW(second="magnitudes")),
    Mistake("swapped", "beta1 and beta2 are swapped: beta1 belongs to the first moment", AdamW(betas="swapped")),
    Mistake(
        "decay in the gradient",
        "the decay went into the gradient, and so into the moments: it bypasses both",
        AdamW(decay="gradient"),
    ),
)


def adamw_properties(sets: Sequence[Sequence[Shape]]) -> tuple[Property, ...]:
    """Of adamw_step on sets of parameters of these shapes."""

    def at(label: str, *, step: int | None = None, **numbers: tuple[float, float] | float):
        """Cases of one call for each set; a number is given or drawn evenly on a logarithmic scale."""

        def cases(rng: Generator) -> list[Case]:
            made = []
            for shapes in sets:
                drawn = {name: _number(rng, value) for name, value in numbers.items()}
                fresh = step if step is not None else int(rng.integers(1, 30))
                call = _call(rng, shapes, fresh, drawn.pop("size", 1.0), drawn.pop("learning_rate", 0.1))
                made.append(Case(f"{len(shapes)} parameters, {label}", ((drawn, *call),), "call_keywords"))
            return made

        return cases

    anything = {"beta1": (0.5, 0.95), "beta2": (0.6, 0.99), "epsilon": (1e-3, 0.1), "weight_decay": (0.05, 0.5)}
    plain = {"epsilon": 1e-12, "weight_decay": 0.0}
    rates = {"learning_rate": (0.05, 0.5)}
    anywhere = at("from a later state", **anything, **rates)

    def defaults(rng: Generator) -> list[Case]:
        made = [_call(rng, shapes, 3, 1e-7, 0.2) for shapes in sets]
        return [Case(f"{len(call[0])} parameters, five arguments, tiny gradients", (call,)) for call in made]

    def in_a_row(rng: Generator) -> list[Case]:
        made = []
        for shapes in sets:
            parameters, _, state, _, decayed = _call(rng, shapes, 0, 1.0, 0.0)
            gradients = [{name: rng.normal(size=v.shape) for name, v in parameters.items()} for _ in range(5)]
            made.append((parameters, state, gradients, rng.uniform(0.05, 0.3, 5).tolist(), decayed))
        return [Case(f"{len(call[0])} parameters, five steps", (call,), "steps.adamw") for call in made]

    def undecayed(rng: Generator) -> list[Case]:
        return [
            Case(case.label, ((*case.calls[0][:-1], []),), case.probe)
            for case in at("first step, nothing decays", step=0, size=(1e-3, 1e3), **rates, **plain)(rng)
        ]

    def resting(rng: Generator) -> list[Case]:
        return at("no gradient, only decay", step=0, size=0.0, weight_decay=(0.1, 0.8), **rates)(rng)

    return (
        one_of(0, adamw_step, resting, results=RESULTS, name="decay pulls what is named in decayed, and by itself", lesson=LESSON,
                meaning="Without a gradient a decayed parameter shrinks by learning_rate * weight_decay of itself; "
                "the others stay.", mistakes=WRONG_DECAY, **CLOSE),
        one_of(0, adamw_step, undecayed, results=RESULTS, name="the first step is as long as the learning rate", lesson=LESSON,
                meaning="With bias correction the first step is the gradient over its own size: learning_rate, "
                "whatever the gradient's scale.", mistakes=WRONG_CORRECTION + WRONG_STEP, **CLOSE),
        Property("moments are running averages", "The state that comes back has step + 1 and, by name, beta * old + "
                 "(1 - beta) * new of the gradients (first) and of their squares (second).",
                 anywhere, _state_right, CLOSE["tolerance"], LESSON, WRONG_MOMENTS),
        one_of(0, adamw_step, anywhere, results=RESULTS, name="a step from any state equals its definition", lesson=LESSON,
                meaning="parameter - learning_rate * (corrected first / (root of corrected second + epsilon) + "
                "weight_decay * parameter), decay only where asked.",
                mistakes=WRONG_STEP + WRONG_DECAY + WRONG_CORRECTION + WRONG_MOMENTS, **CLOSE),
        matches(adamw_step, in_a_row, name="steps in a row go on from the state", lesson=LESSON,
                meaning="Parameters and state that one step returns are what the next one takes.",
                mistakes=WRONG_MOMENTS + WRONG_CORRECTION + WRONG_DECAY, **CLOSE,
                results=[f"after step {step}" for step in range(1, 6)]),
        one_of(0, adamw_step, defaults, results=RESULTS, name="betas 0.9 and 0.95, epsilon 1e-8, decay 0.1 unless given",
                meaning="Among tiny gradients epsilon is no detail.", lesson=LESSON, **CLOSE),
        behaves(adamw_step, anywhere, LESSON, name="adamw_step", arguments=("", *argument_names(adamw_step))),
    )  # fmt: skip


def _state_right(case: Case, values: list) -> str | None:
    keywords, *arguments = case.calls[0]
    wanted = adamw_step(*arguments, **keywords)[1]
    if not isinstance(values[0], (tuple, list)) or len(values[0]) != 2:
        return f"{' and '.join(RESULTS)} were expected, {kind(values[0])} came"
    text = difference(values[0][1], wanted, CLOSE["rtol"], CLOSE["atol"])
    return text and f"state: {text}"


def _number(rng: Generator, value: tuple[float, float] | float) -> float:
    return float(np.exp(rng.uniform(*np.log(value)))) if isinstance(value, tuple) else value


def _call(rng: Generator, shapes: Sequence[Shape], step: int, size: float, rate: float) -> tuple:
    """Parameters, gradients, state after `step` steps, rate, and which of the parameters decay: some of every kind."""
    names = rng.permutation(NAMES)[: len(shapes)].tolist()
    shaped = list(zip(names, shapes, strict=True))
    parameters = {name: rng.normal(1, 1, shape) for name, shape in shaped}
    gradients = {name: size * rng.normal(size=shape) for name, shape in shaped}
    first = {name: np.sign(step) * size * rng.normal(size=shape) for name, shape in shaped}
    second = {name: np.sign(step) * size**2 * rng.uniform(0.2, 2, shape) for name, shape in shaped}
    places = rng.permutation(len(names))[: len(names) // 2 + int(rng.integers(len(names) % 2 + 1))]
    decayed = [names[i] for i in sorted(places)] or names[:1]
    return parameters, gradients, {"step": step, "first": first, "second": second}, rate, decayed
