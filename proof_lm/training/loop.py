"""The training loop: batches in, better weights out, and little lost however it is stopped."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_

from proof_lm.generation import evaluating
from proof_lm.training.checkpoints import State, save_checkpoint
from proof_lm.training.config import TrainingError
from proof_lm.training.data import Batch, Data
from proof_lm.training.distributed import World
from proof_lm.training.optimiser import learning_rate
from proof_lm.training.speed import prepare

VALIDATION_BATCHES = 4


@dataclass(frozen=True)
class Report:
    """One step: its number, loss in nats a token, learning rate, gradient norm before clipping, tokens and seconds."""

    step: int
    loss: float
    learning_rate: float
    gradient_norm: float
    tokens: int
    seconds: float
    validation_loss: float | None = None


def train_step(
    model: nn.Module, optimiser: torch.optim.Optimizer, parts: Sequence[Batch], asked: float, rate: float, clip: float
) -> tuple[float, float]:
    """One optimiser step on a batch that comes in parts: (its loss, norm of its gradient before clipping).

    A part's mean loss counts by its share of the `asked` positions, so that the gradient is that of the whole
    batch however it is cut. FloatingPointError, and no step, if the gradient is not finite.
    """
    loss = 0.0
    for part in parts:
        share = int(part.loss_mask.sum()) / asked
        _, mean_loss = model(part.token_ids, part.labels, part.loss_mask)
        (share * mean_loss).backward()
        loss += share * mean_loss.item()
    norm = clip_grad_norm_(model.parameters(), clip).item()
    if not math.isfinite(norm):
        raise FloatingPointError(f"loss {loss}, gradient norm {norm}")
    for group in optimiser.param_groups:
        group["lr"] = rate
    optimiser.step()
    optimiser.zero_grad()
    return loss, norm


def validate(model: nn.Module, data: Data, batches: int = VALIDATION_BATCHES) -> float:
    """The mean loss over the first batches of the data, in evaluation mode."""
    total, asked = 0.0, 0
    with evaluating(model), torch.no_grad():
        for step in range(batches):
            batch = data.batch(step).to(next(model.parameters()).device)
            count = int(batch.loss_mask.sum())
            total, asked = total + model(*batch)[1].item() * count, asked + count
    return total / asked


def train(
    state: State,
    data: Data,
    validation: Data | None = None,
    world: World | None = None,
    watch: Callable[[Report], None] = lambda report: None,
    tell: Callable[[str], None] = print,
) -> State:
    """Take the state to its last step, or to where Ctrl-C stops it, with a checkpoint at every interval and the end.

    The state is changed in place and returned. `watch` gets every step's report, `tell` what cannot be switched
    on here. TrainingError if the loss is no longer a number or a checkpoint cannot be written.
    """
    config, world = state.config, world or World()
    if config.batch_size % (world.size * config.accumulate):
        raise TrainingError(
            f"batch_size: expected a multiple of processes x accumulate = {world.size} x {config.accumulate}, "
            f"got {config.batch_size}"
        )
    model = world.wrap(prepare(state.model, config, tell))
    if world.is_first and state.step == 0:
        save_checkpoint(state)
    with stop_signals() as stop_asked:
        stopping = False
        while state.step < config.steps and not stopping:
            began = time.perf_counter()
            batch = data.batch(state.step).to(world.device)
            asked = int(batch.loss_mask.sum())
            rate = learning_rate(state.step, config)
            with dropout_seed(config.seed, state.step, world.rank), refusing_nonfinite(state, rate):
                parts = world.share(batch).parts(config.accumulate)
                loss, norm = train_step(model, state.optimiser, parts, asked / world.size, rate, config.clip)
            state.step += 1
            loss, stopping = world.mean(loss, stop_asked())
            seconds = time.perf_counter() - began
            check = validation and (state.step % config.validate_every == 0 or state.step == config.steps)
            validation_loss = validate(state.model, validation) if check else None
            watch(Report(state.step, loss, rate, norm, batch.token_ids.numel(), seconds, validation_loss))
            ends = stopping or state.step == config.steps
            if world.is_first and (ends or state.step % config.save_every == 0):
                save_checkpoint(state)
    return state


@contextmanager
def stop_signals() -> Iterator[Callable[[], bool]]:
    """Let Ctrl-C and SIGTERM ask for a stop after the step under way; a second one interrupts at once."""
    asked = threading.Event()

    def ask(number: int, frame: object) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()

    if threading.current_thread() is not threading.main_thread():  # only the main thread may handle signals
        yield asked.is_set
        return
    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def dropout_seed(seed: int, step: int, rank: int) -> Iterator[None]:
    """Random numbers that depend on seed, step and process alone; the global generators are left as they were."""
    with torch.random.fork_rng():
        torch.manual_seed(int(np.random.SeedSequence((seed, step, rank)).generate_state(1)[0]))
        yield


@contextmanager
def refusing_nonfinite(state: State, rate: float) -> Iterator[None]:
    try:
        yield
    except FloatingPointError as error:
        raise TrainingError(
            f"step {state.step + 1}: {error}; the weights are still those of step {state.step}: lower "
            f"learning_rate (here {rate:.1e}) or clip and start anew; to resume would come to the same"
        ) from None
