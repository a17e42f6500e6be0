"""How far a student has come: one line as text, a bar in JupyterLab."""

from dataclasses import dataclass
from html import escape

DONE, OPEN = "#2a6f4e", "#d9d9d9"  # far apart in grey, too
WIDTH, HEIGHT, GAP = 26, 16, 3


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
    width = len(marks) * (WIDTH + GAP)
    alt = f"{name}: {sum(marks.values())} of {len(marks)} exercises done"
    boxes = "".join(_box(index, key, done) for index, (key, done) in enumerate(marks.items()))
    return (
        f"<svg role='img' aria-label='{escape(alt)}' width='{width}' height='{HEIGHT}' "
        f"viewBox='0 0 {width} {HEIGHT}'><title>{escape(alt)}</title>{boxes}</svg>"
    )


def _box(index: int, key: str, done: bool) -> str:
    left = index * (WIDTH + GAP)
    tick = f"<text x='{left + WIDTH / 2:g}' y='12' text-anchor='middle' font-size='11' fill='white'>&#10003;</text>"
    return (
        f"<g><title>{escape(key)} {'done' if done else 'open'}</title>"
        f"<rect x='{left}' y='0' width='{WIDTH}' height='{HEIGHT}' rx='3' fill='{DONE if done else OPEN}'/>"
        f"{tick if done else ''}</g>"
    )
