"""What a run shows and writes down while it goes on: a CSV log, a bar on a terminal, a live plot in a notebook."""

from __future__ import annotations

import csv
import sys
from contextlib import suppress
from dataclasses import asdict, fields
from pathlib import Path

from tqdm import tqdm

from proof_lm.training.checkpoints import State
from proof_lm.training.config import TrainingError
from proof_lm.training.loop import Report

SMOOTHING = 0.98


class CsvLog:
    """One row for each step in `log.csv`; a resumed run goes on from the rows up to its checkpoint."""

    def __init__(self, state: State) -> None:
        self.path = Path(state.config.run) / "log.csv"
        try:
            kept = [row for row in read_log(self.path) if int(row["step"]) <= state.step]
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.file = open(self.path, "w", newline="")  # noqa: SIM115 (closed by close)
        except OSError as error:
            raise TrainingError(f"{self.path}: {error.strerror}") from None
        self.rows = csv.DictWriter(self.file, [field.name for field in fields(Report)])
        self.rows.writeheader()
        self.rows.writerows(kept)

    def __call__(self, report: Report) -> None:
        try:
            self.rows.writerow(asdict(report))
            self.file.flush()  # a kill must not cost rows of steps that a checkpoint keeps
        except OSError as error:
            raise TrainingError(f"{self.path}: not written: {error.strerror}; make room, then resume") from None

    def close(self) -> None:
        with suppress(OSError):  # what a full disk did not take was told already
            self.file.close()


def read_log(path: str | Path) -> list[dict[str, str]]:
    """The rows of a log, none if there is no such file; a last row that a crash cut short is left out."""
    try:
        with open(path, newline="") as file:
            rows = list(csv.DictReader(file))
    except FileNotFoundError:
        return []
    return [row for row in rows if None not in row.values()]


class Bar:
    """A progress bar with loss, tokens a second and time left on a terminal; elsewhere a line at each validation."""

    def __init__(self, state: State) -> None:
        self.bar = tqdm(total=state.config.steps, initial=state.step, unit="step", disable=None)
        self.loss, self.tokens, self.seconds = None, 0, 0.0

    def __call__(self, report: Report) -> None:
        self.loss = report.loss if self.loss is None else SMOOTHING * self.loss + (1 - SMOOTHING) * report.loss
        self.tokens, self.seconds = self.tokens + report.tokens, self.seconds + report.seconds
        rate = f"{self.tokens / self.seconds:,.0f} tokens/s"
        self.bar.set_postfix_str(f"loss {self.loss:.3f}, {rate}", refresh=False)
        self.bar.update()
        if report.validation_loss is not None:
            line = f"step {report.step}: loss {self.loss:.3f}, validation {report.validation_loss:.3f}, {rate}"
            self.bar.write(line, file=sys.stdout)

    def close(self) -> None:
        self.bar.close()


class LivePlot:
    """The loss as a curve that grows in a notebook's output; not for notebooks whose outputs are checked."""

    def __init__(self, every: int = 20) -> None:
        from IPython.display import display
        from matplotlib.figure import Figure

        self.every, self.losses = every, []
        self.figure = Figure(figsize=(6, 3), layout="constrained")
        self.axes = self.figure.add_subplot(xlabel="step", ylabel="loss (nats per token)")
        self.shown = display(self.figure, display_id=True)

    def __call__(self, report: Report) -> None:
        self.losses.append((report.step, report.loss))
        if len(self.losses) % self.every == 0 and self.shown is not None:
            for line in self.axes.lines:
                line.remove()
            self.axes.plot(*zip(*self.losses, strict=True), color="C0")
            self.shown.update(self.figure)
