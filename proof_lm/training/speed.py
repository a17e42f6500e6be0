"""Switches that make a run faster where the machine can, and say so in one line where it cannot."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn

from proof_lm.model import ProofLM, TransformerDecoderBlock
from proof_lm.training.config import TrainConfig

TRIAL_SECONDS = 0.02
WORTHWHILE = 1.1  # bfloat16 must be this much faster to be chosen: it rounds more


class Autocast(nn.Module):
    """A model whose matrix products run in bfloat16; weights, norms and loss stay float32."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, token_ids: Tensor, labels: Tensor, loss_mask: Tensor) -> tuple[Tensor, Tensor]:
        with torch.autocast(token_ids.device.type, torch.bfloat16):
            return self.model(token_ids, labels, loss_mask)


def prepare(model: ProofLM, config: TrainConfig, tell: Callable[[str], None]) -> nn.Module:
    """The model with the config's switches on; `tell` hears of one that this machine does not support."""
    prepared: nn.Module = Autocast(model) if config.precision == "bfloat16" else model
    if config.precision == "bfloat16" and not _runs(prepared):
        tell("precision: bfloat16 is not supported here, float32 is used")
        prepared = model
    if config.compile:
        compiled = torch.compile(prepared, dynamic=True)
        if _runs(compiled):
            return compiled
        tell("compile: torch.compile does not work here (it needs a C++ compiler), the model runs uncompiled")
    return prepared


def settled(config: TrainConfig) -> TrainConfig:
    """The config with `auto` replaced by the faster precision here, so that a resumed run computes the same."""
    if config.precision != "auto":
        return config
    block = TransformerDecoderBlock(config.d_model, config.n_heads, config.d_ff)
    x = torch.randn(config.batch_size, min(128, config.context_length), config.d_model)

    def seconds(enabled: bool) -> float:
        """The fastest of the repetitions that the trial's time allows, the first of which warms up."""
        times, end = [], time.perf_counter() + TRIAL_SECONDS / 2
        while len(times) < 3 or time.perf_counter() < end:
            began = time.perf_counter()
            with torch.autocast("cpu", torch.bfloat16, enabled):
                block(x).sum().backward()
            times.append(time.perf_counter() - began)
        return min(times[1:])

    faster = seconds(False) > WORTHWHILE * seconds(True)
    return replace(config, precision="bfloat16" if faster else "float32")


def _runs(model: nn.Module) -> bool:
    """Whether one small step works; a switch may fail in any way, and not before it is used."""
    try:
        ids = torch.zeros(2, 16, dtype=torch.int64, device=next(model.parameters()).device)
        model(ids, ids, torch.ones_like(ids, dtype=torch.bool))[1].backward()
    except Exception:
        return False
    finally:
        model.zero_grad()
    return True
