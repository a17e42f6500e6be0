"""P5.4: a run that is saved, lost and restored is the run that was never interrupted, bit for bit."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator

from proof_lm.checks.core import Case, Mistake, Property, difference, own_answers
from proof_lm.probes import Answer
from proof_lm.probes.resumption import Run, begun, describe

LESSON = "lesson 07, Exact resumption"
PARTS = ("weights", "first", "second", "step", "average")
PLACES = ("middle of an epoch", "end of an epoch", "an odd step")
Size = tuple[int, int, int, int]  # rows, width, hidden, batch size


def save_run(run: Run) -> dict[str, Any]:
    """All that a run's future depends on, as plain data of its own."""
    batches = run.batches
    order = {"rng": batches.rng.bit_generator.state, "order": batches.order, "position": batches.position}
    parts = {name: getattr(run, name) for name in PARTS}
    return deepcopy({"config": run.config, **parts, "rng": run.rng.bit_generator.state, "batches": order})


def restore_run(saved: dict[str, Any]) -> Run:
    """The run that was saved, with arrays of its own."""
    saved = deepcopy(saved)
    run = Run(saved["config"])
    for name in PARTS:
        setattr(run, name, saved[name])
    run.rng.bit_generator.state = saved["rng"]
    run.batches.rng.bit_generator.state = saved["batches"]["rng"]
    run.batches.order, run.batches.position = saved["batches"]["order"], saved["batches"]["position"]
    return run


def _forgets(*parts: str) -> tuple[Callable, Callable]:
    """A pair after whose restoring these parts are those of a new run."""

    def restore(saved: dict) -> Run:
        run, fresh = restore_run(saved), Run(saved["config"])
        for part in parts:
            owner, _, name = part.rpartition(".")
            home, new = (getattr(one, owner) if owner else one for one in (run, fresh))
            setattr(home, name, getattr(new, name))
        return run

    return save_run, restore


def _rounded(kind: str) -> tuple[Callable, Callable]:
    """A pair that keeps weights and moments in fewer digits."""

    def restore(saved: dict) -> Run:
        run = restore_run(saved)
        for name in ("weights", "first", "second"):
            low = {
                key: value.astype(np.float32) if kind == "float32" else np.round(value, 6)
                for key, value in saved[name].items()
            }
            setattr(run, name, {key: value.astype(float) for key, value in low.items()})
        return run

    return save_run, restore


def _new_epoch(saved: dict) -> Run:
    run = restore_run(saved)
    run.batches.order, run.batches.position = run.batches.rng.permutation(run.batches.rows), 0
    return run


def _swapped(saved: dict) -> Run:
    run = restore_run(saved)
    run.first, run.second = run.second, run.first
    run.rng, run.batches.rng = run.batches.rng, run.rng
    return run


def _in_batches(saved: dict) -> Run:
    run = restore_run(saved)
    run.batches.position //= run.batches.batch_size
    return run


def _state_as_seed(saved: dict) -> Run:
    run = restore_run(saved)
    run.rng, run.batches.rng = (
        np.random.default_rng(rng.bit_generator.state["state"]["state"]) for rng in (run.rng, run.batches.rng)
    )
    return run


def _one_generator(saved: dict) -> Run:
    run = restore_run(saved)
    run.batches.rng.bit_generator.state = saved["rng"]
    return run


def _half_state(saved: dict) -> Run:
    run = restore_run(saved)
    for rng in (run.rng, run.batches.rng):
        rng.bit_generator.state = rng.bit_generator.state | {"has_uint32": 0, "uinteger": 0}
    return run


def _seeded_again(saved: dict) -> Run:
    run = restore_run(saved)
    run.batches.rng = np.random.default_rng(run.config["seed"] + 2)
    return run


WRONG_WEIGHTS = (
    Mistake("no weights", "the weights are new ones", _forgets("weights")),
    Mistake("float32", "the weights were rounded to float32: not a bit may be lost", _rounded("float32")),
    Mistake("digits", "the weights were rounded to a few digits: not a bit may be lost", _rounded("digits")),
)
WRONG_MOMENTS = (
    Mistake("no moments", "the optimiser starts anew: both moments are zero again", _forgets("first", "second")),
    Mistake("no first moments", "the first moments start from zero again", _forgets("first")),
    Mistake("no second moments", "the second moments start from zero again", _forgets("second")),
    Mistake("swapped", "first and second are swapped", (save_run, _swapped)),
    Mistake("float32", "the moments were rounded to float32: not a bit may be lost", _rounded("float32")),
    Mistake("digits", "the moments were rounded to a few digits: not a bit may be lost", _rounded("digits")),
)
WRONG_STEP = (
    Mistake("no step", "the step is 0 again: warm-up starts anew", _forgets("step")),
    Mistake("no average", "the running average of the loss starts anew", _forgets("average")),
    Mistake("neither", "step and running average start anew", _forgets("step", "average")),
)
WRONG_GENERATOR = (
    Mistake(
        "half a number lost",
        "a generator keeps half a number for the next draw (has_uint32, uinteger): save its whole state",
        (save_run, _half_state),
    ),
    Mistake(
        "state as seed",
        "a number of the state is a new seed and no state: assign the whole dictionary to bit_generator.state",
        (save_run, _state_as_seed),
    ),
)
WRONG_DROPOUT = (
    Mistake(
        "dropout seeded again",
        "dropout draws from the start again: the generator's state belongs into what is saved, not its seed",
        _forgets("rng"),
    ),
    Mistake("other generator", "dropout's generator got the state of the batches': each has its own", (save_run, _swapped)),
    *WRONG_GENERATOR,
)
WRONG_DATA = (
    Mistake(
        "batches from the start",
        "the data starts over: save the position, the order of the epoch under way and the generator behind it",
        _forgets("batches"),
    ),
    Mistake(
        "position forgotten",
        "the epoch under way starts over: the position in it was not restored",
        _forgets("batches.position"),
    ),
    Mistake(
        "order forgotten",
        "the position is right in another order: the permutation of the epoch under way was drawn before, so it "
        "must be saved itself",
        _forgets("batches.order"),
    ),
    *(
        Mistake(
            "data generator forgotten",
            "this epoch is right and the next one is not: the generator of the batches was not restored",
            pair,
        )
        for pair in (_forgets("batches.rng"), (save_run, _seeded_again))
    ),
    Mistake("new epoch", "a new epoch was drawn: the rest of the one under way is lost", (save_run, _new_epoch)),
    Mistake(
        "one generator",
        "the batches' generator got the state of dropout's: each has its own",
        (save_run, _one_generator),
    ),
    Mistake("position in batches", "the position counts rows and not batches", (save_run, _in_batches)),
    *WRONG_GENERATOR,
)


def resumption_properties(sizes: Sequence[Size], longest: int) -> tuple[Property, ...]:
    """Of (save_run, restore_run), on runs of these sizes and at most so many steps."""

    def later(rng: Generator) -> list[Case]:
        made = []
        for place, size in zip(_shuffled(rng, PLACES), list(sizes) * len(PLACES), strict=False):
            steps = _stop(rng, size, longest, place)
            made.append(
                Case(f"{_said(size)}, saved after {steps} steps", ((_config(rng, size), steps),), "resumption.restored")
            )
        return made

    def interrupted(rng: Generator) -> list[Case]:
        made = []
        for number, size in enumerate(sizes):
            stops = [_stop(rng, size, longest, place) for place in PLACES]
            several = [1, *sorted(stops), longest] if number % 2 else [0, *sorted(stops)]
            for at in ([stops[number % len(stops)]], several):
                label = f"{_said(size)}, saved after {', '.join(map(str, at))} of {longest} steps"
                made.append(Case(label, ((_config(rng, size), at, longest),), "resumption.resumed"))
        return made

    def saved_only(rng: Generator) -> list[Case]:
        stops = [[1, 2, longest // 2, longest]] * len(sizes)
        return [
            Case(f"{_said(size)}, saved four times", ((_config(rng, size), at, longest),), "resumption.watched")
            for size, at in zip(sizes, stops, strict=True)
        ]

    def going_on(rng: Generator) -> list[Case]:
        return [
            Case(
                f"{_said(size)}, {steps} steps, and 4 more after saving",
                ((_config(rng, size), steps, 4),),
                "resumption.kept",
            )
            for size in sizes
            for steps in (_stop(rng, size, longest, "middle of an epoch"),)
        ]

    def pairs(rng: Generator) -> list[Case]:
        made = []
        for one, other in zip(sizes, [*sizes[1:], sizes[0]], strict=True):
            configs = [_config(rng, one), _config(rng, other)]
            made.append(Case(f"{_said(one)}; then {_said(other)}", ((configs, 5),), "resumption.two_at_once"))
        return made

    def part(name: str, meaning: str, mistakes: tuple[Mistake, ...], *keys: str) -> Property:
        return Property(name, meaning, later, partial(_restored_right, keys), "exact", LESSON, mistakes,
                        explains=partial(_same_part, keys))  # fmt: skip

    return (
        part("the weights come back", "Right after restore_run the weights are those that were saved, bit for bit.",
             WRONG_WEIGHTS, "config", "weights"),
        part("the optimiser's moments come back", "first and second belong to the state: without them the next steps "
             "are those of a new optimiser.", WRONG_MOMENTS, "first", "second"),
        part("the step comes back", "The learning rate follows from the step, so a schedule goes on only if that is kept; "
             "so does the running average.", WRONG_STEP, "step", "rate", "average"),
        part("dropout goes on with the same numbers", "A generator is restored by its whole state, not by its seed.",
             WRONG_DROPOUT, "dropout"),
        part("the data goes on with the same batches", "Order and position of the epoch under way and the generator of "
             "the epochs to come.", WRONG_DATA, "position", "batches"),
        Property("k steps, save, restore and N - k steps equal N steps", "Interrupted anywhere, once or several times, "
                 "the run ends where it would have ended, bit for bit.", interrupted, _resumed_right,
                 "exact between the two runs", LESSON),
        Property("saving leaves the run alone", "A run that was saved goes on as if it had not been: nothing drawn, "
                 "nothing moved.", saved_only, _undisturbed, "1e-6: the same steps, on whatever machine", LESSON,
                 manners=True),
        Property("what was saved stays as it is", "The run goes on and changes its arrays in place: what was saved shares "
                 "none of them, nor with what is saved later or a restored run.", going_on, _kept_right, "exact", LESSON),
        Property("two runs do not mix", "Everything is in what was saved, nothing in variables beside it.", pairs,
                 _both_right, "exact", LESSON),
    )  # fmt: skip


def _shuffled(rng: Generator, items: Sequence[str]) -> list[str]:
    return [items[i] for i in rng.permutation(len(items))]


def _said(size: Size) -> str:
    return f"{size[0]} rows, batches of {size[3]}"


def _config(rng: Generator, size: Size) -> dict:
    rows, width, hidden, batch_size = size
    numbers = {"rows": rows, "width": width, "hidden": hidden, "batch_size": batch_size}
    rates = {
        "peak": float(rng.uniform(0.02, 0.1)),
        "warmup": int(rng.integers(3, 9)),
        "dropout": float(rng.uniform(0.2, 0.5)),
    }
    return {"seed": int(rng.integers(1, 10_000)), **numbers, **rates}


def _stop(rng: Generator, size: Size, longest: int, place: str) -> int:
    """A number of steps below `longest` and above one epoch, at that place."""
    batches = size[0] // size[3]
    if place == "end of an epoch":
        return batches * int(rng.integers(1, (longest - 1) // batches + 1))
    if place == "middle of an epoch":
        return batches + int(rng.integers(1, batches))
    return 2 * int(rng.integers(batches // 2 + 1, longest // 2)) - 1


def _same(value: Any, wanted: Any) -> str | None:
    """The first part that is not equal bit for bit."""
    for key in wanted:
        text = difference(value[key], wanted[key], 0, 0)
        if text:
            return f"{key}: {text}"
    return None


def _restored_right(keys: tuple[str, ...], case: Case, values: list) -> str | None:
    run, back = ({key: values[0][side][key] for key in keys} for side in ("run", "back"))
    return _same(back, run)


def _same_part(keys: tuple[str, ...], mistake: Mistake, case: Case, given: list[Answer]) -> bool:
    planted = own_answers(mistake.candidate, case)
    ours, theirs = ([answer.value["back"][key] for key in keys] for answer in (planted[0], given[0]))
    return difference(theirs, ours, 0, 0) is None


def _resumed_right(case: Case, values: list) -> str | None:
    config, _, total = case.calls[0]
    text = _same(values[0]["resumed"], values[0]["straight"])
    return text or _real(values[0]["straight"], config, total)


def _undisturbed(case: Case, values: list) -> str | None:
    config, _, total = case.calls[0]
    return _unlike(values[0], config, total)


def _kept_right(case: Case, values: list) -> str | None:
    value, (config, steps, _) = values[0], case.calls[0]
    moments = ("the run went on", "later"), ("the run was saved again", "beside"), ("a restored run went on", "used")
    for when, name in moments:
        text = difference(value[name], value["then"], 0, 0)
        if text:
            return f"after {when}, what was saved is not what it was ({text}): copy arrays and dictionaries, do not share them"
    text = _unlike(value["again"], config, steps)
    return text and f"restored a second time from the same data, the run is another one ({text})"


def _both_right(case: Case, values: list) -> str | None:
    configs, steps = case.calls[0]
    runs = zip(("first", "second"), values[0]["back"], values[0]["run"], configs, strict=True)
    for place, back, run, config in runs:
        text = _same(back, run) or _real(run, config, steps)
        if text:
            return f"the {place} run: {text}"
    return None


def _unlike(value: Any, config: dict, steps: int) -> str | None:
    """How a run differs from one that was never touched, beyond what differs between machines."""
    return difference(value, describe(begun(config, steps)), 1e-6, 1e-8)


def _real(value: Any, config: dict, steps: int) -> str | None:
    """The run that others were compared with is a real one."""
    text = _unlike(value, config, steps)
    return text and f"the run itself is another one, {text}: leave the run and its class as they are"
