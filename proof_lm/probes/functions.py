"""Probes for plain functions of arrays and numbers."""

from collections.abc import Callable
from typing import Any

import numpy as np


def call(candidate: Callable, *arguments: Any) -> Any:
    """The candidate's own result."""
    return candidate(*arguments)


def call_both_layouts(candidate: Callable, *arguments: Any) -> Any:
    """The candidate's results on these arrays and on the same laid out with gaps in memory (not contiguous)."""
    spread = [with_gaps(item) if isinstance(item, np.ndarray) else item for item in arguments]
    return [candidate(*arguments), candidate(*spread)]


def call_keywords(candidate: Callable, keywords: dict[str, Any], *arguments: Any) -> Any:
    """The candidate's result when `keywords` are passed by name."""
    return candidate(*arguments, **keywords)


def with_gaps(array: np.ndarray) -> np.ndarray:
    """The same numbers as a view with uneven gaps in memory, so that flattening it must copy."""
    if not array.ndim:
        return array
    wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1] + 1), dtype=array.dtype)
    view = wide[..., :-1:2]
    view[...] = array
    return view
