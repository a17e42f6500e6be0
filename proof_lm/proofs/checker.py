"""The proof checker: natural deduction for `&` and `->`, written backwards from the goal, exact and small.

Each line takes the open goal and says from what it follows; that is proved next, in the order in which it is
named, and what is known (a premise, or assumed on the way) needs no line. `end` closes a proof that leaves
nothing open:

    p -> q                    premise (part of the theorem)
    p & r                     premise (part of the theorem)
    |- q & r                  the goal (part of the theorem)
    q & r and                 A & B from A and B
    q from p -> q             B from A -> B, which is known here, and A, which is next
    p from p & r              A from A & B, or B from A & B
    r from p & r
    end

A third rule proves an implication: `A -> B imp` from B, for whose proof A may be assumed. These are Gentzen's
introduction and elimination rules for the two connectives (Untersuchungen über das logische Schließen, 1935),
read from the conclusion to what it rests on, as a proof assistant's tactics are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from proof_lm.proofs.formulas import Compound, Formula, ProofError, Theorem, parse_formula, show

RULES = ("from", "and", "imp")
END = "end"
LINE = re.compile("(.*?) (?:(and|imp)|(from) (.*))")  # `from` alone needs telling what the goal follows from


@dataclass(frozen=True)
class Line:
    """One line of a proof: a goal, the rule that it follows by, and for `from` the formula that is taken apart."""

    goal: Formula
    rule: str
    source: Formula | None = None

    def __str__(self) -> str:
        return f"{show(self.goal)} {self.rule}" + ("" if self.source is None else f" {show(self.source)}")


def write_proof(lines: list[Line]) -> str:
    """The proof's text, a line each, closed by `end`."""
    return "\n".join([*map(str, lines), END])


def parse_proof(text: str) -> list[Line]:
    """The lines that `write_proof` writes as this text; `ProofError` names the first line of any other shape."""
    *rows, end = text.strip().split("\n")
    if end != END:
        raise ProofError(f"proof: the last line must be {END!r}, not {end!r}")
    return [_parse_line(row, number) for number, row in enumerate(rows, start=1)]


def check_proof(theorem: Theorem, text: str) -> None:
    """Return if the text proves the theorem; else raise `ProofError` with the first faulty line and its fault."""
    goals = [(theorem.goal, frozenset(theorem.premises))]  # the next one last, each with what is known to it
    for number, line in enumerate(parse_proof(text), start=1):
        is_open = _next(goals)
        if not is_open:
            raise ProofError(f"line {number}: nothing is left to prove")
        goal, known = is_open
        if line.goal != goal:
            raise ProofError(f"line {number}: the open goal is {show(goal)!r}, the line says {show(line.goal)!r}")
        parts = _parts(line, number)
        if line.rule == "imp":
            known |= {goal.left}
        goals.extend((part, known) for part in reversed(parts))
    if is_open := _next(goals):
        raise ProofError(f"proof: {show(is_open[0])!r} is left to prove")


def is_proof(theorem: Theorem, text: str) -> bool:
    """Whether `check_proof` accepts the text."""
    try:
        check_proof(theorem, text)
    except ProofError:
        return False
    return True


def _next(goals: list[tuple[Formula, frozenset[Formula]]]) -> tuple[Formula, frozenset[Formula]] | None:
    """Take the first goal that is not known already off the list; None if there is none."""
    while goals:
        goal, known = goals.pop()
        if goal not in known:
            return goal, known
    return None


def _parts(line: Line, number: int) -> list[Formula]:
    """What the line's goal follows from by its rule; `ProofError` if the rule does not give such a goal."""
    match line.rule, line.source or line.goal:
        case "and", Compound(left, "&", right):
            return [left, right]
        case "imp", Compound(_, "->", right):
            return [right]
        case "from", Compound(left, "&", right) if line.goal in (left, right):
            return [line.source]
        case "from", Compound(condition, "->", right) if line.goal == right:
            return [line.source, condition]
    raise ProofError(f"line {number}: {show(line.goal)!r} does not follow so: {str(line)!r}")


def _parse_line(row: str, number: int) -> Line:
    found = LINE.fullmatch(row)
    if not found:
        raise ProofError(f"line {number}: expected 'goal and', 'goal imp' or 'goal from formula', found {row!r}")
    goal, introduction, elimination, source = found.groups()
    return Line(parse_formula(goal), introduction or elimination, parse_formula(source) if elimination else None)
