"""Problem set P4 as graded: points for each property, on secret cases of many shapes."""

from collections.abc import Sequence

from grading.exercise import Exercise, Part
from proof_lm.checks import p4
from proof_lm.checks.core import Property
from proof_lm.checks.p4.causality import causality_properties
from proof_lm.checks.p4.decoder import decoder_properties
from proof_lm.checks.p4.stability import stability_properties

# (T, d) and (B, T, d), no two sizes of a shape alike
HIDDEN = ((4, 3), (7, 5), (19, 4), (2, 5, 3), (3, 11, 4), (5, 9, 2))
# (configurations, depths)
EXPERIMENTS = ((2, 4), (3, 7), (4, 5), (6, 9), (9, 12))
# (B, T, V)
LOGITS = ((1, 4, 5), (2, 6, 9), (5, 8, 3), (3, 13, 17))


def _exercise(number: int, properties: Sequence[Property], points: Sequence[float]) -> Exercise:
    public = p4.EXERCISES[number - 1]
    parts = tuple(Part(prop, worth) for prop, worth in zip(properties, points, strict=True))
    return Exercise(public.id, public.name, parts)


EXERCISES = (
    _exercise(1, causality_properties(*HIDDEN), (2, 2, 2, 1, 1, 2)),
    _exercise(2, stability_properties(*EXPERIMENTS), (2, 1, 1, 1, 1)),
    _exercise(3, decoder_properties(*LOGITS), (2, 1, 2, 2, 2)),
)
