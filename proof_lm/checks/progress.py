"""How far a student has come: one line as text, a bar in JupyterLab."""

from dataclasses import dataclass
from html import escape

DONE, OPEN = "#2a6f4e", "#d9d9d9"  # far apart in grey, too


@dataclass(frozen=True, repr=False)
class Progress:
    """Problem set -> exercise -> whether all its public properties held in this session."""

    sets: dict[str, dict[str, bool]]

    def __str__(self) -> str:
        done = [mark for marks in self.sets.values() for mark in marks.values()]
        if len(self.sets) == 1:
            ((title, marks),) = self.sets.items()
            parts = [f"{key} {'done' if mark else 'open'}" for key, mark in marks.items()]
        else:
            title = "all problem sets"
            parts = [f"{name} {sum(marks.values())} of {len(marks)}" for name, marks in self.sets.items()]
        return " | ".join([f"{title}: {sum(done)} of {len(done)} done", *parts])

    __repr__ = __str__  # what a notebook shows where it shows no HTML

    def _repr_html_(self) -> str:
        """One row for each set, one box for each exercise: filled and ticked when done."""
        rows = "".join(
            f"<tr><th style='text-align:left'>{escape(name)}</th><td style='text-align:left'>{_bar(name, marks)}</td>"
            f"<td>{sum(marks.values())} of {len(marks)} done</td></tr>"
            for name, marks in self.sets.items()
        )
        return f"<table>{rows}</table>"


def _bar(name: str, marks: dict[str, bool]) -> str:
    """Boxes of plain HTML: JupyterLab takes SVG out of what it has not been told to trust."""
    alt = f"{name}: {sum(marks.values())} of {len(marks)} exercises done"
    boxes = "".join(_box(key, done) for key, done in marks.items())
    return f"<span role='img' aria-label='{escape(alt)}' style='white-space:nowrap'>{boxes}</span>"


def _box(key: str, done: bool) -> str:
    colours = f"background-color:{DONE};color:#ffffff" if done else f"background-color:{OPEN};color:#333333"
    return (
        f"<span title='{escape(key)} {'done' if done else 'open'}' style='display:inline-block;width:34px;margin:1px;"
        f"text-align:center;font-size:11px;{colours}'>{'&#10003;' if done else ''}{escape(key[1:])}</span>"
    )
