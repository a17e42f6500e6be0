"""The instructor's command line: `python -m grading grade p4`, `python -m grading regrade p4`."""

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from nbgrader.converters.base import NbGraderException
from traitlets.config import Config

from grading import report
from grading.assignment import AssignmentError
from grading.exercises import PROBLEM_SETS
from grading.grade import prepare
from grading.nbgrader_classes import SafeAutograde, configuration, course, disk_trouble, submissions
from grading.record import GradebookError
from grading.report import console, errors
from grading.sandbox import SandboxError, available
from grading.scores import Score, scores
from grading.store import Store

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)

Assignment = Annotated[str, typer.Argument(help="A problem set, or 'all' of those that something was handed in for.")]
Students = Annotated[str, typer.Option(help="Only these, by a pattern such as 'a*'.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object a problem set instead of tables.")]
Root = Annotated[Path, typer.Option(help="The course's folder.", file_okay=False)]
FAILED = 3  # exit status when some submissions could not be graded; 2 when nothing could be done, 130 after Ctrl-C


@app.command()
def grade(
    assignment: Assignment = "all",
    students: Students = "*",
    scheduler: Annotated[str, typer.Option(help="Address of a running Dask scheduler, tcp://host:port.")] = "",
    workers: Annotated[int, typer.Option(help="Kernels at a time on this machine; 0 for one a processor.")] = 0,
    dry_run: Annotated[bool, typer.Option(help="Say what would be run, and stop.")] = False,
    as_json: Json = False,
    unsafe_no_sandbox: Annotated[bool, typer.Option(help="Run strangers' code with your own rights.")] = False,
    root: Root = Path(),
) -> None:
    """Run and judge what was handed in, and write the gradebook.

    Exit status: 0 when every submission was graded (badly or well), 3 when some could not be, 2 when none could.
    """
    names = _submitted(root, assignment)
    if not dry_run and not unsafe_no_sandbox and (reason := available()):
        _stop(f"no sandbox: {reason}; --unsafe-no-sandbox runs strangers' code with your own rights")
    failures = 0
    for name in names:
        converter = _converter(root, name, students, unsafe_no_sandbox=unsafe_no_sandbox)
        if dry_run:
            _announce(converter, as_json)
        else:
            failures += _grade(converter, scheduler, workers, as_json)
    if failures:
        raise typer.Exit(FAILED)


@app.command()
def regrade(
    assignment: Assignment = "all", students: Students = "*", as_json: Json = False, root: Root = Path()
) -> None:
    """Judge again what was run before, after a test was corrected; runs nothing, says whose points changed."""
    for name in _submitted(root, assignment):
        converter = _converter(root, name, students, stored_only=True)
        before = {score.student: score for score in _scores(converter)}
        after = [score for score in _record(converter, as_json) if score.student in converter.graded]
        changed = [(before.get(score.student), score) for score in after if score != before.get(score.student)]
        if as_json:
            print(json.dumps({"assignment": name, "changed": [[o and asdict(o), asdict(n)] for o, n in changed]}))
            continue
        for old, new in changed:
            for cell, points in new.code.items():
                was = old.code.get(cell) if old else None
                if was != points:
                    why = new.findings.get(cell, "every property holds")
                    before_that = "none" if was is None else f"{was:g}"
                    line = f"{name} {new.student} {cell}: {before_that} -> {points:g} points ({why})"
                    console.print(line, markup=False, soft_wrap=True)
        if missing := sorted(set(converter.students()) - set(converter.graded)):
            named = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
            errors.print(f"{name} {named}: not run yet in this form; make grade", markup=False, soft_wrap=True)
        console.print(f"{name}: {len(after)} judged again, points of {len(changed)} changed")


def _grade(converter: SafeAutograde, scheduler: str, workers: int, quiet: bool) -> int:
    """Grade one problem set; returns how many submissions could not be."""
    from grading.engine import ClusterError, Step, cluster, run_class  # half a second that regrade need not wait

    name, root = converter.coursedir.assignment_id, Path(converter.coursedir.root)
    started, steps = time.monotonic(), []
    try:
        converter.expect_gradebook()
        tasks = converter.tasks()
        store = Store(root)
        if all(store.get(prepare(task).key) for task in tasks):  # then no worker need be started
            steps = [Step(task.student, reused=True) for task in tasks]
        else:
            with cluster(scheduler, workers) as client, report.progress(f"{name} run", len(tasks), quiet) as advance:
                for step in run_class(tasks, store, client):
                    steps.append(step)
                    advance(bool(step.failure))
        ran = time.monotonic()
        failed = {step.student: f"not graded: {step.failure}" for step in steps if step.failure}
        converter.lost = {step.student: step.failure for step in steps if step.poison}
        converter.coursedir.student_id_exclude = ",".join(set(failed) - set(converter.lost))
        table = _record(converter, quiet)
        seconds = {"run": ran - started, "record": time.monotonic() - ran}
        report.keep_record(root, name, steps, tasks[0].seed if tasks else 0, converter.policy, seconds)
    except (AssignmentError, ClusterError, GradebookError, SandboxError) as error:
        _stop(str(error))
    except OSError as error:
        _stop(disk_trouble(error))
    except KeyboardInterrupt:
        errors.print(f"stopped; {len(steps)} submissions are run and kept, the same command goes on from there")
        raise typer.Exit(130) from None
    (report.as_json if quiet else report.table)(name, table, converter.graded, failed)
    return len(failed)


def _announce(converter: SafeAutograde, as_json: bool) -> None:
    name = converter.coursedir.assignment_id
    try:
        waiting, known = converter.waiting()
    except (AssignmentError, OSError) as error:
        _stop(str(error))
    if as_json:
        print(json.dumps({"assignment": name, "would_run": waiting, "already_run": known}))
        return
    console.print(f"{name}: {len(waiting)} submissions would be run, {len(known)} were before and would be judged")
    for student in waiting:
        console.print(f"  {student}", markup=False)


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
    config = configuration(root.resolve())
    config.merge(Config(SafeAutograde=options))
    converter = SafeAutograde(coursedir=course(root, name, students), config=config)
    if not converter.students():
        _stop(f"no student of {name} matches --students {students!r}")
    return converter


def _record(converter: SafeAutograde, quiet: bool) -> list[Score]:
    """Judge and write the gradebook; the scores of those that were asked for."""
    converter.stored_only = True
    with report.progress(f"{converter.coursedir.assignment_id} judge", len(converter.students()), quiet) as advance:
        converter.reporting = lambda _: advance(False)
        try:
            converter.start()
        except NbGraderException as error:
            _stop(str(error))
    return _scores(converter)


def _scores(converter: SafeAutograde) -> list[Score]:
    asked = set(converter.students())
    try:
        return [score for score in scores(converter.coursedir) if score.student in asked]
    except GradebookError as error:
        _stop(str(error))


def _stop(message: str) -> NoReturn:
    errors.print(message, markup=False, soft_wrap=True)
    raise typer.Exit(2)

