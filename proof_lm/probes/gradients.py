"""Probes for functions that differentiate a loss which they are given as a function."""

from collections.abc import Callable
from typing import Any

import numpy as np

from proof_lm.probes.functions import with_gaps


def differentiate(candidate: Callable, loss: dict, parameter: np.ndarray, *rest: Any) -> Any:
    """The candidate's result for `loss_fn, parameter, *rest`."""
    return candidate(Polynomial(**loss), parameter, *rest)


def differentiate_strided(candidate: Callable, loss: dict, parameter: np.ndarray, *rest: Any) -> Any:
    """The same with a parameter whose entries do not lie side by side in memory."""
    view = with_gaps(parameter)
    result = candidate(Polynomial(**loss), view, *rest)
    parameter[...] = view  # so that a change in place is seen
    return result


class Polynomial:
    """sum(cubic p^3 + square p^2 + linear p) + coupling (sum p)^2, as a function of an array p."""

    def __init__(self, cubic: Any, square: Any, linear: Any, coupling: float, kind: str) -> None:
        self.coefficients = cubic, square, linear
        self.coupling, self.kind = coupling, kind

    def __call__(self, parameter: np.ndarray) -> Any:
        cubic, square, linear = self.coefficients
        value = np.sum(((cubic * parameter + square) * parameter + linear) * parameter)  # a power would be far slower
        value = value + self.coupling * np.sum(parameter) ** 2
        return {"float": float, "scalar": np.float64, "array": np.asarray}[self.kind](value)
