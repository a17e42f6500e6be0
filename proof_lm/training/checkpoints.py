"""Checkpoints that a crash cannot spoil: one safetensors file each, whole or not there at all.

A file holds weights, AdamW's two moments for each of them, the number of steps done and the config. That is all
there is to a run: schedule, data order and dropout masks follow from the seed and the step.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from proof_lm.model import ProofLM
from proof_lm.training.config import TrainConfig, TrainingError
from proof_lm.training.optimiser import make_optimiser

KEPT = 2  # the newest, and one more should the newest be torn
MOMENTS = ("exp_avg", "exp_avg_sq")


@dataclass
class State:
    """A run as it stands after `step` optimiser steps."""

    config: TrainConfig
    model: ProofLM
    optimiser: torch.optim.AdamW
    step: int = 0


def new_state(config: TrainConfig, vocab_size: int) -> State:
    """The run before its first step; the seed decides the weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        model = ProofLM(config.decoder(vocab_size))
    return State(config, model, make_optimiser(model, config))


def save_checkpoint(state: State) -> Path:
    """Write the state into its run's folder and drop all but the newest files; TrainingError if it cannot be written."""
    folder = Path(state.config.run)
    path = folder / f"step-{state.step:08d}.safetensors"
    tensors = _tensors(state)
    about = json.dumps(
        {"step": state.step, "config": asdict(state.config), "vocab_size": state.model.config.vocab_size}
    )
    content = save(tensors, metadata={"about": about, "sha256": _digest(about, tensors)})
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write_whole(path, content)
    except OSError as error:
        raise TrainingError(f"{path}: not written: {error.strerror}; earlier checkpoints are as they were") from None
    for old in checkpoints(folder)[KEPT:]:
        old.unlink(missing_ok=True)
    return path


def checkpoints(folder: str | Path) -> list[Path]:
    """The folder's checkpoints, newest first."""
    return sorted(Path(folder).glob("step-*.safetensors"), reverse=True)


def load_checkpoint(path: str | Path) -> State:
    """The state in one file; TrainingError if the file is torn or not a checkpoint."""
    try:
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no dict)
    except (OSError, SafetensorError) as error:
        raise TrainingError(f"{path}: torn or not a checkpoint: {error}") from None
    about = metadata.get("about", "")
    if metadata.get("sha256") != _digest(about, tensors):
        raise TrainingError(f"{path}: its content is not what was written")
    about = json.loads(about)
    try:
        state = new_state(TrainConfig(**about["config"]), about["vocab_size"])
    except (TypeError, ValueError) as error:
        raise TrainingError(f"{path}: its config is of another version: {error}") from None
    state.step = about["step"]
    restore(state, tensors)
    return state


def load_newest(folder: str | Path, tell: Callable[[str], None] = print) -> State:
    """The newest state of the run that can be read; `tell` hears of every file that cannot."""
    paths = checkpoints(folder)
    for path in paths:
        try:
            return load_checkpoint(path)
        except TrainingError as error:
            tell(f"{error}; trying the one before" if path != paths[-1] else str(error))
    remedy = f"remove {folder}, then start anew" if paths else "start one"
    raise TrainingError(f"{folder}: no checkpoint that can be read; {remedy} with `python -m proof_lm train`")


def restore(state: State, tensors: dict[str, Tensor]) -> None:
    """Put saved weights and moments in their places; TrainingError, and no change, if they are of another model."""
    places = _tensors(state)
    for name in [*places, *tensors]:
        expected, found = (str(tuple(of[name].shape)) if name in of else "none" for of in (places, tensors))
        if expected != found:
            raise TrainingError(f"checkpoint of another config: {name}: expected {expected}, found {found}")
    for name, place in places.items():
        place.copy_(tensors[name])
    for moments in state.optimiser.state.values():
        moments["step"].fill_(state.step)


def _tensors(state: State) -> dict[str, Tensor]:
    """Weights and moments by name, the ones in use, not copies; moments that are not there yet are zeros."""
    tensors = {}
    for name, parameter in state.model.named_parameters():  # a tied matrix comes once
        moments = state.optimiser.state[parameter]
        if not moments:  # AdamW makes them in its first step, as here
            moments["step"] = torch.zeros((), dtype=torch.float32, device=parameter.device)
            moments.update({moment: torch.zeros_like(parameter) for moment in MOMENTS})
        tensors[f"model.{name}"] = parameter.detach()
        tensors |= {f"{moment}.{name}": moments[moment] for moment in MOMENTS}
    return tensors


def _digest(about: str, tensors: dict[str, Tensor]) -> str:
    digest = sha256(about.encode())
    for name in sorted(tensors):
        digest.update(tensors[name].contiguous().cpu().view(torch.uint8).numpy())
    return digest.hexdigest()


def _write_whole(path: Path, content: bytes) -> None:
    """Write beside the place, force it to the disk, then rename: the name never shows half a file."""
    draft = path.with_suffix(".draft")
    try:
        with open(draft, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)  # the rename itself must reach the disk too
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
