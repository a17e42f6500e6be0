"""Probes for plain functions of arrays and numbers."""

from collections.abc import Callable
from typing import Any

import numpy as np


def call(candidate: Callable, *arguments: Any) -> Any:
    """The candidate's own result."""
    return candidate(*arguments)


def call_strided(candidate: Callable, *arguments: Any) -> Any:
    """The candidate's result on the same arrays laid out with gaps in memory (not contiguous)."""
    return candidate(*(_with_gaps(item) if isinstance(item, np.ndarray) else item for item in arguments))


def call_keywords(candidate: Callable, keywords: dict[str, Any], *arguments: Any) -> Any:
    """The candidate's result when `keywords` are passed by name."""
    return candidate(*arguments, **keywords)


def _with_gaps(array: np.ndarray) -> np.ndarray:
    wide = np.zeros((*array.shape, 2), dtype=array.dtype)
    wide[..., 0] = array
    return wide[..., 0]
