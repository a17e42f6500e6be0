"""The instructor's package: what each exercise is worth, which secret cases decide, how a class is graded."""

from grading.exercises import grade

__all__ = ["grade"]
