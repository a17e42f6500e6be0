"""Put a student's answers into a fresh copy of the source notebook; nothing else survives."""

import ast
import re
import sys
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import PurePosixPath

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from grading.intake.notes import Note
from grading.intake.parse import CONFLICT, Cell, parse_notebook

MAX_EXTRA_CELLS = 200
MAX_CELL_CHARACTERS = 1_000_000
# "p4 (1)", "p4-Copy1"; each mark begins in one way only, so that no name takes long to look at
COPY_MARKS = re.compile(r"(\s*\(\d+\)|[-_ ]*copy([-_ ]?\d+)?)+$", re.IGNORECASE)


@dataclass(frozen=True)
class Intake:
    """What is graded of a submission."""

    notebook: NotebookNode  # source's cells with the student's answers, and the student's extra code cells
    files: dict[str, bytes]  # what may lie beside the notebook while it runs
    notes: list[Note] = field(default_factory=list)
    is_empty: bool = False  # nothing was taken over; the notes say why


def take_in(files: Mapping[str, bytes], source: NotebookNode, name: str, student: str) -> Intake:
    """Rebuild notebook `name` ("p4") from `source` with a student's answers.

    `files` is what `read_folder` gave. An answer that is missing or cannot be decided is empty in the rebuilt
    notebook, with a note: source's own solution never stands in for it. Extra code cells carry the metadata
    {"prooflm": {"extra": true}}. Never raises for a bad submission.
    """
    notes: list[Note] = []
    chosen, cells = _choose(files, name, student, notes)
    if _is_of_another_set(cells, source):
        problem = f"this is the notebook of another problem set, with no cell of {name} in it"
        notes[:] = [Note(student, chosen, problem, f"it counts as empty; ask for {name}.ipynb")]  # why its name is odd, too
        cells = []
    rest = {path: data for path, data in files.items() if not path.lower().endswith(".ipynb")}
    kept = {path: data for path, data in rest.items() if not _shadows(path, student, notes)}
    return Intake(_rebuild(cells, source, chosen, student, notes), kept, notes, is_empty=not cells)


def _choose(files: Mapping[str, bytes], name: str, student: str, notes: list[Note]) -> tuple[str, list[Cell]]:
    """The file that is this notebook, and its cells; no cells with a note when there is none."""
    wanted = f"{name}.ipynb"
    found = [path for path in files if path.lower().endswith(".ipynb")]
    if wanted not in files:
        alike = [path for path in found if _plain(path) == name.lower()] or (found if len(found) == 1 else [])
        if len(alike) != 1:
            problem = "the notebook is missing" if not alike else f"{len(alike)} notebooks could be meant"
            remedy = f"it counts as empty; ask for one file named {wanted}"
            notes.append(Note(student, wanted, problem, remedy))
            return wanted, []
        notes.append(Note(student, alike[0], f"not named {wanted}", "it was graded as the only candidate"))
        wanted = alike[0]
    try:
        return wanted, parse_notebook(files[wanted])
    except ValueError as error:
        notes.append(Note(student, wanted, str(error), "it counts as empty; ask for the file again"))
        return wanted, []


def _is_of_another_set(cells: list[Cell], source: NotebookNode) -> bool:
    """Whether cells are marked as a problem set's, and none as one of source's."""
    marked = {cell.grade_id for cell in cells if cell.grade_id}
    return bool(marked) and marked.isdisjoint(map(_grade_id, source.cells))


def _plain(path: str) -> str:
    return COPY_MARKS.sub("", PurePosixPath(path).stem).strip().lower()


def _shadows(path: str, student: str, notes: list[Note]) -> bool:
    """Whether a file beside the notebook would be imported in place of an installed library."""
    top = PurePosixPath(path).parts[0]
    module = top.split(".")[0]
    importable = top != path or top.endswith((".py", ".pyc", ".so", ".pyd"))
    if importable and module in _libraries():
        remedy = f"it was left out, so that {module} means the library; ask for another name"
        notes.append(Note(student, path, f"shadows the library {module}", remedy))
        return True
    return False


@cache  # listing what is installed takes longer than the rest of intake
def _libraries() -> frozenset[str]:
    return frozenset(sys.stdlib_module_names).union(packages_distributions())


def _rebuild(
    cells: list[Cell], source: NotebookNode, file: str, student: str, notes: list[Note]
) -> NotebookNode:
    if cells and not any(cell.grade_id for cell in cells):
        problem = "all nbgrader metadata is gone"
        remedy = "answers were found by cell id where those are left; compare with the student's file"
        notes.append(Note(student, file, problem, remedy))
    answers = _answers(cells, source, file, student, notes)
    extras = _extras(cells, source, file, student, notes)
    rebuilt = list(extras.get("", []))
    for cell in map(copy, source.cells):  # whose fields are replaced here, none changed
        cell.pop("attachments", None) if _is_answer(cell) else None
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        if _is_answer(cell):
            cell.source = answers[_grade_id(cell)]
        rebuilt += [cell, *extras.get(cell.id, [])]
    notebook = copy(source)
    notebook.cells = rebuilt
    return notebook


def _is_answer(cell: NotebookNode) -> bool:
    return bool(cell.metadata.get("nbgrader", {}).get("solution"))


def _grade_id(cell: NotebookNode) -> str:
    return cell.metadata.get("nbgrader", {}).get("grade_id", "")


def _answers(
    cells: list[Cell], source: NotebookNode, file: str, student: str, notes: list[Note]
) -> dict[str, str]:
    """Text of each answer cell of source by grade_id."""
    answers = {}
    for wanted in filter(_is_answer, source.cells):
        key = _grade_id(wanted)
        mine = [cell for cell in cells if _is_same(cell, wanted)]
        texts = list(dict.fromkeys(cell.source for cell in mine))
        if len(texts) > 1 and (joined := _join(texts, wanted.cell_type == "code")):
            remedy = "they were taken as one, in order; compare with the student's file"
            notes.append(Note(student, file, f"the answer is spread over {len(texts)} cells", remedy, key))
            texts = [joined]
        answers[key] = ""
        if not texts:
            if cells:  # a missing notebook has its own note
                notes.append(Note(student, file, "the answer cell is missing", "it counts as empty", key))
        elif len(texts) > 1:
            problem = f"{len(mine)} answer cells with this id and different text"
            remedy = "none was graded; ask which one counts"
            notes.append(Note(student, file, problem, remedy, key))
        elif len(texts[0]) > MAX_CELL_CHARACTERS:
            notes.append(Note(student, file, "the answer is over a million characters", "not graded", key))
        else:
            answers[key] = texts[0]
            if CONFLICT.search(texts[0]):
                problem = "merge-conflict markers in the answer"
                notes.append(Note(student, file, problem, "it is graded as it stands; ask for it again", key))
    return answers


def _join(texts: list[str], is_code: bool) -> str:
    """The parts of a split cell as one text, or nothing when they are rival versions of one answer."""
    if not is_code:
        return "\n\n".join(texts)  # a person reads prose, so nothing is decided by showing all of it
    joined = "\n".join(texts)
    try:
        tree = ast.parse(joined)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    names = [node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    return joined if len(names) == len(set(names)) else ""


def _is_same(cell: Cell, wanted: NotebookNode) -> bool:
    """Whether a student's cell is source's cell: by grade_id, or by the format's cell id when it has none."""
    return cell.grade_id == _grade_id(wanted) if cell.grade_id else bool(cell.id) and cell.id == wanted.id


def _extras(
    cells: list[Cell], source: NotebookNode, file: str, student: str, notes: list[Note]
) -> dict[str, list[NotebookNode]]:
    """The student's own code cells by the id of source's cell that they follow ("" before the first)."""
    extras: dict[str, list[NotebookNode]] = {}
    by_grade_id = {_grade_id(wanted): wanted for wanted in reversed(source.cells) if _grade_id(wanted)}
    by_id = {wanted.id: wanted for wanted in reversed(source.cells)}
    place, count = "", 0
    for cell in cells:
        origin = by_grade_id.get(cell.grade_id) if cell.grade_id else by_id.get(cell.id)
        if origin is not None:
            place = origin.id
            if _grade_id(origin) or cell.source.strip() == origin.source.strip():
                continue
        if not cell.is_code or not cell.source.strip():
            continue
        count += 1
        if count > MAX_EXTRA_CELLS or len(cell.source) > MAX_CELL_CHARACTERS:
            continue
        extra = new_code_cell(cell.source, id=f"extra-{count}", metadata={"prooflm": {"extra": True}})
        extras.setdefault(place, []).append(extra)
    if count > MAX_EXTRA_CELLS:
        problem = f"{count} cells beside those of the assignment"
        notes.append(Note(student, file, problem, f"the first {MAX_EXTRA_CELLS} were run"))
    return extras
