"""Probes that take several optimiser steps with a student's function."""

from collections.abc import Callable
from typing import Any


def adamw(
    candidate: Callable, parameters: dict, state: dict, gradients: list[dict], rates: list[float], decayed: list[str]
) -> Any:
    """Parameters after each step, and the number of steps that the state has counted by then."""
    found = []
    for gradient, rate in zip(gradients, rates, strict=True):
        parameters, state = candidate(parameters, gradient, state, rate, decayed)
        found.append({"parameters": dict(parameters), "step": state["step"]})
    return found
