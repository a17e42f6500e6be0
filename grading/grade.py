"""Grade one student's folder in three steps: `prepare` (intake), `run` (execution), `finish` (verdict).

Only `run` meets a stranger's code, and it may do so on any node; the other two stay with the gradebook. None of
them raises for what a student handed in; `run` raises SandboxError where no sandbox can be made, and all raise
AssignmentError for a fault of the course.
"""

import hashlib
from copy import copy, deepcopy
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

from grading.assignment import Assignment
from grading.edition import digest, walls
from grading.execution import Execution, Limits
from grading.exercise import Verdict
from grading.inert import Room, inert_outputs, make_inert, new, quote_prose
from grading.intake import Intake, Note, read_folder, take_in
from grading.sandbox import Policy
from grading.store import key_of


@dataclass(frozen=True)
class Task:
    """One submission to grade."""

    assignment: Assignment
    student: str
    folder: Path
    seed: int
    policy: Policy = field(default_factory=Policy)
    limits: Limits = field(default_factory=Limits)
    unsafe: bool = False


@dataclass(frozen=True)
class Graded:
    """What grading one submission gave."""

    student: str
    notebook: NotebookNode  # inert, with findings and points as the outputs of its test cells
    verdicts: dict[str, Verdict]  # by grade_id of the test cell
    notes: list[Note]
    execution: Execution

    @property
    def points(self) -> float:
        """What the exercises' code earned; prose is graded by a person."""
        return sum(verdict.points for verdict in self.verdicts.values())


@dataclass(frozen=True)
class Prepared:
    """A submission after intake: what is run, and the name under which what it gives is kept."""

    task: Task
    intake: Intake
    notes: list[Note]
    key: str


def prepare(task: Task) -> Prepared:
    """Intake: read the folder, rebuild the notebook, name the execution."""
    files, notes = read_folder(task.folder, task.student)
    intake = take_in(files, task.assignment.source, task.assignment.name, task.student)
    return Prepared(task, intake, [*notes, *intake.notes], _key(task, intake))


def run(prepared: Prepared) -> dict:
    """Execution: everything a submission's code does happens here, on any node. Returns plain data for the store.

    A kernel that ended by itself, or before it was there, is tried once more: the machine may have killed it, and
    what a submission does to itself it does again.
    """
    try:
        execution, outputs = _run_once(prepared)
        again = execution.died
    except RuntimeError:  # it did not start
        again = True
    if again:
        execution, outputs = _run_once(prepared)
    return {"execution": vars(execution), "outputs": outputs}


def _run_once(prepared: Prepared) -> tuple[Execution, list]:
    from grading.execute import execute  # brings Jupyter's client, which who only judges does without

    task, notebook = prepared.task, deepcopy(prepared.intake.notebook)
    policy, exercises = walls(task.policy, task.assignment.withheld, prepared.intake.files), task.assignment.exercises
    execution = execute(notebook, exercises, task.seed, policy, unsafe=task.unsafe, limits=task.limits)
    room = Room()
    return execution, [inert_outputs(cell.get("outputs", []), room) for cell in notebook.cells]


def nothing_ran(prepared: Prepared, reason: str) -> dict:
    """The record of a submission that could not be run to its end on any worker: no answers, with the reason."""
    exercises = prepared.task.assignment.exercises.values()
    execution = Execution(failures={exercise.id: reason for exercise in exercises})
    return {"execution": vars(execution), "outputs": [[] for _ in prepared.intake.notebook.cells]}


def finish(prepared: Prepared, record: dict) -> Graded:
    """Verdict: judge what a record holds and write the notebook that nbgrader will keep."""
    task, notebook = prepared.task, copy(prepared.intake.notebook)
    notebook.cells = [copy(cell) for cell in notebook.cells]  # whose fields are replaced below, none changed
    execution = Execution(**record["execution"])
    if prepared.intake.is_empty:  # what is not defined then is no news
        reason = "nothing could be read of what was handed in"
        verdicts = {key: exercise.no_answer(reason) for key, exercise in task.assignment.exercises.items()}
    else:
        verdicts = judge(task, execution)
        for cell, shown in zip(notebook.cells, record["outputs"], strict=True):
            if cell.cell_type == "code":
                cell.outputs = [nbformat.from_dict(output) for output in shown]
    graded = _write(notebook, verdicts, prepared)
    return Graded(task.student, graded, verdicts, prepared.notes, execution)


def judge(task: Task, execution: Execution) -> dict[str, Verdict]:
    """The verdict of every exercise, by grade_id of its test cell; an exercise without a valid answer earns 0."""
    verdicts = {}
    for grade_id, exercise in task.assignment.exercises.items():
        answer = execution.answers.get(exercise.id)
        if answer is None:
            reason = execution.failures.get(exercise.id, "the notebook did not reach this cell")
            verdicts[grade_id] = exercise.no_answer(reason)
            continue
        try:
            verdicts[grade_id] = exercise.judge(task.seed, answer)
        except ValueError as error:
            verdicts[grade_id] = exercise.no_answer(f"what came back is no answer ({error})"[:300])
    return verdicts


def _key(task: Task, intake: Intake) -> str:
    """Of everything that decides an execution: cells, files, questions, the code that asks them, and the walls."""
    cells = [[cell.cell_type, cell.source] for cell in intake.notebook.cells]
    files = sorted((name, hashlib.sha256(data).hexdigest()) for name, data in intake.files.items())
    limits = [repr(replace(task.policy, files={}, read_only_paths=())), repr(task.limits), task.unsafe]
    return key_of(task.assignment.name, cells, files, _asked(task.assignment, task.seed), limits)


@cache
def _asked(assignment: Assignment, seed: int) -> str:
    plans = [exercise.plan(seed) for exercise in assignment.exercises.values()]
    return key_of(plans, digest(assignment.withheld))


def _write(notebook: NotebookNode, verdicts: dict[str, Verdict], prepared: Prepared) -> NotebookNode:
    """The notebook that nbgrader records: inert, each test cell with its findings and its points as the result.

    What intake noted stands first, so that who handed in a broken file reads so before anything else.
    """
    untouched = [cell for cell in notebook.cells if _is_untouched(cell)]
    sources = [cell.source for cell in untouched]
    make_inert(notebook)
    for cell, source in zip(untouched, sources, strict=True):
        cell.source = source  # the release's own text, whose checksum says that nothing was answered
    for cell in notebook.cells:
        verdict = verdicts.get(cell.metadata.get("nbgrader", {}).get("grade_id", ""))
        if verdict:
            cell.execution_count = 1
            cell.outputs = [
                new("stream", name="stdout", text=f"{verdict}\n"),
                new("execute_result", data={"text/plain": repr(verdict.points)}, metadata={}, execution_count=1),
            ]
    if prepared.notes:
        told = quote_prose("\n".join(note.to_student() for note in prepared.notes))
        notebook.cells.insert(0, new_markdown_cell(f"**Before anything was run**\n\n{told}", id="intake-notes"))
    notebook.metadata = {**notebook.metadata, "prooflm": {"execution": prepared.key}}
    return nbformat.from_dict(notebook)


def _is_untouched(cell: NotebookNode) -> bool:
    from nbgrader.utils import compute_checksum  # a worker, which needs nothing of nbgrader, starts without it

    marks = cell.metadata.get("nbgrader", {})
    return bool(marks.get("solution")) and marks.get("checksum") == compute_checksum(cell)
