"""Random theorems, each with a proof, by level and in splits that share no theorem.

A theorem's level is the number of lines of the proof that it was made with. Its split is read off the theorem
itself: a digest of what stays the same when atoms are renamed and premises change places. So no theorem of one
split is a theorem of another in disguise, whatever the seeds.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import NamedTuple

from proof_lm.proofs.checker import Line
from proof_lm.proofs.formulas import (
    ATOMS,
    CONNECTIVES,
    Compound,
    Formula,
    Theorem,
    atoms_of,
    conjunction,
    implication,
    rename,
    show,
)

SPLITS = ("train", "validation", "test")
LEVELS = (1, 2, 3)
LARGEST_FORMULA = 3  # atoms


def split_of(theorem: Theorem) -> str:
    """'train' (80 %), 'validation' or 'test' (10 % each); equal for all renamings and orders of the premises."""
    counts = Counter(atom for formula in (*theorem.premises, theorem.goal) for atom in atoms_of(formula))
    names = {atom: str(count) for atom, count in counts.items()}
    shape = sorted(show(rename(premise, names)) for premise in theorem.premises)
    digest = sha256("\n".join([*shape, show(rename(theorem.goal, names))]).encode()).digest()
    return {0: "validation", 1: "test"}.get(int.from_bytes(digest[:4]) % 10, "train")


def theorems(
    split: str, seed: int, levels: Sequence[int] = LEVELS, largest_formula: int = LARGEST_FORMULA
) -> Iterator[tuple[Theorem, list[Line]]]:
    """Endless theorems of one split, each with a proof; every level comes as often as the others.

    Levels that training left out, of the split 'test', are theorems that need longer proofs than any seen.
    ValueError if there is no such split.
    """
    if split not in SPLITS:
        raise ValueError(f"split: expected one of {', '.join(SPLITS)}, got {split!r}")
    rng = random.Random(f"{split} {seed}")  # seeding by text gives the same stream on every machine
    while True:
        level = rng.choice(levels)
        drawn = None
        while drawn is None or split_of(drawn[0]) != split:
            drawn = _draw(rng, level, largest_formula)
        yield drawn


class _Node(NamedTuple):
    """A formula, the rule that it follows by ('given' for a premise or an assumption) and the nodes it follows from."""

    formula: Formula
    rule: str = "given"
    parts: tuple[_Node, ...] = ()


class _Unsuitable(Exception):
    """The draw became circular, trivial or too large."""


def _draw(rng: random.Random, level: int, largest_formula: int) -> tuple[Theorem, list[Line]] | None:
    """A theorem with a proof of exactly `level` lines, or None when the draw came out unsuitable."""
    try:
        draft = _Draft(rng, largest_formula)
        goal = draft.formula(rng.randint(1, largest_formula))
        return draft.finish(draft.grow(goal, level, (), ()))
    except _Unsuitable:
        return None


class _Draft:
    """A proof made backwards, from the goal to what it needs; what is left without a proof becomes a premise.

    A formula that an elimination takes apart is never one that an introduction has just put together, so the
    proofs have no detours (they are normal in Prawitz's sense).
    """

    def __init__(self, rng: random.Random, largest_formula: int) -> None:
        self.rng = rng
        self.largest_formula = largest_formula
        self.fresh = rng.sample(ATOMS, len(ATOMS))
        self.used: list[str] = []

    def atom(self) -> str:
        """Mostly an atom not used so far."""
        if self.fresh and (not self.used or self.rng.random() < 0.7):
            self.used.append(self.fresh.pop())
            return self.used[-1]
        return self.rng.choice(self.used)

    def formula(self, size: int) -> Formula:
        """A random formula of `size` atoms."""
        if size == 1:
            return self.atom()
        left = self.rng.randint(1, size - 1)
        return Compound(self.formula(left), self.rng.choice(CONNECTIVES), self.formula(size - left))

    def helper(self, room: int, preferred: list[Formula]) -> Formula:
        """A formula of at most `room` atoms that a step brings in from outside its goal."""
        fitting = [formula for formula in preferred if len(atoms_of(formula)) <= room]
        if fitting and self.rng.random() < 0.7:
            return self.rng.choice(fitting)
        return self.formula(2 if room > 1 and self.rng.random() < 0.25 else 1)

    def grow(
        self, goal: Formula, lines: int, assumed: tuple[Formula, ...], path: tuple[Formula, ...], take_apart: bool = False
    ) -> _Node:
        """A proof of the goal in exactly that many lines; `path` holds the goals on the way here."""
        if goal in path:
            raise _Unsuitable
        if lines == 0:
            return _Node(goal)
        path += (goal,)
        room = self.largest_formula - len(atoms_of(goal))
        rules = ["mp"] * (room > 0) + ["left", "right"] * (room > (lines > 1))
        if isinstance(goal, Compound) and not take_apart:
            rules += ["and"] * 4 if goal.connective == "&" else ["imp"] * 4
        if not rules:
            raise _Unsuitable
        match self.rng.choice(rules):
            case "and":
                first = self.rng.randint(0, lines - 1)
                left = self.grow(goal.left, first, assumed, path)
                return _Node(goal, "and", (left, self.grow(goal.right, lines - 1 - first, assumed, path)))
            case "imp":
                return _Node(goal, "imp", (self.grow(goal.right, lines - 1, (*assumed, goal.left), path),))
            case "mp":
                condition = self.helper(room, list(assumed))
                most = lines - 1 if len(atoms_of(condition)) < room else 0  # lines for a source with room to come from
                first = most if condition in assumed else self.rng.randint(0, most)
                source = self.grow(implication(condition, goal), first, assumed, path, take_apart=True)
                return _Node(goal, "from", (source, self.grow(condition, lines - 1 - first, assumed, path)))
            case side:
                pairs = [known for known in assumed if isinstance(known, Compound) and known.connective == "&"]
                if side == "left":
                    pair = conjunction(goal, self.helper(room, [known.right for known in pairs if known.left == goal]))
                else:
                    pair = conjunction(self.helper(room, [known.left for known in pairs if known.right == goal]), goal)
                return _Node(goal, "from", (self.grow(pair, lines - 1, assumed, path, take_apart=True),))

    def finish(self, tree: _Node) -> tuple[Theorem, list[Line]]:
        """The theorem that the tree proves, its premises shuffled with a distractor or none, and the tree as lines."""
        premises, derived = _leaves_and_steps(tree, ())
        if self.rng.random() < 0.5:
            premises.append(self.formula(self.rng.randint(1, self.largest_formula)))
        premises = list(dict.fromkeys(premises))
        self.rng.shuffle(premises)
        if len(set(derived)) < len(derived) or set(derived) & set(premises):
            raise _Unsuitable
        return Theorem(tuple(premises), tree.formula), _as_lines(tree)


def _leaves_and_steps(node: _Node, assumed: tuple[Formula, ...]) -> tuple[list[Formula], list[Formula]]:
    """The premises that the tree rests on and the formulas that its lines state, assumptions included."""
    if node.rule == "given":
        return ([], []) if node.formula in assumed else ([node.formula], [])
    inside = (*assumed, node.formula.left) if node.rule == "imp" else assumed
    premises, derived = [], [node.formula, *inside[len(assumed) :]]
    for part in node.parts:
        more_premises, more_derived = _leaves_and_steps(part, inside)
        premises += more_premises
        derived += more_derived
    return premises, derived


def _as_lines(node: _Node) -> list[Line]:
    """The tree in the order that `check_proof` asks for: a goal, then what it follows from, part by part."""
    if node.rule == "given":
        return []
    source = node.parts[0].formula if node.rule == "from" else None
    return [Line(node.formula, node.rule, source), *(line for part in node.parts for line in _as_lines(part))]
