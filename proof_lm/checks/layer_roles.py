"""Which parameter of a student's module plays which part, whatever it is called.

Sizes and owners say most of it. What they leave open (which square matrix is the query's, which norm comes
first) is answered by every assignment in turn, the order of definition first: one of them must fit.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, permutations, product

import numpy as np

from proof_lm.probes.layers import known_weight

MOST = 800  # assignments that are tried: only loose vectors in a module without nn.Linear have more


@dataclass(frozen=True)
class Piece:
    """A parameter, or some rows of it, as a matrix (inputs, outputs) or a vector."""

    index: int
    outputs_first: bool = True  # as nn.Linear stores it
    rows: tuple[int, ...] | None = None

    def of(self, values: np.ndarray) -> np.ndarray:
        values = values[0] if values.ndim == 3 else values
        turned = values if self.outputs_first or values.ndim < 2 else values.T
        return (turned if self.rows is None else turned[list(self.rows)]).T


Roles = dict[str, Piece | None]  # None: a bias that the module does without


class NoRoles(Exception):
    """The parameters are not those of the layer asked for; the message says what is missing or too much."""


@dataclass(frozen=True)
class Matrix:
    """A matrix with its bias, which is None where it has none or where no owner tells."""

    index: int
    shape: tuple[int, int]  # (outputs, inputs) if an owner says so, else as it is
    bias: int | None
    owned: bool

    def piece(self, outputs: int, inputs: int) -> Piece:
        return Piece(self.index, self.owned or (outputs != inputs and self.shape == (outputs, inputs)))

    def maps(self, inputs: int, outputs: int) -> bool:
        return self.shape == (outputs, inputs) or (not self.owned and self.shape == (inputs, outputs))


@dataclass(frozen=True)
class Parts:
    """A layout sorted: matrices, norms as (scale, shift), and vectors that belong to neither."""

    matrices: tuple[Matrix, ...]
    norms: tuple[tuple[int, int], ...]
    scales: tuple[int, ...]  # loose vectors that start at one
    vectors: tuple[int, ...]  # other loose vectors


def parameters(layout: Sequence[dict], setting: dict) -> list[np.ndarray]:
    """The numbers with which the probe filled a module, parameter by parameter, drawn again."""
    seed, gain = setting["seed"], setting.get("gain", 1.0)
    return [known_weight(seed, gain, i, tuple(entry["shape"])) for i, entry in enumerate(layout)]


def weights(roles: Roles, values: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays behind the roles; 0 for a bias that is not there."""
    return {role: piece.of(values[piece.index]) if piece else np.float64(0) for role, piece in roles.items()}


def sort(layout: Sequence[dict]) -> Parts:
    """NoRoles if a ready-made attention layer is among the owners, or a parameter has neither one nor two axes.

    A leading axis of 1 before two others counts for nothing.
    """
    if any(entry["owner"] == "MultiheadAttention" for entry in layout):
        raise NoRoles("nn.MultiheadAttention does the work: build attention from nn.Linear, view and transpose")
    if not layout:
        raise NoRoles(
            "PyTorch finds no parameter: layers are attributes (self.out = nn.Linear(…)) or stand in nn.ModuleList; "
            "in a plain list they are overlooked"
        )
    by_name = {(entry["path"], entry["name"]): i for i, entry in enumerate(layout)}
    shapes = [entry["shape"][1:] if len(entry["shape"]) == 3 and entry["shape"][0] == 1 else entry["shape"]
              for entry in layout]  # fmt: skip
    odd = [entry for entry, shape in zip(layout, shapes, strict=True) if len(shape) not in (1, 2)]
    if odd:
        raise NoRoles(f"a parameter of shape {tuple(odd[0]['shape'])} is none of the layer's matrices or vectors")
    matrices, loose = [], []
    for i, entry in enumerate(layout):
        owned = entry["owner"] in ("Linear", "Embedding")
        if len(shapes[i]) == 2:
            bias = by_name.get((entry["path"], "bias")) if owned else None
            matrices.append(Matrix(i, tuple(shapes[i]), bias, owned))
        elif not owned:
            loose.append(i)
    norms = []
    for path in dict.fromkeys(layout[i]["path"] for i in loose):
        mine = [i for i in loose if layout[i]["path"] == path]
        starts = [layout[i]["start"] for i in mine]
        if sorted(starts) == ["ones", "zeros"]:
            norms.append((mine[starts.index("ones")], mine[starts.index("zeros")]))
    left = [i for i in loose if not any(i in norm for norm in norms)]
    scales = tuple(i for i in left if layout[i]["start"] == "ones")
    return Parts(tuple(matrices), tuple(norms), scales, tuple(i for i in left if i not in scales))


def attention_roles(matrices: Sequence[Matrix], d: int, heads: int) -> Iterator[Roles]:
    """Of the query, key, value and output projections: one fused matrix of three and one, or four."""
    fused = [m for m in matrices if m.maps(d, 3 * d)]
    square = [m for m in matrices if m.maps(d, d)]
    if (len(fused), len(square)) not in ((1, 1), (0, 4)):
        raise NoRoles(
            f"one ({3 * d}, {d}) and one ({d}, {d}) matrix were expected for query, key, value and output, or four "
            f"({d}, {d}); there are {len(fused)} and {len(square)}"
        )
    raw_turns = (False, True) if any(not m.owned for m in square) else (False,)  # x @ W, or F.linear(x, W)
    for turned in raw_turns:
        for order in permutations(range(3 if fused else 4)):
            if not fused:
                yield {
                    k: v for role, i in zip("qkvo", order, strict=True) for k, v in _square(role, square[i], d, turned)
                }
                continue
            for rows in _thirds(d, heads):
                whole = fused[0].piece(3 * d, d)
                roles: Roles = dict(_square("o", square[0], d, turned))
                for role, i in zip("qkv", order, strict=True):
                    roles["w" + role] = Piece(whole.index, whole.outputs_first, rows[i])
                    roles["b" + role] = None if fused[0].bias is None else Piece(fused[0].bias, rows=rows[i])
                yield roles


def _square(role: str, matrix: Matrix, d: int, turned: bool) -> list[tuple[str, Piece | None]]:
    piece = Piece(matrix.index, matrix.owned or turned)
    return [("w" + role, piece), ("b" + role, None if matrix.bias is None else Piece(matrix.bias))]


def _thirds(d: int, heads: int) -> list[list[tuple[int, ...]]]:
    """Rows of query, key and value in a fused matrix: three blocks of d, or three of d_h for each head."""
    rows = np.arange(3 * d)
    by_head = rows.reshape(heads, 3, d // heads).transpose(1, 0, 2).reshape(3, d)
    return [[tuple(part) for part in table.tolist()] for table in (rows.reshape(3, d), by_head)]


def mlp_roles(matrices: Sequence[Matrix], d: int, d_ff: int) -> Roles:
    """Of the two matrices of the feed-forward branch."""
    up, down = ([m for m in matrices if m.shape == shape or (not m.owned and m.shape == shape[::-1])]
                for shape in ((d_ff, d), (d, d_ff)))  # fmt: skip
    if up and up == down and len(up) == 2:  # without an owner both shapes fit both
        up, down = [m for m in up if m.shape == (d, d_ff)], [m for m in up if m.shape == (d_ff, d)]
    if len(up) != 1 or len(down) != 1:
        raise NoRoles(
            f"one matrix from {d} to {d_ff} and one back were expected for the MLP; there are {len(up)} and {len(down)}"
        )
    (first,), (second,) = up, down
    return {
        "w1": first.piece(d_ff, d),
        "b1": None if first.bias is None else Piece(first.bias),
        "w2": second.piece(d, d_ff),
        "b2": None if second.bias is None else Piece(second.bias),
    }


def block_roles(layout: Sequence[dict], d: int, heads: int, d_ff: int) -> Iterator[Roles]:
    """Of a whole decoder block, every assignment that sizes and owners allow."""
    parts = sort(layout)
    known = 4 * d * d + 2 * d * d_ff
    if sum(m.shape[0] * m.shape[1] for m in parts.matrices) > known:
        raise NoRoles(f"the matrices hold more than the {known} numbers of 4 d^2 + 2 d d_ff")
    mlp = mlp_roles(parts.matrices, d, d_ff)
    attention = list(attention_roles(parts.matrices, d, heads))
    norms = list(_norm_roles(parts, layout, attention[0] | mlp, d, d_ff))
    pairs = product(norms, attention)
    yield from (a | mlp | n for n, a in islice(pairs, MOST))


def _norm_roles(parts: Parts, layout: Sequence[dict], others: Roles, d: int, d_ff: int) -> Iterator[Roles]:
    if len(parts.norms) == 2 and not parts.scales and not parts.vectors:
        for (g1, s1), (g2, s2) in permutations(parts.norms):
            yield {"gamma1": Piece(g1), "beta1": Piece(s1), "gamma2": Piece(g2), "beta2": Piece(s2)}
        return
    grouped = len(parts.norms)
    if grouped + len(parts.scales) != 2 or grouped == 1:
        raise NoRoles(
            f"two norms, each with a scale ({d},) of ones and a shift ({d},) of zeros at the start, were expected; "
            f"there are {grouped + len(parts.scales)}"
        )
    yield from _loose(parts, layout, others, d, d_ff)


def _loose(parts: Parts, layout: Sequence[dict], others: Roles, d: int, d_ff: int) -> Iterator[Roles]:
    """Vectors that no module owns: shifts and biases of the same size in every order."""
    sized = {"bqkv": 3 * d, "b1": d_ff}
    wide = {name: [i for i in parts.vectors if layout[i]["shape"] == [n]] for name, n in sized.items()}
    narrow = [i for i in parts.vectors if layout[i]["shape"] == [d]]
    fixed: Roles = {"b1": Piece(wide["b1"][0])} if len(wide["b1"]) == 1 and d_ff != d else {}
    if len(wide["bqkv"]) == 1:
        fixed |= {f"b{role}": Piece(wide["bqkv"][0], rows=others["w" + role].rows) for role in "qkv"}
    shifts = [] if parts.norms else ["beta1", "beta2"]
    open_biases = [name for name in ("bo", "b2", "bq", "bk", "bv") if others[name] is None and name not in fixed]
    slots = shifts + open_biases
    if len(fixed) != len(wide["b1"]) + 3 * len(wide["bqkv"]) or not len(shifts) <= len(narrow) <= len(slots):
        raise NoRoles("vectors are left over or missing; give every matrix to nn.Linear and every norm to a module")
    tables = parts.norms if parts.norms else [(g,) for g in parts.scales]
    for first, second in permutations(tables):
        norms: Roles = {f"gamma{n}": Piece(t[0]) for n, t in ((1, first), (2, second))}
        if parts.norms:
            norms |= {"beta1": Piece(first[1]), "beta2": Piece(second[1])}
        for chosen in permutations(slots, len(narrow)):
            if set(shifts) <= set(chosen):
                yield norms | fixed | {slot: Piece(i) for slot, i in zip(chosen, narrow, strict=True)}
