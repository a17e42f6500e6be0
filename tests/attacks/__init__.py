"""Hostile submissions, each of which must earn no more than an empty one, show no secret and hurt nobody.

The .py files hold attacks in code, in cells: a title, then what the attacker types into an own cell at the top of
the notebook; answer cells stay as released. The titles:

    # %% setup                 runs before each attack of the file
    # %% attack: reads the environment

Attacks on the notebook and its files are functions in surgery.py.
"""

import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
TITLE = re.compile(r"^# %% (setup|attack)(?:: (.+))?$", re.MULTILINE)
CANARY = "canary-5f1c9e"  # stands in every secret that an attack might reach


@dataclass(frozen=True)
class CodeAttack:
    """Something that a notebook's code does."""

    kind: str  # the file it stands in
    name: str
    source: str


def code_attacks() -> list[CodeAttack]:
    """Every attack of every file."""
    found = []
    for path in sorted(FOLDER.glob("*_code.py")):
        _, *parts = TITLE.split(path.read_text(encoding="utf-8"))
        cells = list(zip(*[iter(parts)] * 3, strict=True))
        setup = "".join(source for kind, _, source in cells if kind == "setup")
        kind = path.stem.removesuffix("_code")
        found += [CodeAttack(kind, name, setup + source) for title, name, source in cells if title == "attack"]
    return found
