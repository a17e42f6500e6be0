"""The instructor's package: what each exercise is worth, which secret cases decide, how a class is graded."""

import sys

for slow in ("rfc3987_syntax", "rfc3986_validator", "isoduration"):  # jsonschema's, for formats no notebook has
    sys.modules.setdefault(slow, None)


def __getattr__(name: str):
    if name == "grade":  # of a test cell; what it needs takes a command line's time to import
        from grading.exercises import grade

        return grade
    raise AttributeError(f"module 'grading' has no attribute {name!r}")
