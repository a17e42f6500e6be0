"""Wrong and right answers to the exercises, as the source a student would type.

One file per exercise, named after it ("P4_1.py"), in cells: a title line, then the source. The titles:

    # %% setup                                      imports and earlier answers, run before each of the others
    # %% wrong: softmax over the queries            an answer that must lose points
    # %% wrong: softmax over the queries -> text    and whose findings must contain "text"
    # %% right: einsum                              an unusual answer that must earn full marks

A wrong answer to a long exercise may be written as edits of the file's first right answer: lines to take out, marked
"#-", and lines to put in their place, marked "#+"; a line that is neither stands between two edits.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path

from grading.exercises import find

FOLDER = Path(__file__).parent
EDIT_MARK = re.compile(r"^#([-+]) ?(.*)$")
TITLE = re.compile(r"^# %% (setup|wrong|right)(?:: (.+?)(?: -> (.+))?)?$", re.MULTILINE)


@dataclass(frozen=True)
class Answer:
    """One answer to an exercise."""

    exercise: str  # "P4.1"
    wrong: bool
    name: str  # what it does, in words
    diagnosis: str  # text that its findings must contain, empty when none is claimed
    source: str

    def candidate(self) -> Callable:
        """What the exercise's name means after this source has run."""
        namespace: dict = {"__name__": "answer"}
        exec(compile(self.source, f"{self.exercise} {self.name}", "exec"), namespace)
        return eval(find(self.exercise).name, namespace)


@cache
def answers() -> tuple[Answer, ...]:
    """Every answer of every file. Raises ValueError for a file without a wrong and a right one."""
    return tuple(answer for path in sorted(FOLDER.glob("P*.py")) for answer in _read(path))


def _read(path: Path) -> list[Answer]:
    exercise = path.stem.replace("_", ".", 1)
    _, *parts = TITLE.split(path.read_text(encoding="utf-8"))
    cells = list(zip(*[iter(parts)] * 4, strict=True))
    setup = "".join(source for kind, _, _, source in cells if kind == "setup")
    first_right = next((source for kind, _, _, source in cells if kind == "right"), "")
    found = [
        Answer(exercise, kind == "wrong", name, diagnosis or "", setup + _edited(first_right, source))
        for kind, name, diagnosis, source in cells
        if kind != "setup"
    ]
    if {answer.wrong for answer in found} != {True, False} or len({a.name for a in found}) != len(found):
        raise ValueError(f"{path.name}: needs a wrong and a right answer, each with a name of its own")
    return found


def _edited(right: str, source: str) -> str:
    """The source that a student would type: as it stands, or the right one with these edits made in order."""
    marked = [EDIT_MARK.match(line) for line in source.splitlines()]
    if not any(marked):
        return source
    for is_edit, group in groupby(marked, key=bool):
        if not is_edit:
            continue
        lines = [match.groups() for match in group]
        old, new = ("".join(f"\n{text}" for sign, text in lines if sign == wanted) for wanted in "-+")
        if f"\n{right}".count(f"{old}\n") != 1:
            raise ValueError(f"an edit needs lines that the first right answer holds once, not {old!r}")
        right = f"\n{right}".replace(f"{old}\n", f"{new}\n")[1:]
    return right
