"""Several processes that train one model: each takes its rows of every batch (PyTorch DDP, Li et al., 2020)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn

from proof_lm.training.data import Batch


@dataclass(frozen=True)
class World:
    """The processes of a run: how many, and which one this is."""

    rank: int = 0
    size: int = 1
    device: torch.device = torch.device("cpu")  # noqa: RUF009  a constant like any other

    @property
    def is_first(self) -> bool:
        """Whether this process writes files and speaks for all."""
        return self.rank == 0

    def wrap(self, model: nn.Module) -> nn.Module:
        """The model with gradients averaged over all processes."""
        return model if self.size == 1 else nn.parallel.DistributedDataParallel(model)

    def share(self, batch: Batch) -> Batch:
        """This process's rows of the batch."""
        return batch.rows(slice(self.rank, None, self.size))

    def mean(self, *numbers: float) -> list[float]:
        """Each number's mean over all processes."""
        if self.size == 1:
            return list(numbers)
        values = torch.tensor(numbers, dtype=torch.float64, device=self.device)
        dist.all_reduce(values)
        return (values / self.size).tolist()


@contextmanager
def processes() -> Iterator[World]:
    """The world that torchrun set up (gloo on CPUs, nccl on GPUs), or a world of one."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    local = int(os.environ.get("LOCAL_RANK", "0"))
    device = torch.device("cuda", local) if torch.cuda.is_available() else torch.device("cpu")
    if size == 1:
        yield World(device=device)
        return
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield World(dist.get_rank(), size, device)
    finally:
        dist.destroy_process_group()
