"""What the course proves, as named properties, and the functions that check code against them."""

from proof_lm.checks.core import Case, Finding, Mistake, Property, PropertyFailed, show, verify
from proof_lm.checks.exercises import check, hint, progress, solution
from proof_lm.checks.general import leaves_inputs_alone, matches, refuses, repeats

__all__ = [
    "Case",
    "Finding",
    "Mistake",
    "Property",
    "PropertyFailed",
    "check",
    "hint",
    "leaves_inputs_alone",
    "matches",
    "progress",
    "refuses",
    "repeats",
    "show",
    "solution",
    "verify",
]
