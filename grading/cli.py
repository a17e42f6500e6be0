"""The instructor's command line: `python -m grading grade p4`, `python -m grading regrade p4`."""

from pathlib import Path
from typing import Annotated

import typer

from grading.collector import imports_kept
from grading.console import console, stop
from grading.exercises import PROBLEM_SETS
from grading.submitted import submissions
from grading.workers import prepare_to_fork

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
    workers: Annotated[int, typer.Option(help="Kernels at a time on this machine; 0 for two a processor.")] = 0,
    dry_run: Annotated[bool, typer.Option(help="Say what would be run, and stop.")] = False,
    as_json: Json = False,
    unsafe_no_sandbox: Annotated[bool, typer.Option(help="Run strangers' code with your own rights.")] = False,
    root: Root = Path(),
) -> None:
    """Run and judge what was handed in, and write the gradebook.

    Exit status: 0 when every submission was graded (badly or well), 3 when some could not be, 2 when none could.
    """
    names = _submitted(root, assignment)
    if not dry_run and not scheduler:
        prepare_to_fork("" if unsafe_no_sandbox else names[0])  # beside what we import from here on
    with imports_kept():
        from grading import commands
        from grading.sandbox import available

    if not dry_run and not unsafe_no_sandbox and (reason := available()):
        stop(f"no sandbox: {reason}; --unsafe-no-sandbox runs strangers' code with your own rights")
    failures = 0
    for name in names:
        if dry_run:
            commands.announce(root, name, students, as_json)
        else:
            failures += commands.grade(root, name, students, scheduler, workers, as_json, unsafe_no_sandbox)
    if failures:
        raise typer.Exit(FAILED)


@app.command()
def regrade(
    assignment: Assignment = "all", students: Students = "*", as_json: Json = False, root: Root = Path()
) -> None:
    """Judge again what was run before, after a test was corrected; runs nothing, says whose points changed."""
    names = _submitted(root, assignment)
    with imports_kept():
        from grading import commands
    for name in names:
        commands.regrade(root, name, students, as_json)


def _submitted(root: Path, assignment: str) -> list[str]:
    names = PROBLEM_SETS if assignment == "all" else (assignment,)
    if assignment != "all" and assignment not in PROBLEM_SETS:
        stop(f"assignment {assignment!r} is unknown; choose from {', '.join(PROBLEM_SETS)}")
    if handed_in := [name for name in names if submissions(root / "submitted", name)]:
        return handed_in
    place = "<problem set>" if assignment == "all" else assignment
    console.print(f"nothing submitted: put each student's folder at submitted/<student>/{place}", soft_wrap=True)
    raise typer.Exit
