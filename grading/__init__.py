"""The instructor's package: what each exercise is worth, which secret cases decide, how a class is graded."""

import sys

sys.modules.setdefault("rfc3987_syntax", None)  # builds dozens of parsers at import, for a format no notebook has

from grading.exercises import grade  # noqa: E402

__all__ = ["grade"]
