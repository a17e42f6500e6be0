"""Problem set P4 as graded: points for each property, on secret cases of many shapes."""

from grading.exercise import Exercise, parts
from proof_lm.checks.p4.causality import causality_properties
from proof_lm.checks.p4.decoder import decoder_properties
from proof_lm.checks.p4.stability import stability_properties

# (T, d) and (B, T, d), no two sizes of a shape alike
HIDDEN = ((4, 3), (11, 4), (3, 6, 2))
# (configurations, depths)
EXPERIMENTS = ((2, 4), (4, 7), (6, 9), (9, 5))
# (B, T, V)
LOGITS = ((1, 4, 5), (2, 6, 9), (5, 7, 3))

EXERCISES = (
    Exercise("P4.1", "future_token_intervention", parts(causality_properties(*HIDDEN), (2, 2, 1, 1, 1, 2, 1))),
    Exercise("P4.2", "most_stable_configuration", parts(stability_properties(*EXPERIMENTS), (2, 1, 1, 1, 1))),
    Exercise("P4.3", "decoder_checks", parts(decoder_properties(*LOGITS), (2, 1, 2, 1, 2, 1))),
)
