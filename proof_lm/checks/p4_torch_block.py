"""Problem set P4 torch block: a decoder block, attention with rotation and cache, and a model of two blocks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from proof_lm.checks.core import Case, Mistake, Property, difference
from proof_lm.checks.exercises import PublicExercise
from proof_lm.checks.general import refuses
from proof_lm.checks.layer_mistakes import BLOCK_MISTAKES, CACHE_MISTAKES, ROTARY_MISTAKES
from proof_lm.checks.layer_properties import (
    ATOL,
    HIDDEN,
    ROUNDING,
    RTOL,
    Kind,
    Sizes,
    all_learn,
    any_length,
    batch_permutes,
    explained,
    future_hidden,
    known_weights,
    label,
    parameters_known,
    single_precision,
    training_is_evaluation,
)
from proof_lm.checks.layer_recipes import Recipe
from proof_lm.checks.layer_roles import NoRoles, Piece, Roles, attention_roles, block_roles, sort
from proof_lm.probes import Answer

BLOCK_LESSON = "lesson 06, from One multiplication instead of three to A module owns its parameters"
ROTARY_LESSON = "lesson 06, Positions that turn, by hand"
MODEL_LESSON = "lesson 06, From ids to logits"


def _states(rng: Generator, s: Sizes) -> np.ndarray:
    """Input (B, T, d) in which every other row has little spread, so that epsilon and the norm count."""
    values = rng.normal(size=(s["B"], s["T"], s["d"]))
    values[:, 1::2] = 0.01 * values[:, 1::2] + 0.3
    return values


def _new_row(rng: Generator, s: Sizes, values: np.ndarray, b: int, t: int) -> np.ndarray:
    changed = values.copy()
    changed[b, t] = rng.normal(size=s["d"])
    return changed


def token_ids(rng: Generator, s: Sizes) -> np.ndarray:
    return rng.integers(s["V"], size=(s["B"], s["T"]))


def new_id(rng: Generator, s: Sizes, ids: np.ndarray, b: int, t: int) -> np.ndarray:
    changed = ids.copy()
    changed[b, t] = (ids[b, t] + rng.integers(1, s["V"])) % s["V"]
    return changed


# The block

BLOCK = Kind(
    arguments=lambda s: [s["d"], s["h"], s["d_ff"]],
    draw=_states,
    change=_new_row,
    roles=lambda layout, s: block_roles(layout, s["d"], s["h"], s["d_ff"]),
    compute=lambda recipe, w, x, s: recipe.block(x, w, s["h"]),
    right=(Recipe(), Recipe(activation="gelu_tanh")),
    lesson=BLOCK_LESSON,
)


def block_properties(table: Sequence[Sizes], long: Sequence[Sizes], gain: float) -> tuple[Property, ...]:
    """Of TransformerDecoderBlock(d, h, d_ff), on these sizes; `long` has those of the interventions."""
    meaning = "m = x + attention(norm1(x)), then m + mlp(norm2(m)), with causal attention and GELU."
    holds = "Three projections (one fused or three), one output projection, two MLP matrices, two norms: nothing else."
    return (
        known_weights(BLOCK, table, BLOCK_MISTAKES, gains=(1.0, gain), name="output under known weights", meaning=meaning),
        silent_branches(table),
        future_hidden(BLOCK, long),
        parameters_known(BLOCK, table, holds),
        all_learn(BLOCK, table[:2], "d"),
        any_length(BLOCK, table[0], [(3, 5), (1, 1), (2, 33), (4, 2)], "d"),
        batch_permutes(BLOCK, table[:1]),
        single_precision(BLOCK, table[:2]),
        training_is_evaluation(BLOCK, table[:1]),
        refused([[6, 4, 8], [10, 3, 7], [4, 8, 5]], "num_heads must divide d_model", BLOCK_LESSON),
    )  # fmt: skip


def silent_branches(table: Sequence[Sizes]) -> Property:
    """With all matrices zero and nothing added, both branches are zero and the block is the identity."""

    def cases(rng: Generator) -> list[Case]:
        made = []
        for sizes in table:
            call = (BLOCK.arguments(sizes), BLOCK.setting(rng, silent=True), _states(rng, sizes))
            made.append(Case(label(sizes, ", all matrices zero"), (call,), "layers.outputs"))
        return made

    def judge(case: Case, values: list) -> str | None:
        if not any(len(entry["shape"]) == 2 for entry in values[0]["layout"]):
            return "the block has no matrix"
        text = difference(values[0]["outputs"][0], case.calls[0][2], 0, HIDDEN)
        return text and f"the input itself was expected, but {text}: the residual must carry x, not a norm of it"

    meaning = (
        "x goes through a pre-norm block unchanged beside the branches: silence them, and the output is the input."
    )
    return Property("the residual carries the input", meaning, cases, judge, "1e-6", BLOCK_LESSON)


def refused(calls: Sequence[list[int]], meaning: str, lesson: str) -> Property:
    """Sizes that cannot be, refused while building with ValueError."""
    cases = [Case(f"sizes {tuple(call)}", ((call,),), "layers.build") for call in calls]
    name = "impossible sizes are refused"
    return refuses(
        lambda rng: cases, error="ValueError", name=name, meaning=meaning + ": ValueError when built.", lesson=lesson
    )


# Attention with rotation and cache


def _rotary_roles(layout: Sequence[dict], s: Sizes) -> Iterator[Roles]:
    parts = sort(layout)
    if parts.norms or parts.scales or parts.vectors or sum(np.prod(m.shape) for m in parts.matrices) > 4 * s["d"] ** 2:
        raise NoRoles("attention has the four projections with their biases, and nothing else")
    yield from attention_roles(parts.matrices, s["d"], s["h"])


ROTARY = Kind(
    arguments=lambda s: [s["d"], s["h"]],
    draw=lambda rng, s: rng.normal(size=(s["B"], s["T"], s["d"])),
    change=_new_row,
    roles=_rotary_roles,
    compute=lambda recipe, w, x, s: recipe.attention(x, w, s["h"]),
    right=(Recipe(rotate="pairs"),),
    lesson=ROTARY_LESSON,
)


def rotary_properties(
    table: Sequence[Sizes], long: Sequence[Sizes], chunks: Sequence[tuple[Sizes, list[int]]], gain: float
) -> tuple[Property, ...]:
    """Of RotaryCachedAttention(d, h), on these sizes and on these divisions of T into chunks."""
    meaning = (
        "Queries and keys are turned pair by pair by position, then attention is causal and scaled by the root of d_h."
    )
    holds = "Three projections (one fused or three) and one output projection, with or without biases: nothing else."
    return (
        known_weights(ROTARY, table, ROTARY_MISTAKES, gains=(1.0, gain), name="output under known weights", meaning=meaning),
        through_the_cache(chunks),
        cache_holds(chunks),
        future_hidden(ROTARY, long),
        parameters_known(ROTARY, table, holds),
        all_learn(ROTARY, table[:2], "d"),
        any_length(ROTARY, table[0], [(3, 5), (1, 1), (2, 33), (4, 2)], "d"),
        batch_permutes(ROTARY, table[:1]),
        single_precision(ROTARY, table[:2]),
        training_is_evaluation(ROTARY, table[:1]),
        refused([[6, 4], [10, 3], [6, 2], [15, 5]], "num_heads must divide d_model, and d_h must be even", ROTARY_LESSON),
    )  # fmt: skip


def _chunk_cases(chunks: Sequence[tuple[Sizes, list[int]]]):
    def cases(rng: Generator) -> list[Case]:
        made = []
        for sizes, lengths in chunks:
            call = (ROTARY.arguments(sizes), ROTARY.setting(rng), ROTARY.draw(rng, sizes), lengths)
            made.append(Case(label(sizes, f", chunks of {lengths}"), (call,), "layers.cached", sizes))
        return made

    return cases


def through_the_cache(chunks: Sequence[tuple[Sizes, list[int]]]) -> Property:
    """Read in chunks, a sequence has the outputs that it has when read at once."""

    def judge(case: Case, values: list) -> str | None:
        value, lengths = values[0], case.calls[0][3]
        for length, piece in zip(lengths, value["pieces"], strict=True):
            if piece.ndim != 3 or piece.shape[1] != length:
                return f"{length} outputs were expected for a chunk of {length}, shape {piece.shape} came"
        text = difference(np.concatenate(value["pieces"], axis=1), value["whole"], RTOL, ATOL)
        return text and f"in chunks, {text}"

    def explains(mistake: Mistake, case: Case, answers: list[Answer]) -> bool:
        lengths = case.calls[0][3]
        return explained(
            ROTARY, mistake, case, answers,
            lambda v: np.concatenate(v["pieces"], axis=1),
            lambda recipe, w, x, s: recipe.chunks(x, w, s["h"], lengths),
        )  # fmt: skip

    meaning = "The cache saves work and changes nothing: positions go on where it ends, and all it holds is visible."
    return Property("through the cache, the same output", meaning, _chunk_cases(chunks), judge, ROUNDING, ROTARY_LESSON,
                    CACHE_MISTAKES, explains=explains)  # fmt: skip


def cache_holds(chunks: Sequence[tuple[Sizes, list[int]]]) -> Property:
    """A cache has keys and values (B, h, S, d_h) of all S steps so far, and is never changed once handed out."""

    def judge(case: Case, values: list) -> str | None:
        s, seen = case.facts, 0
        for length, then, now in zip(case.calls[0][3], values[0]["then"], values[0]["now"], strict=True):
            seen += length
            for name, held, later in zip(("keys", "values"), then, now, strict=True):
                expected = (s["B"], s["h"], seen, s["d"] // s["h"])
                if held.shape != expected:
                    return f"after {seen} steps, {name} of shape {expected} were expected, shape {held.shape} came"
                if difference(later, held, 0, 0):
                    return f"a later call changed the {name} of a cache handed out before; concatenate into a new one"
        return None

    meaning = (
        "Keys and values have shape (B, h, S, d_h) with all S steps so far; a cache that was handed out stays as it is."
    )
    return Property("what the cache holds", meaning, _chunk_cases(chunks), judge, "exact", ROTARY_LESSON)


# Two blocks and what stands around them


@dataclass(frozen=True)
class Stack:
    """Embedding, two blocks, final norm, head: the right way unless told otherwise."""

    blocks: str = "both"  # "first", "first twice", "sum"
    norm: str = "final"  # "none", "first", "between"
    embedding: float = 1.0  # power of d by which it is scaled, above 1
    head: str = "logits"  # "softmax", "log softmax"
    epsilon: float = 1e-5

    def model(self, ids: np.ndarray, w: dict[str, np.ndarray]) -> np.ndarray:
        """Token ids (B, T) -> logits (B, T, V)."""
        x = w["embedding"].T[ids]  # (B, T, d)
        if self.embedding != 1:
            x = x * x.shape[-1] ** self.embedding
        normed = Recipe(epsilon=self.epsilon).layer_norm
        if self.norm == "first":
            x = normed(x, w["gamma"], w["beta"])
        first, second = w["first"], w["second"]
        for weight in {"first": (first,), "first twice": (first, first)}.get(self.blocks, (first, second)):
            change = np.cumsum(np.tanh(x @ weight), axis=1)
            x = x + change + (x if self.blocks == "sum" else 0)
            x = normed(x, w["gamma"], w["beta"]) if self.norm == "between" else x
        if self.norm == "final":
            x = normed(x, w["gamma"], w["beta"])
        logits = x @ w["head"] + w["bias"]
        if self.head == "logits":
            return logits
        shifted = logits - logits.max(axis=-1, keepdims=True)
        logs = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
        return np.exp(logs) if self.head == "softmax" else logs


STACK_MISTAKES = (
    Mistake("no final norm", "the final norm is not used: it comes after the last block", Stack(norm="none")),
    Mistake("norm first", "the final norm comes before the blocks; it belongs after them", Stack(norm="first")),
    Mistake("norm each", "the final norm is used after every block; it belongs after the last alone",
            Stack(norm="between")),
    Mistake("probabilities", "probabilities come: return logits, before any softmax", Stack(head="softmax")),
    Mistake("log-probabilities", "log-probabilities come: return logits, before any softmax",
            Stack(head="log softmax")),
    Mistake("one block", "only one of the two blocks is used", Stack(blocks="first")),
    Mistake("one block twice", "one block is used twice and the other never", Stack(blocks="first twice")),
    Mistake("residual around blocks", "a residual is added around a block, which has its own inside",
            Stack(blocks="sum")),
    Mistake("scaled embedding", "the embedding is multiplied by the root of d; nothing asks for that",
            Stack(embedding=0.5)),
    Mistake("another epsilon", "the final norm's epsilon is not the 1e-5 of LayerNorm", Stack(epsilon=1e-12)),
)  # fmt: skip


def _model_roles(layout: Sequence[dict], s: Sizes) -> Iterator[Roles]:
    parts, V, d = sort(layout), s["V"], s["d"]
    tables = [m for m in parts.matrices if m.maps(d, V)]
    blocks = [m for m in parts.matrices if m.maps(d, d)]
    if len(blocks) != 2:
        raise NoRoles(
            f"the parameters of two blocks were expected, of {len(blocks)} they are there: call make_block() once for "
            "each block, and keep blocks as attributes or in nn.ModuleList, so that PyTorch finds them"
        )
    if len(tables) not in (1, 2) or len(parts.matrices) != 2 + len(tables):
        raise NoRoles(
            f"an embedding ({V}, {d}) and a head ({V}, {d}) were expected; there are {len(tables)} such matrices"
        )
    pairs = parts.norms or tuple(zip(parts.scales, parts.vectors, strict=False))
    if len(pairs) != 1:
        raise NoRoles(f"one final norm with scale and shift was expected; there are {len(pairs)}")
    ((gamma, beta),) = pairs
    spare = [i for i, entry in enumerate(layout) if entry["shape"] == [V] and i not in (gamma, beta)]
    embeddings = [m for m in tables if layout[m.index]["owner"] == "Embedding"] or tables
    for embedding in embeddings:
        head = next((m for m in tables if m is not embedding), embedding)  # one matrix: tied
        for first, second in (blocks, blocks[::-1]):
            yield {
                "embedding": Piece(embedding.index),
                "first": first.piece(d, d),
                "second": second.piece(d, d),
                "gamma": Piece(gamma),
                "beta": Piece(beta),
                "head": head.piece(V, d),
                "bias": Piece(spare[0]) if spare else None,
            }


MODEL = Kind(
    arguments=lambda s: [s["V"], s["d"], {"width": s["d"]}],
    draw=token_ids,
    change=new_id,
    roles=_model_roles,
    compute=lambda recipe, w, ids, s: recipe.model(ids, w),
    right=(Stack(),),
    lesson=MODEL_LESSON,
)


def model_properties(table: Sequence[Sizes], long: Sequence[Sizes]) -> tuple[Property, ...]:
    """Of TwoBlockLM(vocab_size, d, make_block), around simple blocks of the grader's."""
    meaning = "logits = head(norm(block2(block1(embedding(ids)))))."
    holds = "An embedding, two different blocks, one final norm and a head, with or without a bias: nothing else."
    return (
        known_weights(MODEL, table, STACK_MISTAKES, name="logits under known weights", meaning=meaning),
        parameters_known(MODEL, table, holds, "a copy of a block starts as its twin; call make_block() for each"),
        future_hidden(MODEL, long),
        all_learn(MODEL, table[:2], "V"),
        any_length(MODEL, table[0], [(3, 5), (1, 1), (2, 33)], "V"),
        batch_permutes(MODEL, table[:1]),
        single_precision(MODEL, table[:1]),
        training_is_evaluation(MODEL, table[:1]),
    )


# What a student sees

EXERCISES = (
    PublicExercise(
        "P4.14",
        "TransformerDecoderBlock",
        block_properties(
            [{"B": 2, "T": 5, "d": 16, "h": 2, "d_ff": 32}, {"B": 3, "T": 4, "d": 6, "h": 3, "d_ff": 7}],
            [{"B": 2, "T": 4, "d": 6, "h": 3, "d_ff": 7}],
            2.0,
        ),
        (
            (
                "a view fails, or heads mix positions",
                "Features come apart first and axes move second:\n"
                "q.view(B, T, h, d_h).transpose(1, 2). On the way back transpose(1, 2) first, then reshape(B, T, d):\n"
                "after a transpose memory is no longer in order, so that view refuses and reshape copies.",
            ),
            (
                "a later position shows, or NaN comes",
                "torch.full((T, T), float('-inf')) with torch.triu(..., diagonal=1) is -inf strictly above the\n"
                "diagonal and 0 elsewhere. Add it to the scores, then softmax over dim=-1.",
            ),
            (
                "all shapes are right and the output is not",
                "Check in this order: scores divided by the root of d_h = d / h, pre-norm (the branch reads norm1(x), the sum\n"
                "adds x), the second branch reads the result of the first, GELU between its two matrices.",
            ),
        ),
    ),
    PublicExercise(
        "P4.15",
        "RotaryCachedAttention",
        rotary_properties(
            [{"B": 2, "T": 5, "d": 12, "h": 3}, {"B": 1, "T": 4, "d": 8, "h": 2}],
            [{"B": 2, "T": 4, "d": 12, "h": 3}],
            [({"B": 2, "T": 5, "d": 12, "h": 3}, [3, 2]), ({"B": 1, "T": 4, "d": 8, "h": 2}, [1, 1, 1, 1])],
            2.0,
        ),
        (
            (
                "the output is wrong without a cache",
                "Turn queries and keys after the heads are cut, so that frequencies come from d_h: pair p turns by\n"
                "position * 10000 ** (-2 p / d_h). x[..., 0::2] and x[..., 1::2] are the two halves of all pairs.",
            ),
            (
                "through the cache the output differs",
                "A cache with S steps means that the first new position is S. Turn the new keys by their own positions,\n"
                "then concatenate behind the cached ones along the time axis, dim=2.",
            ),
            (
                "only chunks of more than one step fail",
                "The scores of a chunk are (T, S + T). Query i may see keys up to S + i: torch.triu with\n"
                "diagonal=S + 1 on a (T, S + T) matrix of -inf.",
            ),
        ),
    ),
    PublicExercise(
        "P4.16",
        "TwoBlockLM",
        model_properties(
            [{"B": 2, "T": 5, "V": 11, "d": 6}, {"B": 1, "T": 3, "V": 7, "d": 4}], [{"B": 2, "T": 4, "V": 11, "d": 6}]
        ),
        (
            (
                "parameters are missing, or there are too few blocks",
                "PyTorch finds modules that are attributes, or stand in\n"
                "nn.ModuleList; in a plain Python list it overlooks them. Call make_block() once for each block.",
            ),
            (
                "the logits are off",
                "In order: embedding, block, block, norm, head. Blocks have their residuals inside; after the head\n"
                "comes nothing, the loss does its own softmax.",
            ),
            (
                "the shapes do not fit",
                "ids (B, T) -> embedding (B, T, d) -> blocks (B, T, d) -> norm (B, T, d) -> nn.Linear(d, V): (B, T, V).",
            ),
        ),
    ),
)  # fmt: skip
