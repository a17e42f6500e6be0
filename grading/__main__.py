"""The instructor's command line: `python -m grading grade p4`, `python -m grading regrade p4`."""

import json
import platform
import time
import warnings
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer
from nbgrader.converters.base import NbGraderException
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from sqlalchemy.exc import SAWarning
from traitlets.config import Config

from grading.assignment import AssignmentError
from grading.engine import Step, cluster, run_class
from grading.exercises import PROBLEM_SETS
from grading.nbgrader_classes import SafeAutograde, course, submissions
from grading.sandbox import SandboxError, available
from grading.scores import Score, scores
from grading.store import FOLDER, Store, write_atomically

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)
console = Console()
errors = Console(stderr=True)

Assignment = Annotated[str, typer.Argument(help="A problem set, or 'all' of those that something was handed in for.")]
Students = Annotated[str, typer.Option(help="Only these, by a pattern such as 'a*'.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]
Root = Annotated[Path, typer.Option(help="The course's folder.", file_okay=False)]
FAILED = 3  # exit status when some submissions could not be graded; 2 when none could


@app.command()
def grade(
    assignment: Assignment = "all",
    students: Students = "*",
    scheduler: Annotated[str, typer.Option(help="Address of a running Dask scheduler, tcp://host:port.")] = "",
    workers: Annotated[int, typer.Option(help="Processes on this machine; 0 for one a processor.")] = 0,
    dry_run: Annotated[bool, typer.Option(help="Say what would be run, and stop.")] = False,
    as_json: Json = False,
    unsafe_no_sandbox: Annotated[bool, typer.Option(help="Run strangers' code with your own rights.")] = False,
    root: Root = Path(),
) -> None:
    """Run and judge what was handed in, and write the gradebook."""
    names = _submitted(root, assignment)
    if not unsafe_no_sandbox and (reason := available()):
        _stop(f"no sandbox: {reason}; --unsafe-no-sandbox runs strangers' code with your own rights")
    failures = 0
    for name in names:
        converter = _converter(root, name, students, unsafe_no_sandbox=unsafe_no_sandbox)
        if dry_run:
            console.print(f"{name}: {len(converter.tasks())} submissions would be graded")
            continue
        started = time.monotonic()
        steps = _run(converter, scheduler, workers, quiet=as_json)
        table = _record(converter, skip={step.student for step in steps if step.failure})
        _keep_run_record(root, name, steps, time.monotonic() - started)
        _print(name, table, steps, as_json)
        failures += sum(bool(step.failure) for step in steps)
    if failures:
        raise typer.Exit(FAILED)


@app.command()
def regrade(
    assignment: Assignment = "all", students: Students = "*", as_json: Json = False, root: Root = Path()
) -> None:
    """Judge again what was run before, after a test was corrected; runs nothing, says whose points changed."""
    for name in _submitted(root, assignment):
        before = {score.student: score for score in scores(root, name)}
        after = _record(_converter(root, name, students, stored_only=True))
        changed = [(before.get(score.student), score) for score in after if score != before.get(score.student)]
        if as_json:
            print(json.dumps([[old and asdict(old), asdict(new)] for old, new in changed]))
            continue
        for old, new in changed:
            for cell, points in new.code.items():
                was = old.code.get(cell) if old else None
                if was != points:
                    why = new.findings.get(cell, "every property holds")
                    console.print(f"{name} {new.student} {cell}: {was} -> {points:g} points ({why})", markup=False)
        console.print(f"{name}: {len(after)} judged again, points of {len(changed)} changed")


def _submitted(root: Path, assignment: str) -> list[str]:
    names = PROBLEM_SETS if assignment == "all" else (assignment,)
    if assignment != "all" and assignment not in PROBLEM_SETS:
        _stop(f"assignment {assignment!r} is unknown; choose from {', '.join(PROBLEM_SETS)}")
    if handed_in := [name for name in names if submissions(root / "submitted", name)]:
        return handed_in
    place = "<problem set>" if assignment == "all" else assignment
    console.print(f"nothing submitted: put each student's folder at submitted/<student>/{place}", soft_wrap=True)
    raise typer.Exit


def _converter(root: Path, name: str, students: str, **options: bool) -> SafeAutograde:
    directory = course(root, name, students)
    return SafeAutograde(coursedir=directory, config=Config(SafeAutograde=options))


def _run(converter: SafeAutograde, scheduler: str, workers: int, quiet: bool) -> list[Step]:
    steps = []
    columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}")]
    try:
        tasks = converter.tasks()
        with (
            cluster(scheduler, workers) as client,
            Progress(*columns, TimeRemainingColumn(), console=errors, disable=quiet or not errors.is_terminal) as bar,
        ):
            shown = bar.add_task(converter.coursedir.assignment_id, total=len(tasks), rate="")
            started = time.monotonic()
            for step in run_class(tasks, Store(Path(converter.coursedir.root)), client):
                steps.append(step)
                failed = sum(bool(s.failure) for s in steps)
                rate = f"{len(steps) / (time.monotonic() - started):.1f}/s, {failed} failed"
                bar.update(shown, advance=1, rate=rate)
    except (AssignmentError, SandboxError, OSError) as error:
        _stop(str(error))
    return steps


def _record(converter: SafeAutograde, skip: set[str] = frozenset()) -> list[Score]:
    converter.coursedir.student_id_exclude = ",".join(skip)
    converter.stored_only = True
    root, name = Path(converter.coursedir.root), converter.coursedir.assignment_id
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SAWarning)  # nbgrader's own models warn of nothing that is ours to mend
        try:
            converter.start()
        except NbGraderException as error:
            _stop(str(error))
    return scores(root, name)


def _keep_run_record(root: Path, name: str, steps: list[Step], seconds: float) -> None:
    now = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    packages = {p: version(p) for p in ("nbgrader", "nbclient", "ipykernel", "numpy", "torch", "distributed")}
    record = {
        "assignment": name,
        "time": now,
        "seconds": round(seconds, 2),
        "python": platform.python_version(),
        "packages": packages,
        "isolation": sorted({step.isolation for step in steps if step.isolation}),
        "submissions": [asdict(step) for step in steps],
    }
    write_atomically(root / FOLDER / "runs" / f"{now}-{name}.json", json.dumps(record, indent=1).encode())


def _print(name: str, table: list[Score], steps: list[Step], as_json: bool) -> None:
    failed = [step for step in steps if step.failure]
    if as_json:
        print(
            json.dumps(
                {"assignment": name, "scores": [asdict(s) for s in table], "failed": [asdict(s) for s in failed]}
            )
        )
        return
    rows = Table("student", "code", "prose", "findings", title=name)
    for score in table:
        findings = "\n".join(f"{', '.join(cells)}: {text}" for text, cells in _by_text(score.findings).items())
        prose = "to be read" if score.needs_reading else ""
        rows.add_row(score.student, f"{score.code_points:g} of {score.code_most:g}", prose, findings)
    console.print(rows)
    for step in failed:
        errors.print(f"{name} {step.student}: not graded: {step.failure}", markup=False)


def _by_text(findings: dict[str, str]) -> dict[str, list[str]]:
    """The cells that were told the same, by what they were told."""
    cells: dict[str, list[str]] = {}
    for cell, text in findings.items():
        cells.setdefault(text, []).append(cell.removesuffix("-tests").replace("_", "."))
    return cells


def _stop(message: str) -> None:
    errors.print(message, markup=False, soft_wrap=True)
    raise typer.Exit(2)


if __name__ == "__main__":
    app()
