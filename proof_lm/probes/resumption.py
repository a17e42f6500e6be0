"""A small training run whose whole state is in plain sight, and what becomes of it when it is saved and restored.

A candidate is a pair: save_run(run) -> plain data, restore_run(plain data) -> run.
"""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from proof_lm.probes.codec import decode, encode

Pair = tuple[Callable, Callable]


class Batches:
    """Rows of a data set in random order, epoch after epoch; a rest too small for a batch is dropped."""

    def __init__(self, rows: int, batch_size: int, seed: int) -> None:
        self.rows, self.batch_size = rows, batch_size
        self.rng = np.random.default_rng(seed)
        self.order = self.rng.permutation(rows)  # of the epoch under way
        self.position = 0  # in that order

    def next(self) -> np.ndarray:
        """The rows of the next batch."""
        if self.position + self.batch_size > self.rows:
            self.order, self.position = self.rng.permutation(self.rows), 0
        picked = self.order[self.position : self.position + self.batch_size]
        self.position += self.batch_size
        return picked


class Run:
    """A network of one hidden layer with dropout, trained on a data set that its config decides.

    Its state is `step`, `average`, `weights`, `first`, `second`, `rng` and `batches` (with `rng`, `order` and
    `position`); everything else follows from `config`. Weights and moments are changed in place.
    """

    def __init__(self, config: dict) -> None:
        self.config = dict(config)
        seed, rows, width, hidden = (config[name] for name in ("seed", "rows", "width", "hidden"))
        fixed = np.random.default_rng([seed, 0])
        self.inputs = fixed.normal(size=(rows, width))
        self.targets = np.sin(self.inputs @ fixed.normal(size=width))
        self.weights = {
            "up": fixed.normal(size=(width, hidden)),
            "bias": np.zeros(hidden),
            "down": fixed.normal(size=hidden),
        }
        self.first = {name: np.zeros_like(weight) for name, weight in self.weights.items()}
        self.second = {name: np.zeros_like(weight) for name, weight in self.weights.items()}
        self.step = 0  # done so far; the learning rate follows from it
        self.average = 0.0  # running average of the loss, for the progress bar
        self.rng = np.random.default_rng([seed, 1])  # of dropout
        self.batches = Batches(rows, config["batch_size"], seed + 2)

    @property
    def rate(self) -> float:
        """The learning rate of the step to come."""
        progress = (self.step + 1) / self.config["warmup"]
        return self.config["peak"] * min(progress, progress**-0.5)

    def train(self, steps: int) -> None:
        """Take so many optimiser steps."""
        for _ in range(steps):
            picked = self.batches.next()
            loss, gradients = self._loss(self.inputs[picked], self.targets[picked])
            for name, gradient in gradients.items():
                self.first[name] += 0.1 * (gradient - self.first[name])
                self.second[name] += 0.05 * (gradient**2 - self.second[name])
                self.weights[name] -= self.rate * self.first[name] / (np.sqrt(self.second[name]) + 1e-2)
            self.average += 0.1 * (loss - self.average)
            self.step += 1

    def _loss(self, inputs: np.ndarray, targets: np.ndarray) -> tuple[float, dict[str, np.ndarray]]:
        hidden = np.tanh(inputs @ self.weights["up"] + self.weights["bias"])
        kept = self.rng.random(hidden.shape, dtype="float32") >= self.config["dropout"]
        kept = kept / (1 - self.config["dropout"])
        error = (hidden * kept) @ self.weights["down"] - targets
        blame = 2 * error[:, None] * self.weights["down"] * kept * (1 - hidden**2) / len(error)
        gradients = {
            "up": inputs.T @ blame,
            "bias": blame.sum(axis=0),
            "down": (hidden * kept).T @ error * 2 / len(error),
        }
        return float(np.mean(error**2)), gradients


def describe(run: Any) -> dict:
    """Everything that a run's future depends on, as plain data; the run is left as it is."""
    batches, rng = copy.deepcopy((_a_run(run).batches, run.rng))
    return {
        "config": run.config,
        "weights": run.weights,
        "first": run.first,
        "second": run.second,
        "step": run.step,
        "rate": run.rate,
        "average": run.average,
        "position": batches.position,
        "batches": np.concatenate([batches.next() for _ in range(2 + 2 * batches.rows // batches.batch_size)]),
        "dropout": rng.random(7, dtype=np.float32),
    }


def _a_run(run: Any) -> Run:
    if not isinstance(run, Run):
        raise TypeError(f"restore_run: a Run was expected, {type(run).__name__} came")
    return run


def _through_a_file(saved: Any) -> Any:
    """What another process reads after this one wrote it: numbers, text, lists, dictionaries and arrays only."""
    return decode(encode(saved))


def begun(config: dict, steps: int = 0) -> Run:
    """A run after some steps from weights that its config alone does not lead to, as one that was fine-tuned."""
    run = Run(config)
    for weight in run.weights.values():
        weight += 0.125
    run.train(steps)
    return run


def restored(candidate: Pair, config: dict, steps: int) -> Any:
    """A run after some steps, and what was saved of it as restored before anything else happens."""
    save, restore = candidate
    run = begun(config, steps)
    return {"run": describe(run), "back": describe(restore(_through_a_file(save(run))))}


def resumed(candidate: Pair, config: dict, stops: list[int], total: int) -> Any:
    """The end of a run, and of the same run saved, lost and restored at each of the stops."""
    save, restore = candidate
    straight, run = begun(config, total), begun(config)
    for stop in stops:
        run.train(stop - run.step)
        saved = _through_a_file(save(run))
        run.train(3)  # what is lost
        run = _a_run(restore(saved))
    run.train(total - stops[-1])
    return {"straight": describe(straight), "resumed": describe(run)}


def watched(candidate: Pair, config: dict, stops: list[int], total: int) -> Any:
    """The end of a run that was saved at each of the stops and never restored."""
    save, _ = candidate
    run = begun(config)
    for stop in stops:
        run.train(stop - run.step)
        save(run)
    run.train(total - run.step)
    return describe(run)


def kept(candidate: Pair, config: dict, steps: int, more: int) -> Any:
    """What was saved of a run, at once, when it has gone on, is saved again, and one restored from it has gone on."""
    save, restore = candidate
    run = begun(config, steps)
    saved = save(run)
    then = _through_a_file(saved)
    run.train(more)
    later = _through_a_file(saved)
    save(run)
    beside = _through_a_file(saved)
    own = _through_a_file(saved)  # one piece of data, restored twice
    restore(own).train(more)
    return {"then": then, "later": later, "beside": beside, "used": own, "again": describe(restore(own)), "run": describe(run)}


def two_at_once(candidate: Pair, configs: list[dict], steps: int) -> Any:
    """Two runs that are saved one after the other, then restored in the same order."""
    save, restore = candidate
    runs = [begun(config, steps) for config in configs]
    saved = [_through_a_file(save(run)) for run in runs]
    return {"run": [describe(run) for run in runs], "back": [describe(restore(data)) for data in saved]}
