"""Formulas and theorems of propositional logic with `&` and `->`, and the one way to write each as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

ATOMS = tuple("pqrstuvwxyz")
CONNECTIVES = ("&", "->")
LONGEST_FORMULA = 200  # tokens; keeps the recursive parser far from Python's recursion limit


class ProofError(ValueError):
    """One line that says what is wrong with a formula, a theorem or a proof, and where."""


class Compound(NamedTuple):
    """Two formulas joined by `&` (both hold) or `->` (if the left holds, so does the right)."""

    left: Formula
    connective: str
    right: Formula


Formula = str | Compound  # an atom is its letter


@dataclass(frozen=True)
class Theorem:
    """A goal that follows from the premises. Text: one premise a line, then `|- goal`."""

    premises: tuple[Formula, ...]
    goal: Formula

    def __str__(self) -> str:
        return "\n".join([*map(show, self.premises), f"|- {show(self.goal)}"])


def conjunction(left: Formula, right: Formula) -> Compound:
    return Compound(left, "&", right)


def implication(left: Formula, right: Formula) -> Compound:
    return Compound(left, "->", right)


def show(formula: Formula) -> str:
    """The formula's text, spaces between tokens, parentheses around every inner compound: `p -> ( q & r )`."""
    if isinstance(formula, str):
        return formula
    parts = (formula.left, formula.right)
    left, right = (part if isinstance(part, str) else f"( {show(part)} )" for part in parts)
    return f"{left} {formula.connective} {right}"


def parse_formula(text: str) -> Formula:
    """The formula that `show` writes as this text, however it is spaced; `ProofError` for any other text."""
    for mark in ("(", ")", *CONNECTIVES):
        text = text.replace(mark, f" {mark} ")
    tokens = text.split()
    if len(tokens) > LONGEST_FORMULA:
        raise ProofError(f"formula: {len(tokens)} tokens, at most {LONGEST_FORMULA} are read")
    text = " ".join(tokens)
    formula, rest = _read_formula(tokens, text)
    if rest:
        raise ProofError(f"formula {text!r}: unexpected {rest[0]!r} after {show(formula)!r}")
    return formula


def parse_theorem(text: str) -> Theorem:
    """The theorem with this text, in lines as `str` writes it or in one as in `p -> q, p |- q`; else `ProofError`."""
    premises, turnstile, goal = text.strip().partition("|-")
    if not turnstile:
        raise ProofError(f"theorem: expected premises, '|-' and a goal, found {text!r}")
    separate = premises.strip().split("\n" if "\n" in text.strip() else ",")
    return Theorem(tuple(map(parse_formula, separate if premises.strip() else [])), parse_formula(goal))


def atoms_of(formula: Formula) -> list[str]:
    """The atoms from left to right, repeats included."""
    return [formula] if isinstance(formula, str) else atoms_of(formula.left) + atoms_of(formula.right)


def rename(formula: Formula, names: dict[str, str]) -> Formula:
    """The formula with each atom replaced by its new name."""
    if isinstance(formula, str):
        return names[formula]
    return Compound(rename(formula.left, names), formula.connective, rename(formula.right, names))


def _read_formula(tokens: list[str], text: str) -> tuple[Formula, list[str]]:
    left, rest = _read_unit(tokens, text)
    if not rest or rest[0] not in CONNECTIVES:
        return left, rest
    right, after = _read_unit(rest[1:], text)
    return Compound(left, rest[0], right), after


def _read_unit(tokens: list[str], text: str) -> tuple[Formula, list[str]]:
    if tokens and tokens[0] in ATOMS:
        return tokens[0], tokens[1:]
    if not tokens or tokens[0] != "(":
        found = repr(tokens[0]) if tokens else "the end"
        raise ProofError(f"formula {text!r}: expected an atom ({ATOMS[0]} to {ATOMS[-1]}) or '(', found {found}")
    inner, rest = _read_formula(tokens[1:], text)
    if isinstance(inner, str) or rest[:1] != [")"]:
        raise ProofError(f"formula {text!r}: parentheses must hold exactly one compound formula")
    return inner, rest[1:]
