"""Probes that take several optimiser steps with a student's function."""

from collections.abc import Callable
from typing import Any


def adamw(
    candidate: Callable, parameters: dict, state: dict, gradients: list[dict], rates: list[float], decayed: list[str]
) -> Any:
    """Parameters after each step, and the number of steps that the state has counted by then."""
    found = []
    for gradient, rate in zip(gradients, rates, strict=True):
        result = candidate(parameters, gradient, state, rate, decayed)
        if not isinstance(result, (tuple, list)) or len(result) != 2:  # a dictionary of two would be unpacked to its keys
            raise TypeError(f"new parameters and new state were expected, {type(result).__name__} came")
        parameters, state = result
        found.append({"parameters": dict(parameters), "step": state["step"]})
    return found
