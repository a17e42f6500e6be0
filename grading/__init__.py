"""The instructor's package: what each exercise is worth, which secret cases decide, how a class is graded."""

import sys

sys.modules.setdefault("rfc3987_syntax", None)  # builds dozens of parsers at import, for a format no notebook has


def __getattr__(name: str):
    if name == "grade":  # of a test cell; what it needs takes a command line's time to import
        from grading.exercises import grade

        return grade
    raise AttributeError(f"module 'grading' has no attribute {name!r}")
