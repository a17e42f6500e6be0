"""An assignment as the grader knows it: the source notebook, and which of its cells is which exercise."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import nbformat
import nbformat.reader
from nbformat import NotebookNode

from grading.exercise import Exercise
from grading.exercises import WITHHELD, exercises

TESTS = "-tests"  # a test cell's grade_id is the exercise's id and this, with "_" for "." (nbgrader allows no dot)


class AssignmentError(Exception):
    """The course's own files do not fit together; the message names file, cell and remedy."""


@dataclass(frozen=True)
class Assignment:
    """One problem set of the course in `root`; its one notebook has its name."""

    name: str
    root: Path

    def __reduce__(self) -> tuple:
        return Assignment, (self.name, self.root)  # another node reads its own exercises

    @cached_property
    def source(self) -> NotebookNode:
        """The source notebook with the released checksums, by which untouched answers are known.

        Raises AssignmentError when source or release is missing or they do not fit the exercises.
        """
        notebook, released = self._read("source"), self._read("release")
        checksums = {
            _grade_id(cell): cell.metadata.nbgrader.get("checksum") for cell in released.cells if _grade_id(cell)
        }
        for cell in filter(_grade_id, notebook.cells):
            if checksums.get(_grade_id(cell)) is None:
                raise AssignmentError(f"release/{self.name}, cell {_grade_id(cell)}: stale; run make release")
            cell.metadata.nbgrader.checksum = checksums[_grade_id(cell)]
        self._fits(notebook)
        return notebook

    @cached_property
    def withheld(self) -> tuple[str, ...]:
        """Modules of proof_lm that hold answers to this set and cannot be imported while it is graded."""
        return WITHHELD[self.name]

    @cached_property
    def exercises(self) -> dict[str, Exercise]:
        """Exercises by the grade_id of their test cell, in order. Raises AssignmentError for an unknown set."""
        try:
            return {key.replace(".", "_") + TESTS: exercise for key, exercise in exercises(self.name).items()}
        except ModuleNotFoundError:
            raise AssignmentError(f"assignment {self.name}: grading/exercises/{self.name}.py is missing") from None

    def _read(self, kind: str) -> NotebookNode:
        name = f"{kind}/{self.name}/{self.name}.ipynb"
        try:
            text = (self.root / name).read_text(encoding="utf-8")
            notebook = nbformat.convert(nbformat.reader.reads(text), 4)  # nbformat.read validates too, and only logs it
        except FileNotFoundError:
            remedy = "run make release" if kind == "release" else "check the assignment's name"
            raise AssignmentError(f"{name} is missing; {remedy}") from None
        except (ValueError, nbformat.ValidationError):
            notebook = {}
        if "cells" not in notebook:
            raise AssignmentError(f"{name} is no notebook; {'run make release' if kind == 'release' else 'restore it'}")
        return notebook

    def _fits(self, notebook: NotebookNode) -> None:
        tests = {_grade_id(cell): cell for cell in notebook.cells if _is_test(cell)}
        if tests.keys() != self.exercises.keys():
            odd = ", ".join(sorted(tests.keys() ^ self.exercises.keys()))
            raise AssignmentError(f"source/{self.name}: test cells and exercises differ in {odd}")
        for key, exercise in self.exercises.items():
            if float(tests[key].metadata.nbgrader.points) != exercise.points:
                points = f"{tests[key].metadata.nbgrader.points} points, the exercise {exercise.points:g}"
                raise AssignmentError(f"source/{self.name}, cell {key}: the cell has {points}; correct the cell")


def _is_test(cell: NotebookNode) -> bool:
    marks = cell.metadata.get("nbgrader", {})
    return bool(marks.get("grade")) and not marks.get("solution")


def _grade_id(cell: NotebookNode) -> str:
    return cell.metadata.get("nbgrader", {}).get("grade_id", "")
