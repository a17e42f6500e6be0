"""Probes that train something small with a student's function."""

from collections.abc import Callable
from typing import Any

import numpy as np


def overfit(
    candidate: Callable, context: np.ndarray, token_ids: np.ndarray, loss_mask: np.ndarray, rate: float, steps: int
) -> Any:
    """What descending the candidate loss makes of one batch: {"first" and "last" loss, "answers" (B, T)}.

    The next token is learned: inputs are all ids (B, T + 1) but the last, labels all but the first. Only a projection
    of context (B, T, d) on the vocabulary moves, from zero, by central differences of the loss.
    """
    labels = token_ids[:, 1:]
    projection = np.zeros((context.shape[-1], token_ids.max() + 1))

    def loss(moved: np.ndarray) -> Any:
        return candidate(context @ moved, labels.copy(), loss_mask.copy())

    first = loss(projection)
    for _ in range(steps):
        gradient = np.zeros_like(projection)
        for index in np.ndindex(projection.shape):
            step = np.zeros_like(projection)
            step[index] = 1e-4
            gradient[index] = (float(loss(projection + step)) - float(loss(projection - step))) / 2e-4
        projection -= rate * gradient
    return {"first": first, "last": loss(projection), "answers": (context @ projection).argmax(axis=-1)}
