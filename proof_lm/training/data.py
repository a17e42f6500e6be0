"""Batches of proofs or of text; batch number k depends on the seed and k alone, so any run can start at any k."""

from __future__ import annotations

from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from proof_lm.proofs import TOKENS, encode, theorems, write_proof
from proof_lm.training.config import TrainConfig, TrainingError

POOL = 32  # batches that are sorted by length together


class Batch(NamedTuple):
    """token_ids and labels (B, T) int64, labels one step ahead; loss_mask (B, T) bool, True where the loss counts."""

    token_ids: Tensor
    labels: Tensor
    loss_mask: Tensor

    def rows(self, rows: slice) -> Batch:
        """Some of the sequences."""
        return Batch(*(values[rows] for values in self))

    def parts(self, count: int) -> list[Batch]:
        """The sequences in `count` parts of equal size."""
        return [Batch(*part) for part in zip(*(values.chunk(count) for values in self), strict=True)]

    def to(self, device: torch.device) -> Batch:
        return Batch(*(values.to(device) for values in self))


class Data(Protocol):
    """What the training loop asks of its data."""

    def batch(self, step: int) -> Batch:
        """The batch of optimiser step `step`, the same whenever it is asked for."""


def shifted(sequences: list[list[int]], starts: list[int]) -> Batch:
    """Sequences as one batch, padded on the right: each token's label is the token after it.

    The loss counts from the label at index `starts[row]` to the sequence's end; all before is given, not asked.
    """
    width = max(map(len, sequences))
    token_ids = torch.zeros(len(sequences), width, dtype=torch.int64)
    asked = torch.zeros(len(sequences), width, dtype=torch.bool)
    for row, (sequence, start) in enumerate(zip(sequences, starts, strict=True)):
        token_ids[row, : len(sequence)] = torch.tensor(sequence)
        asked[row, start : len(sequence)] = True
    return Batch(token_ids[:, :-1], token_ids[:, 1:], asked[:, 1:])


class ProofData:
    """Theorems of one split with their proofs; the loss counts on the proof, not on the statement."""

    vocab_size = len(TOKENS)

    def __init__(
        self, split: str, examples: int, seed: int, batch_size: int, hardest: int = 3, largest_formula: int = 3
    ) -> None:
        if examples < batch_size:
            raise TrainingError(f"examples: expected at least batch_size = {batch_size}, got {examples}")
        self.seed, self.batch_size = seed, batch_size
        self.sequences, self.starts = [], []
        levels = tuple(range(1, hardest + 1))
        for theorem, lines in islice(theorems(split, seed, levels, largest_formula), examples):
            statement = encode(f"{theorem}\n")
            self.sequences.append(statement + encode(write_proof(lines)))
            self.starts.append(len(statement))
        self._epoch = lru_cache(maxsize=1)(self._order)

    def batch(self, step: int) -> Batch:
        epoch, place = divmod(step, len(self.sequences) // self.batch_size)
        rows = self._epoch(epoch)[place]
        return shifted([self.sequences[row] for row in rows], [self.starts[row] for row in rows])

    def _order(self, epoch: int) -> np.ndarray:
        """Every example once, in batches (n, B) of like length in random order: little is spent on padding."""
        rng = np.random.default_rng((self.seed, epoch))
        rows = rng.permutation(len(self.sequences))[: len(self.sequences) // self.batch_size * self.batch_size]
        lengths = np.array([len(sequence) for sequence in self.sequences])
        pools = np.split(rows, range(POOL * self.batch_size, len(rows), POOL * self.batch_size))
        rows = np.concatenate([pool[np.argsort(lengths[pool], kind="stable")] for pool in pools])
        return rng.permutation(rows.reshape(-1, self.batch_size))


class TextData:
    """Windows from random places of one long text, read as bytes; the loss counts everywhere."""

    vocab_size = 256

    def __init__(self, ids: np.ndarray, context_length: int, seed: int, batch_size: int) -> None:
        if len(ids) <= context_length:
            raise TrainingError(f"text: {len(ids)} tokens, expected more than context_length = {context_length}")
        if ids.min() < 0 or ids.max() >= self.vocab_size:
            raise TrainingError(f"text: ids from {ids.min()} to {ids.max()}, expected 0 to {self.vocab_size - 1}")
        self.ids, self.context_length = torch.from_numpy(ids.astype(np.int64)), context_length
        self.seed, self.batch_size = seed, batch_size

    def batch(self, step: int) -> Batch:
        rng = np.random.default_rng((self.seed, step))
        starts = rng.integers(len(self.ids) - self.context_length, size=self.batch_size)
        windows = torch.stack([self.ids[start : start + self.context_length + 1] for start in starts])
        return Batch(windows[:, :-1], windows[:, 1:], torch.ones_like(windows[:, 1:], dtype=torch.bool))


def load_data(config: TrainConfig, split: str = "train") -> Data:
    """The data that the config names: for 'train' what is learned from, for 'validation' what is held out."""
    if not config.text:
        examples = config.examples if split == "train" else 4 * config.batch_size
        data = ProofData(split, examples, config.seed, config.batch_size, config.hardest, config.largest_formula)
        if (longest := max(map(len, data.sequences)) - 1) > config.context_length:  # the last token is no input
            raise TrainingError(
                f"context_length: expected at least {longest} for the longest theorem with its proof, "
                f"got {config.context_length}"
            )
        return data
    try:
        ids = np.frombuffer(Path(config.text).read_bytes(), dtype=np.uint8)
    except OSError as error:
        raise TrainingError(f"text: {config.text}: {error.strerror}") from None
    end = len(ids) * 9 // 10  # the last tenth is held out
    if len(ids) - end <= config.context_length:
        raise TrainingError(
            f"text: {config.text} has {len(ids)} bytes; its last tenth must be longer than "
            f"context_length = {config.context_length}"
        )
    part = ids[:end] if split == "train" else ids[end:]
    return TextData(part, config.context_length, config.seed, config.batch_size)
