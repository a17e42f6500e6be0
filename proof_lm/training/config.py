"""Everything that a training run depends on, in one typed, frozen place that its checkpoints carry along."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any

from proof_lm.model import CHOICES, DecoderConfig

HARDEST = 7  # lines; an evaluation draws theorems of three lines more, and longer ones take ever longer to draw
PRECISIONS = ("float32", "bfloat16", "auto")


class TrainingError(ValueError):
    """One line for the person who trains: what is wrong, where, and what to do."""


def _option(default: Any, meaning: str, least: float = 1) -> Any:
    return field(default=default, metadata={"meaning": meaning, "least": least})


def _choice(name: str, meaning: str) -> Any:
    return _option(getattr(DecoderConfig, name), f"{meaning}: {', '.join(CHOICES[name])}")


@dataclass(frozen=True)
class TrainConfig:
    """A training run. The fields are the options of the command line; TrainingError names one that cannot be."""

    run: str = _option("runs/proofs", "folder of the run's checkpoints and log")
    text: str = _option("", "train on the bytes of this file instead of on proofs")
    examples: int = _option(120_000, "theorems to train on")
    hardest: int = _option(3, "lines of the longest proofs to train on")
    largest_formula: int = _option(3, "atoms in the largest formula", least=2)
    seed: int = _option(41, "decides weights, data and their order", least=0)
    steps: int = _option(16_000, "optimiser steps")
    batch_size: int = _option(32, "sequences in a step, over all processes")
    accumulate: int = _option(1, "parts in which a process takes its share of a batch, to save memory")
    learning_rate: float = _option(4e-3, "peak of the schedule", least=0)
    final_rate: float = _option(0.03, "learning rate of the last step as a share of the peak", least=0)
    warmup: int = _option(200, "steps up to the peak", least=0)
    weight_decay: float = _option(0.1, "AdamW's pull of matrices towards zero", least=0)
    beta1: float = _option(0.9, "AdamW's memory of gradients", least=0)
    beta2: float = _option(0.95, "AdamW's memory of squared gradients", least=0)
    clip: float = _option(1.0, "largest norm of a step's gradient", least=0)
    context_length: int = _option(128, "tokens in the longest sequence")
    n_layers: int = _option(4, "blocks")
    d_model: int = _option(64, "width")
    n_heads: int = _option(4, "attention heads")
    d_ff: int = _option(256, "feed-forward width")
    dropout: float = _option(0.0, "share of activations dropped while training", least=0)
    position: str = _choice("position", "how the model knows positions")
    activation: str = _choice("activation", "activation of the feed-forward networks")
    norm: str = _choice("norm", "place of the norms in a block")
    tie_embeddings: bool = _option(DecoderConfig.tie_embeddings, "the head's weight is the embedding's")
    head_bias: bool = _option(DecoderConfig.head_bias, "the head has a bias")
    validate_every: int = _option(1000, "steps between validations")
    save_every: int = _option(250, "steps between checkpoints: what a crash can cost")
    precision: str = _option("float32", "float32, bfloat16, or auto for what a short test finds faster here")
    compile: bool = _option(False, "run the model through torch.compile")

    def __post_init__(self) -> None:
        for option in fields(self):
            kind, value = type(option.default), getattr(self, option.name)
            if kind is float and type(value) is int:
                object.__setattr__(self, option.name, float(value))
            elif type(value) is not kind:
                raise TrainingError(f"{option.name}: expected {kind.__name__}, got {value!r}")
            if kind in (int, float) and not option.metadata["least"] <= value < math.inf:
                most = " and finite" if value == math.inf else ""
                raise TrainingError(f"{option.name}: expected at least {option.metadata['least']}{most}, got {value}")
        if not self.run:
            raise TrainingError("run: expected a folder, got ''")
        if self.hardest > HARDEST:
            raise TrainingError(f"hardest: expected at most {HARDEST} lines, got {self.hardest}")
        if self.precision not in PRECISIONS:
            raise TrainingError(f"precision: expected one of {', '.join(PRECISIONS)}, got {self.precision!r}")
        if self.seed >= 2**63:
            raise TrainingError(f"seed: expected less than 2**63, got {self.seed}")
        for name in ("beta1", "beta2"):
            if getattr(self, name) >= 1:
                raise TrainingError(f"{name}: expected less than 1, got {getattr(self, name)}")
        self.decoder(vocab_size=2)  # refuses sizes that do not fit together

    def decoder(self, vocab_size: int) -> DecoderConfig:
        """The model's config for a vocabulary of that size."""
        shared = {option.name for option in fields(self)} & {option.name for option in fields(DecoderConfig)}
        try:
            return DecoderConfig(vocab_size, **{name: getattr(self, name) for name in shared})
        except ValueError as error:
            raise TrainingError(str(error)) from None
