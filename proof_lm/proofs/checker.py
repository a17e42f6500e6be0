"""The proof checker: natural deduction for `&` and `->`, exact and small.

A proof continues the theorem's numbered premises, one justified line each, and closes with `end`:

    1 p -> q                  premise (part of the theorem)
    2 p & r                   premise (part of the theorem)
    |- q & r                  the goal (part of the theorem)
    3 p left 2                A from A & B
    4 q mp 1 3                B from A -> B and A
    5 r right 2               B from A & B
    6 q & r and 4 5           A & B from A and B
    end

Two more rules prove an implication: `n A assume` opens a box, and `m A -> B imp n k` closes the innermost
box, opened at n by A, once line k says B. The lines of a closed box can no longer be cited, and no box may be
open at the end. These six rules are Gentzen's introduction and elimination rules for the two connectives
(Untersuchungen über das logische Schließen, 1935), with boxes as Jaśkowski and Fitch draw them.
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

CITED_LINES = {"left": 1, "right": 1, "mp": 2, "and": 2, "assume": 0, "imp": 2}
RULES = tuple(CITED_LINES)
END = "end"
LINE_NUMBER = re.compile("[1-9][0-9]{0,3}")


@dataclass(frozen=True)
class Line:
    """One line of a proof: its formula, the rule that justifies it, and the numbers of the lines it cites."""

    formula: Formula
    rule: str
    cites: tuple[int, ...] = ()

    def __str__(self) -> str:
        return " ".join([show(self.formula), self.rule, *map(str, self.cites)])


def write_proof(theorem: Theorem, lines: list[Line]) -> str:
    """The proof's text: numbered after the premises, closed by `end`."""
    first = len(theorem.premises) + 1
    return "\n".join([*(f"{number} {line}" for number, line in enumerate(lines, start=first)), END])


def parse_proof(theorem: Theorem, text: str) -> list[Line]:
    """The lines that `write_proof` writes as this text; `ProofError` names the first line of any other shape."""
    *rows, end = text.strip().split("\n")
    if end != END:
        raise ProofError(f"proof: the last line must be {END!r}, not {end!r}")
    return [_parse_line(row, number) for number, row in enumerate(rows, start=len(theorem.premises) + 1)]


def check_proof(theorem: Theorem, text: str) -> None:
    """Return if the text proves the theorem; else raise `ProofError` with the first faulty line and its fault."""
    known: dict[int, Formula] = dict(enumerate(theorem.premises, start=1))  # what may be cited here
    boxes: list[int] = []  # line numbers of the open assumptions, innermost last
    formula: Formula | None = None
    for number, line in enumerate(parse_proof(theorem, text), start=len(theorem.premises) + 1):
        for cited in line.cites:
            if cited not in known:
                raise ProofError(f"line {number}: cites line {cited}, which is not open to it")
        if line.rule == "imp" and line.cites[:1] != tuple(boxes[-1:]):
            raise ProofError(f"line {number}: imp must close the innermost box, not one opened at {line.cites[0]}")
        formula = _conclusion(line, [known[cited] for cited in line.cites], number)
        if formula != line.formula:
            raise ProofError(f"line {number}: {line.rule} gives {show(formula)!r}, the line says {show(line.formula)!r}")
        if line.rule == "assume":
            boxes.append(number)
        if line.rule == "imp":
            opened = boxes.pop()
            known = {cited: value for cited, value in known.items() if cited < opened}
        known[number] = formula
    if boxes:
        raise ProofError(f"proof: the box opened at line {boxes[-1]} is never closed")
    if formula != theorem.goal:
        raise ProofError(f"proof: its last line is not the goal {show(theorem.goal)!r}")


def is_proof(theorem: Theorem, text: str) -> bool:
    """Whether `check_proof` accepts the text."""
    try:
        check_proof(theorem, text)
    except ProofError:
        return False
    return True


def _conclusion(line: Line, cited: list[Formula], number: int) -> Formula:
    """What the rule gives from the cited formulas; `ProofError` if it does not apply to them."""
    match line.rule, cited:
        case "assume", []:
            return line.formula
        case "and", [left, right]:
            return conjunction(left, right)
        case "imp", [assumption, result]:
            return implication(assumption, result)
        case "left", [Compound(left, "&", _)]:
            return left
        case "right", [Compound(_, "&", right)]:
            return right
        case "mp", [Compound(condition, "->", result), given] if condition == given:
            return result
    raise ProofError(f"line {number}: {line.rule} does not apply to {', '.join(map(repr, map(show, cited)))}")


def _parse_line(row: str, number: int) -> Line:
    words = row.split()
    rule = next((word for word in words if word in RULES), None)
    if words[:1] != [str(number)] or rule is None:
        raise ProofError(f"line {number}: expected '{number} formula rule cited-lines', found {row!r}")
    place = words.index(rule)
    cites = words[place + 1 :]
    if len(cites) != CITED_LINES[rule] or not all(map(LINE_NUMBER.fullmatch, cites)):
        raise ProofError(f"line {number}: {rule} cites {CITED_LINES[rule]} line numbers, found {' '.join(cites)!r}")
    return Line(parse_formula(" ".join(words[1:place])), rule, tuple(map(int, cites)))
