"""Switches that make a run faster where the machine can, and say so in one line where it cannot."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from proof_lm.model import ProofLM
from proof_lm.training.config import TrainConfig

TRIAL_SECONDS = 0.02  # or as long as three turns take
WORTHWHILE = 1.1  # bfloat16 must be this much faster to be chosen: it rounds more


class Rounded(torch.autograd.Function):
    """float32 tensors -> the same in bfloat16, and their gradients back, each way in one pass over all of them."""

    @staticmethod
    def forward(ctx: Any, *wide: Tensor) -> tuple[Tensor, ...]:
        return _copies(wide, torch.bfloat16)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, ...]:
        return _copies(upstream, torch.float32)


def _copies(tensors: tuple[Tensor, ...], dtype: torch.dtype) -> tuple[Tensor, ...]:
    copies = [torch.empty_like(tensor, dtype=dtype) for tensor in tensors]
    torch._foreach_copy_(copies, list(tensors))
    return tuple(copies)


class InBfloat16(nn.Module):
    """A model that computes in bfloat16, from its weights rounded anew at each step; these and the loss stay float32."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, token_ids: Tensor, labels: Tensor, loss_mask: Tensor) -> tuple[Tensor, Tensor]:
        names, weights = zip(*self.model.named_parameters(), strict=True)
        rounded = dict(zip(names, Rounded.apply(*weights), strict=True))
        return functional_call(self.model, rounded, (token_ids, labels, loss_mask))


def prepare(model: ProofLM, config: TrainConfig, tell: Callable[[str], None]) -> nn.Module:
    """The model with the config's switches on; `tell` hears of one that this machine does not support."""
    prepared: nn.Module = InBfloat16(model) if config.precision == "bfloat16" else model
    if config.precision == "bfloat16" and not _runs(prepared, config.context_length):
        tell("precision: bfloat16 is not supported here, float32 is used")
        prepared = model
    if config.compile:
        # rotations are complex products, which stay uncompiled
        warnings.filterwarnings("ignore", "Torchinductor does not support code generation for complex operators")
        compiled = torch.compile(prepared, dynamic=True)
        if _runs(compiled, config.context_length):
            return compiled
        tell("compile: torch.compile does not work here (it needs a C++ compiler), the model runs uncompiled")
    return prepared


def settled(config: TrainConfig) -> TrainConfig:
    """The config with `auto` replaced by the faster precision here, so that a resumed run computes the same.

    One block tries both on whole batches, since on fewer rows bfloat16 gains less.
    """
    if config.precision != "auto":
        return config
    model = ProofLM(replace(config.decoder(vocab_size=2), n_layers=1))
    candidates = {"float32": model, "bfloat16": InBfloat16(model)}
    seconds: dict[str, list[float]] = {precision: [] for precision in candidates}
    rows, steps = max(1, config.batch_size // config.accumulate), min(128, config.context_length)
    end = time.perf_counter() + TRIAL_SECONDS
    while len(seconds["bfloat16"]) < 3 or time.perf_counter() < end:
        for precision, candidate in candidates.items():  # in turns, so that a busy machine is busy for both
            began = time.perf_counter()
            _step(candidate, rows, steps)
            seconds[precision].append(time.perf_counter() - began)
    fastest = {precision: min(taken[1:]) for precision, taken in seconds.items()}  # the first warms up
    faster = fastest["float32"] > WORTHWHILE * fastest["bfloat16"]
    return replace(config, precision="bfloat16" if faster else "float32")


def _step(model: nn.Module, rows: int, steps: int) -> None:
    ids = torch.zeros(rows, steps, dtype=torch.int64, device=next(model.parameters()).device)
    model(ids, ids, torch.ones_like(ids, dtype=torch.bool))[1].backward()


def _runs(model: nn.Module, context_length: int) -> bool:
    """Whether one small step works; a switch may fail in any way, and not before it is used."""
    try:
        _step(model, 2, min(16, context_length))
    except Exception:
        return False
    finally:
        model.zero_grad()
    return True
