"""What the command line does, with nbgrader and all else that takes time to import."""

import json
import time
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

import typer
from traitlets.config import Config

from grading import report
from grading.collector import imports_kept
from grading.console import console, errors, stop
from grading.course import configuration, course
from grading.grade import prepare
from grading.grader import TROUBLE, Grader, told
from grading.record import GradebookError
from grading.scores import Score, scores
from grading.store import Store


def grade(root: Path, name: str, students: str, scheduler: str, workers: int, quiet: bool, unsafe: bool) -> int:
    """Grade one problem set; returns how many submissions could not be."""
    with imports_kept():
        from grading.engine import ClusterError, Step, cluster, run_class  # half a second that regrade need not wait

    grader = _grader(root, name, students, unsafe_no_sandbox=unsafe, stored_only=True)
    started, busy, steps = time.monotonic(), time.thread_time(), []
    try:
        tasks, store = grader.tasks(), Store(root.resolve())
        with grader.recording() as record, report.progress(name, len(tasks), quiet) as advance, ExitStack() as stack:
            if all(store.get(prepare(task).key) for task in tasks):  # then no worker need be started
                done = ((prepared, Step(prepared.task.student, reused=True)) for prepared in map(prepare, tasks))
            else:
                done = run_class(tasks, store, stack.enter_context(cluster(scheduler, workers)))
            for prepared, step in done:
                if step.poison:
                    grader.lost[step.student] = step.failure
                if step.poison or not step.failure:
                    record(prepared)
                steps.append(step)
                advance(bool(step.failure))
        seconds = {"all": time.monotonic() - started, "coordinator": time.thread_time() - busy}  # of a processor
        report.keep_record(root.resolve(), name, steps, tasks[0].seed if tasks else 0, grader.policy, seconds)
    except (ClusterError, *TROUBLE) as error:
        stop(told(error))
    except KeyboardInterrupt:
        errors.print(f"stopped; {len(steps)} submissions are run and kept, the same command goes on from there")
        raise typer.Exit(130) from None
    failed = {step.student: f"not graded: {step.failure}" for step in steps if step.failure}
    table = _scores(grader)
    (report.as_json if quiet else report.table)(name, table, grader.graded, failed)
    return len(failed)


def regrade(root: Path, name: str, students: str, as_json: bool) -> None:
    """Judge one problem set again from what is stored, and say whose points changed."""
    grader = _grader(root, name, students, stored_only=True)
    before = {score.student: score for score in _scores(grader)}
    _judge(grader, as_json)
    after = [score for score in _scores(grader) if score.student in grader.graded]
    pairs = [(before.get(score.student, Score(score.student)), score) for score in after]
    changed = [(old, new) for old, new in pairs if old.code != new.code]
    if as_json:
        print(json.dumps({"assignment": name, "changed": [[asdict(old), asdict(new)] for old, new in changed]}))
        return
    for old, new in changed:
        for cell, points in new.code.items():
            was = old.code.get(cell)
            if was != points:
                why = new.findings.get(cell, "every property holds")
                before_that = "none" if was is None else f"{was:g}"
                line = f"{name} {new.student} {cell}: {before_that} -> {points:g} points ({why})"
                console.print(line, markup=False, soft_wrap=True)
    if missing := sorted(set(grader.students()) - set(grader.graded)):
        named = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        errors.print(f"{name} {named}: not run yet in this form; make grade", markup=False, soft_wrap=True)
    console.print(f"{name}: {len(after)} judged again, points of {len(changed)} changed")


def announce(root: Path, name: str, students: str, as_json: bool) -> None:
    """Say what would be run."""
    grader = _grader(root, name, students)
    try:
        waiting, known = grader.waiting()
    except TROUBLE as error:
        stop(told(error))
    if as_json:
        print(json.dumps({"assignment": name, "would_run": waiting, "already_run": known}))
        return
    console.print(f"{name}: {len(waiting)} submissions would be run, {len(known)} were before and would be judged")
    for student in waiting:
        console.print(f"  {student}", markup=False)


def _grader(root: Path, name: str, students: str, **options: bool) -> Grader:
    config = configuration(root.resolve())
    config.merge(Config(Grader=options))
    grader = Grader(coursedir=course(root, name, students), config=config)
    if not grader.students():
        stop(f"no student of {name} matches --students {students!r}")
    return grader


def _judge(grader: Grader, quiet: bool) -> None:
    """Judge what is stored of each submission, and write the gradebook."""
    try:
        tasks = grader.tasks()
        with (
            grader.recording() as record,
            report.progress(grader.coursedir.assignment_id, len(tasks), quiet) as advance,
        ):
            for task in tasks:
                record(prepare(task))
                advance(False)
    except TROUBLE as error:
        stop(told(error))


def _scores(grader: Grader) -> list[Score]:
    asked = set(grader.students())
    try:
        return [score for score in scores(grader.coursedir) if score.student in asked]
    except GradebookError as error:
        stop(str(error))
