"""Probes for exercises whose function judges somebody else's code: they build that code from plain data."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np


def choice(candidate: Callable, experiment: dict) -> Any:
    """What the candidate chooses from a mapping of names to numbers."""
    return candidate(experiment)


def intervention(candidate: Callable, attention: dict, hidden: np.ndarray, seed: int) -> Any:
    """What the candidate says of an attention function, a hidden state and a generator."""
    return candidate(attention_function(attention), hidden, np.random.default_rng(seed))


def attention_function(parts: dict) -> Callable[[np.ndarray], np.ndarray]:
    """Single-head attention, hidden (..., T, d) -> output (..., T, d), made of these parts:

    `wq`, `wk`, `wv`, `wo` (d, d); `sees` (B or 1, S, S) bool, which keys each query may look at; `mixes`
    (B or 1, S, S) float, how the values of all positions combine before they are attended to; `normalizes`,
    whether rows are normalised first; `scales_by_time`, whether scores depend on T. S is the longest T.
    """

    width = parts["wq"].shape[0]
    into_scores, into_output = parts["wq"] @ parts["wk"].T / np.sqrt(width), parts["wv"] @ parts["wo"]
    unseen = np.where(parts["sees"], 0.0, -np.inf)

    def attention(hidden: np.ndarray) -> np.ndarray:
        hidden = np.asarray(hidden, dtype=np.float64)
        time = hidden.shape[-2]
        batch = hidden.shape[0] if hidden.ndim == 3 else 1
        rows = hidden.reshape(batch, time, width)
        if parts["normalizes"]:
            rows = rows - rows.mean(axis=-1, keepdims=True)
            rows = rows / np.sqrt(rows.var(axis=-1, keepdims=True) + 1e-5)
        scores = rows @ into_scores @ rows.swapaxes(-1, -2)
        scores = scores / (time if parts["scales_by_time"] else 1) + unseen[:batch, :time, :time]
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        return (weights @ (parts["mixes"][:batch, :time, :time] @ (rows @ into_output))).reshape(hidden.shape)

    return attention


def decoder(
    candidate: Callable, model: dict, original: np.ndarray, changed: np.ndarray, reloaded: np.ndarray
) -> Any:
    """What the candidate says of a model, and of logits (B, T, V) given as float32 tensors."""
    import torch

    logits = [torch.from_numpy(values) for values in (original, changed, reloaded)]
    return candidate(_model(**model), *logits)


def _model(weight: np.ndarray, tie: str, flag: bool) -> Any:
    """A module whose `token_embedding` and `lm_head` hold `weight` (V, d), copied if `tie` is "copy".

    With "view" they are separate parameters over one storage, with "other" the head holds other numbers. `flag` is what
    the model claims of itself. It can do nothing else, so that it is made fast.
    """
    import torch
    from torch import nn

    def holding(parameter: Any) -> Any:
        module = nn.Module()
        module.weight = parameter
        return module

    shared = nn.Parameter(torch.from_numpy(weight.copy()))
    head = {
        "same": lambda: shared,
        "view": lambda: nn.Parameter(shared.data),
        "copy": lambda: nn.Parameter(shared.data.clone()),
        "other": lambda: nn.Parameter(shared.data + 1),
    }[tie]()
    model = nn.Module()
    model.embeddings_are_tied, model.config = flag, SimpleNamespace(tie_embeddings=flag)
    model.token_embedding, model.lm_head = holding(shared), holding(head)
    return model
