"""AdamW (Loshchilov and Hutter, 2019) with parameter groups, and a warm-up and cosine schedule."""

from __future__ import annotations

import math

import torch
from torch import nn

from proof_lm.training.config import TrainConfig


def parameter_groups(model: nn.Module, weight_decay: float) -> list[dict]:
    """Matrices, which decay, and vectors (biases and norms), which do not."""
    matrices = [parameter for parameter in model.parameters() if parameter.dim() >= 2]
    vectors = [parameter for parameter in model.parameters() if parameter.dim() < 2]
    return [{"params": matrices, "weight_decay": weight_decay}, {"params": vectors, "weight_decay": 0.0}]


def make_optimiser(model: nn.Module, config: TrainConfig) -> torch.optim.AdamW:
    """AdamW over the model's parameters, all of a group updated in one fused pass."""
    groups = parameter_groups(model, config.weight_decay)
    return torch.optim.AdamW(groups, lr=config.learning_rate, betas=(config.beta1, config.beta2), fused=True)


def learning_rate(step: int, config: TrainConfig) -> float:
    """The rate of step 0, 1, ...: a straight line up to the peak, then half a cosine down to the final rate."""
    if step < config.warmup:
        return config.learning_rate * ((step + 1) / config.warmup)
    progress = (step - config.warmup) / max(1, config.steps - 1 - config.warmup)
    cosine = (1 + math.cos(math.pi * min(1.0, progress))) / 2
    return config.learning_rate * (config.final_rate + (1 - config.final_rate) * cosine)
