"""The GPT-style variant: which parameter is which, how it computes, and how it goes wrong.

Learned absolute positions, pre-norm blocks with a ReLU MLP of width 4 d, a final norm, an untied head with bias.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from proof_lm.checks.core import Mistake
from proof_lm.checks.layer_mistakes import GPT_MISTAKES
from proof_lm.checks.layer_properties import Sizes
from proof_lm.checks.layer_recipes import Recipe
from proof_lm.checks.layer_roles import Matrix, NoRoles, Piece, Roles, attention_roles, mlp_roles, sort


@dataclass(frozen=True)
class Variant:
    """The right way unless told otherwise."""

    block: Recipe = field(default_factory=lambda: Recipe(activation="relu"))
    positions: str = "learned"  # "none", "last", "twice"
    norm: str = "final"  # "none"
    head: str = "logits"  # "softmax", "no bias", "embedding", "unnormalised"
    layers: str = "all"  # "first", "one missing"

    def hidden(self, ids: np.ndarray, w: dict[str, np.ndarray], s: Sizes) -> np.ndarray:
        """Token ids (B, T) -> states before the head (B, T, d)."""
        x = w["embedding"].T[ids]
        rows = w["positions"].T
        if self.positions != "none":
            x = x + (rows[-ids.shape[1] :] if self.positions == "last" else rows[: ids.shape[1]])
        used = {"first": [0] * s["L"], "one missing": range(s["L"] - 1)}.get(self.layers, range(s["L"]))
        for layer in used:
            prefix = f"{layer}."
            mine = {role.removeprefix(prefix): value for role, value in w.items() if role.startswith(prefix)}
            x = self.block.block(x, mine, s["h"])
        return self.block.layer_norm(x, w["gamma"], w["beta"]) if self.norm == "final" else x

    def logits(self, ids: np.ndarray, w: dict[str, np.ndarray], s: Sizes) -> np.ndarray:
        """Token ids (B, T) -> logits (B, T, V)."""
        states = self.hidden(ids, w, s)
        scores = states @ (w["embedding"] if self.head == "embedding" else w["head"])
        scores = scores if self.head == "no bias" else scores + w["bias"]
        if self.head != "softmax":
            return scores
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return weights / weights.sum(axis=-1, keepdims=True)


def roles(layout: Sequence[dict], s: Sizes) -> Iterator[Roles]:
    """Every assignment that sizes and owners allow; all layers follow the same one."""
    parts, V, d, L, h = sort(layout), s["V"], s["d"], s["L"], s["h"]
    tables, positions = ([m for m in parts.matrices if m.maps(d, n)] for n in (V, s["C"]))
    if len(positions) != 1:
        raise NoRoles(
            f"one table of {s['C']} learned positions ({s['C']}, {d}) was expected; there are {len(positions)}"
        )
    if len(tables) != 2:
        raise NoRoles(f"an embedding and an untied head, both ({V}, {d}), were expected; there are {len(tables)}")
    embedding = next((m for m in tables if layout[m.index]["owner"] == "Embedding"), tables[0])
    head = next(m for m in tables if m is not embedding)
    if head.bias is None:
        raise NoRoles("the head has no bias")
    layers = _layers(parts.matrices, d, L)
    held = sum(m.shape[0] * m.shape[1] for m in parts.matrices)
    if held != d * (2 * V + s["C"] + 12 * L * d):
        raise NoRoles(
            "the matrices do not add up to two tables for tokens, one for positions and 12 d^2 for each layer"
        )
    mlps = [mlp_roles(layer, d, 4 * d) for layer in layers]
    common: Roles = {
        "embedding": Piece(embedding.index),
        "positions": Piece(positions[0].index),
        "head": Piece(head.index, head.owned),
        "bias": Piece(head.bias),
    }
    attentions = list(zip(*(attention_roles(layer, d, h) for layer in layers), strict=True))
    for norms in _norms(_pairs(parts), L):
        for attention in attentions:
            made = common | norms
            for number, (first, second) in enumerate(zip(attention, mlps, strict=True)):
                made |= {f"{number}.{role}": piece for role, piece in (first | second).items()}
            yield made


def _layers(matrices: Sequence[Matrix], d: int, layers: int) -> list[list[Matrix]]:
    """The matrices of each layer: of every sort equally many, in the order of definition."""
    sorts = [[m for m in matrices if m.maps(*shape)] for shape in ((d, 3 * d), (d, d), (d, 4 * d), (4 * d, d))]
    counts = [len(sort) for sort in sorts]
    if not any(counts):
        raise NoRoles(
            "PyTorch finds no block's parameters: keep blocks in nn.ModuleList or nn.Sequential; in a plain list they are "
            "overlooked"
        )
    if counts not in ([layers, layers, layers, layers], [0, 4 * layers, layers, layers]):
        raise NoRoles(
            f"{layers} layers were expected, each with projections for query, key, value and output and an MLP of width "
            f"4 d = {4 * d}; there are {counts[0]} matrices of 3 d, {counts[1]} square, {counts[2]} up, {counts[3]} down"
        )
    shares = [len(sort) // layers for sort in sorts]
    return [
        [m for sort, n in zip(sorts, shares, strict=True) for m in sort[i * n : (i + 1) * n]] for i in range(layers)
    ]


def _pairs(parts) -> list[tuple[int, int]]:
    loose = list(zip(parts.scales, parts.vectors, strict=False))
    return sorted([*parts.norms, *loose])


def _norms(pairs: list[tuple[int, int]], layers: int) -> Iterator[Roles]:
    if len(pairs) != 2 * layers + 1:
        raise NoRoles(
            f"{2 * layers + 1} norms were expected, two in each layer and a final one; there are {len(pairs)}"
        )
    for final, rest in ((pairs[-1], pairs[:-1]), (pairs[0], pairs[1:])):
        for one, two in ((0, 1), (1, 0)):
            made: Roles = {"gamma": Piece(final[0]), "beta": Piece(final[1])}
            for layer in range(layers):
                for name, (gamma, beta) in (("1", rest[2 * layer + one]), ("2", rest[2 * layer + two])):
                    made |= {f"{layer}.gamma{name}": Piece(gamma), f"{layer}.beta{name}": Piece(beta)}
            yield made


_AROUND = (
    ("no positions", "positions are not added: the tokens' order counts only through the mask", {"positions": "none"}),
    ("last positions", "the last rows of the position table are taken; a sequence begins at position 0",
     {"positions": "last"}),
    ("no final norm", "the final norm is not used: it comes after the last block", {"norm": "none"}),
    ("post-norm without a final one", "the norms come after the residual sums and the final one is missing: pre-norm is "
     "x + f(norm(x)), with a final norm after the last block",
     {"norm": "none", "block": Recipe(activation="relu", norm="post")}),
    ("first layer only", "the first layer is used in every place", {"layers": "first"}),
    ("one layer missing", "the last layer is not used", {"layers": "one missing"}),
)  # fmt: skip
_HEAD = (
    ("head is the embedding", "the head reads the embedding's weight; this variant's head has its own",
     {"head": "embedding"}),
    ("bias unused", "the head's bias is not added", {"head": "no bias"}),
    ("probabilities", "probabilities come: return logits, before any softmax", {"head": "softmax"}),
)  # fmt: skip
_BLOCKS = tuple(Mistake(m.name, m.message, Variant(m.candidate)) for m in GPT_MISTAKES)
HIDDEN_MISTAKES = (*(Mistake(name, text, Variant(**what)) for name, text, what in _AROUND), *_BLOCKS)
LOGIT_MISTAKES = (*(Mistake(name, text, Variant(**what)) for name, text, what in _HEAD), *HIDDEN_MISTAKES)
