"""The proof checker: natural deduction for `&` and `->`, written backwards from the goal, exact and small.

Each line takes the open goal and says from what it follows; that is proved next, in the order in which it is
named, and what is known (a premise, or assumed on the way) needs no line. `end` closes a proof that leaves
nothing open:

    p -> q                    premise (part of the theorem)
    p & r                     premise (part of the theorem)
    |- q & r                  the goal (part of the theorem)
    q & r and                 A & B from A and B
    q mp p                    B from A -> B, which is known here, and A
    p left r                  A from A & B, which is known here
    r right p                 B from A & B
    end

A fifth rule proves an implication: `A -> B imp` from B, for whose proof A may be assumed. These are Gentzen's
introduction and elimination rules for the two connectives (Untersuchungen über das logische Schließen, 1935),
read from the conclusion to what it rests on, as a proof assistant's tactics are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from proof_lm.proofs.formulas import (
    Compound,
    Formula,
    ProofError,
    Theorem,
    conjunction,
    implication,
    parse_formula,
    show,
)

# A second formula follows the rule where goal and rule do not tell what the goal follows from.
ELIMINATIONS, INTRODUCTIONS = ("mp", "left", "right"), ("and", "imp")
RULES = (*ELIMINATIONS, *INTRODUCTIONS)
END = "end"
RULE = re.compile(rf"(.*?) ({'|'.join(RULES)})(?: (.*))?")


@dataclass(frozen=True)
class Line:
    """One line of a proof: a goal, the rule that it follows by, and the formula that an elimination brings in."""

    goal: Formula
    rule: str
    helper: Formula | None = None

    def __str__(self) -> str:
        return f"{show(self.goal)} {self.rule}" + ("" if self.helper is None else f" {show(self.helper)}")


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
    match line.rule, line.goal:
        case "mp", goal:
            return [implication(line.helper, goal), line.helper]
        case "left", goal:
            return [conjunction(goal, line.helper)]
        case "right", goal:
            return [conjunction(line.helper, goal)]
        case "and", Compound(left, "&", right):
            return [left, right]
        case "imp", Compound(_, "->", right):
            return [right]
    raise ProofError(f"line {number}: {line.rule} does not give {show(line.goal)!r}")


def _parse_line(row: str, number: int) -> Line:
    found = RULE.fullmatch(row)
    if not found:
        raise ProofError(f"line {number}: expected 'goal rule' or 'goal rule formula', found {row!r}")
    goal, rule, helper = found.groups()
    if (helper is None) != (rule in INTRODUCTIONS):
        raise ProofError(f"line {number}: {rule} names {'no' if helper else 'a'} second formula, found {row!r}")
    return Line(parse_formula(goal), rule, None if helper is None else parse_formula(helper))
