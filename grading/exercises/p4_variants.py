"""What problem set P4 variants is worth, and the sizes on which it is decided: larger than the public ones."""

from grading.exercise import Exercise, parts
from proof_lm.checks import p4_variants as public

NAMES = ("B", "T", "V", "C", "L", "d", "h")
SIZES = [dict(zip(NAMES, row, strict=True)) for row in ((3, 7, 17, 11, 2, 8, 2), (2, 33, 13, 35, 3, 6, 3))]
LONG = [dict(zip(NAMES, row, strict=True)) for row in ((3, 5, 9, 11, 2, 8, 4), (1, 33, 13, 35, 2, 6, 3))]

EXERCISES = (
    Exercise("P4.24", "GPTStyleLM", parts(public.gpt_properties(SIZES, LONG, 3.0), (4, 3, 2, 2, 1, 1, 1, 1))),
    Exercise("P4.25", "parameter_count", parts(public.count_properties(8), (2, 2, 2, 1))),
)
