"""P5.3: warm-up and cosine."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from numpy.random import Generator

from proof_lm.checks.core import Case, Mistake, Property
from proof_lm.checks.general import behaves, matches, refuses

LESSON = "lesson 07, Warm-up and cosine"
CLOSE = {"rtol": 1e-5, "atol": 1e-9, "tolerance": "1e-5 of each rate, compared in float64: room for a float32 answer"}


@dataclass(frozen=True)
class Schedule:
    """learning_rate: the right way unless told otherwise."""

    ramp: str = "from one"  # "from zero", "none", "squared", "to the end"
    shape: str = "cosine"  # "line", "quarter", "whole period", "constant", "rising"
    last: int = 1  # the last step is number steps - last
    starts: str = "after warm-up"  # where the descent starts: "at zero", "a step late"
    floor: str = "share"  # "zero", "rate", "added", "maximum"
    holds: bool = True  # past the end the rate stays

    def __call__(self, step: int, steps: int, warmup: int, peak: float, final_share: float) -> float:
        """The rate of step 0, 1, ..."""
        if step < 0 or steps < 1 or warmup < 0:
            raise ValueError(f"step {step}, steps {steps}, warmup {warmup}: expected at least 0, 1 and 0")
        if step < warmup and self.ramp != "none":
            return peak * self.rise(step, steps, warmup)
        start = {"at zero": 0, "a step late": warmup + 1}.get(self.starts, warmup)
        progress = max(0.0, (step - start) / max(1, steps - self.last - start))
        fall = self.fall(min(1.0, progress) if self.holds else progress)
        floor = {"zero": 0.0, "rate": final_share / peak}.get(self.floor, final_share)
        if self.floor == "added":
            return peak * (floor + fall)
        if self.floor == "maximum":
            return peak * max(floor, fall)
        return peak * (floor + (1 - floor) * fall)

    def rise(self, step: int, steps: int, warmup: int) -> float:
        if self.ramp == "from zero":
            return step / warmup
        if self.ramp == "a step late":
            return (step + 1) / (warmup + 1)
        share = (step + 1) / warmup
        return {"squared": share**2, "to the end": (step + 1) / steps}.get(self.ramp, share)

    def fall(self, progress: float) -> float:
        half = (1 + math.cos(math.pi * progress)) / 2
        other = {
            "line": 1 - progress,
            "quarter": math.cos(math.pi * progress / 2),
            "whole period": (1 + math.cos(2 * math.pi * progress)) / 2,
            "constant": 1.0,
            "rising": 1 - half,
        }
        return other.get(self.shape, half)


learning_rate = Schedule()

WRONG_RAMP = (
    Mistake(
        "from zero",
        "step 0 has rate 0, so a whole batch teaches nothing: the rate of step s is peak * (s + 1) / warmup",
        Schedule(ramp="from zero"),
    ),
    Mistake(
        "a step late", "the line is a step too long: step warmup - 1 has the peak already", Schedule(ramp="a step late")
    ),
    Mistake("none", "there is no warm-up: the descent starts at step 0", Schedule(ramp="none", starts="at zero")),
    Mistake("flat", "there is no warm-up: the rate starts at the peak", Schedule(ramp="none")),
    Mistake("to the end", "the line rises towards the last step: divide by warmup", Schedule(ramp="to the end")),
    Mistake("squared", "the warm-up is curved: it is a straight line", Schedule(ramp="squared")),
)
WRONG_FALL = (
    Mistake("line", "the descent is a straight line: it is half a cosine", Schedule(shape="line")),
    Mistake(
        "quarter",
        "a quarter of a period came: the cosine runs from 1 to -1, over half a period",
        Schedule(shape="quarter"),
    ),
    Mistake("whole period", "a whole period came: the rate goes down and up again", Schedule(shape="whole period")),
    Mistake("rising", "the descent rises: 1 + cos, not 1 - cos", Schedule(shape="rising")),
    Mistake("constant", "the rate stays at the peak after warm-up", Schedule(shape="constant")),
    Mistake(
        "from step 0",
        "progress is counted from step 0: it is 0 where warm-up ends",
        Schedule(starts="at zero"),
    ),
    Mistake(
        "steps",
        "the last step is number steps - 1: progress reaches 1 there, a step earlier than yours",
        Schedule(last=0),
    ),
    Mistake(
        "a step late", "the descent starts a step late: progress is 0 in step warmup", Schedule(starts="a step late")
    ),
)
WRONG_END = (
    Mistake("to zero", "the argument final_share has no effect: the rate falls to 0", Schedule(floor="zero")),
    Mistake("a rate", "final_share was taken as a rate: it is a share of the peak", Schedule(floor="rate")),
    Mistake(
        "added",
        "final_share was added to the whole cosine: scale the cosine by 1 - final_share, so that it starts at the peak",
        Schedule(floor="added"),
    ),
    Mistake(
        "cut off",
        "the cosine falls to 0 and was cut off at final_share: scale it so that it ends there",
        Schedule(floor="maximum"),
    ),
    Mistake("rises again", "past the last step the rate rises again: hold it", Schedule(holds=False)),
)
Size = tuple[int, int]


def schedule_properties(sizes: Sequence[Size], by_hand: bool = False) -> tuple[Property, ...]:
    """Of learning_rate for (steps, warmup), 1 < warmup < steps - 3.

    A case is one call. With `by_hand` its label holds all five numbers, and they are round.
    """
    every = WRONG_RAMP + WRONG_FALL + WRONG_END

    def case(numbers: tuple[int, int, int], peak: float, share: float, said: str = "") -> Case:
        step, steps, warmup = numbers
        text = f"{said}{': ' if said else ''}step {step}, steps = {steps}, warmup = {warmup}"
        if by_hand:
            peak, share = 0.8, 0.25
            text += f", peak = {peak}, final_share = {share}"
        return Case(text, ((*numbers, peak, share),))

    def on(*where: str):
        def cases(rng: Generator) -> list[Case]:
            made = []
            for number, (steps, warmup) in enumerate(sizes):
                peak, share = float(10 ** rng.uniform(-2, 0) / (1 + 999 * (number % 2))), float(rng.uniform(0.02, 0.6))
                picked = [step for place in where for step in _steps(rng, place, steps, warmup)]
                made += [case((step, steps, warmup), peak, share) for step in picked]
            return made

        return cases

    def edges(rng: Generator) -> list[Case]:
        peak, share = float(rng.uniform(0.1, 2)), float(rng.uniform(0.1, 0.6))
        steps = int(rng.integers(5, 12))
        shaped = {
            "no warm-up": [(step, steps, 0) for step in range(steps)],
            "warm-up of one step": [(step, steps, 1) for step in range(steps)],
            "nothing but warm-up": [(step, steps, steps) for step in range(steps)],
            "one step after warm-up": [(step, steps, steps - 1) for step in range(steps)],
            "a single step": [(0, 1, 0)],
        }
        return [case(call, peak, share, label) for label, calls in shaped.items() for call in calls]

    def impossible(rng: Generator) -> list[Case]:
        wrong = {"step = -1": (-1, 9, 3), "steps = 0": (0, 0, 0), "warmup = -2": (4, 9, -2)}
        return [Case(label, ((*call, 0.1, 0.1),)) for label, call in wrong.items()]

    return (
        matches(learning_rate, on("warm-up"), name="warm-up is a straight line", lesson=LESSON,
                meaning="Step s < warmup has peak * (s + 1) / warmup: step 0 learns already.", mistakes=every, **CLOSE),
        matches(learning_rate, on("around the peak"), name="the peak stands on both sides of the boundary",
                meaning="Step warmup - 1 ends the line at the peak, and step warmup starts the descent there.",
                lesson=LESSON, mistakes=every, **CLOSE),
        matches(learning_rate, on("between"), name="half a cosine leads down", lesson=LESSON,
                meaning="peak * (share + (1 - share) * (1 + cos(pi * progress)) / 2), progress 0 in step warmup and 1 "
                "in step steps - 1.", mistakes=every, **CLOSE),
        matches(learning_rate, on("the end", "past the end"), name="the last step has the final share, and so have all after",
                meaning="Step steps - 1 has peak * final_share, and a run that goes on keeps it.", lesson=LESSON,
                mistakes=every, **CLOSE),
        matches(learning_rate, edges, name="no warm-up, nothing but warm-up, a single step", lesson=LESSON,
                meaning="Nothing is divided by zero; where no more than one step is left to come down, it keeps the peak.",
                mistakes=every, **CLOSE),
        refuses(impossible, error="ValueError", name="impossible numbers are refused", lesson=LESSON,
                meaning="step < 0, steps < 1 or warmup < 0 is a mistake of the caller: ValueError."),
        behaves(learning_rate, on("warm-up", "between"), LESSON, name="learning_rate"),
    )  # fmt: skip


def _steps(rng: Generator, place: str, steps: int, warmup: int) -> list[int]:
    """Steps of that part of the schedule."""
    if place == "warm-up":
        return sorted({0, 1, *rng.integers(warmup, size=3).tolist()} & set(range(warmup)))
    if place == "around the peak":
        return [warmup - 1, warmup, warmup + 1]
    if place == "between":
        return [warmup + 1, (warmup + steps) // 2, *rng.integers(warmup + 1, steps - 1, size=2).tolist(), steps - 2]
    return [steps - 1] if place == "the end" else [steps, steps + 1, steps + int(rng.integers(2, 3 * steps))]
