"""Solved notebooks, for after the deadline: what the release leaves blank, without the marks that said so."""

from nbconvert.exporters.exporter import ResourcesDict
from nbformat import NotebookNode
from nbgrader.preprocessors import NbGraderPreprocessor

MARKS = ("### BEGIN SOLUTION", "### END SOLUTION")


class ClearSolutionMarks(NbGraderPreprocessor):
    """Takes out the lines between which ClearSolutions would have put a stub; the solution itself stays."""

    def preprocess_cell(
        self, cell: NotebookNode, resources: ResourcesDict, cell_index: int
    ) -> tuple[NotebookNode, ResourcesDict]:
        lines = cell.source.splitlines()
        cell.source = "\n".join(line for line in lines if line.strip() not in MARKS)
        return cell, resources
