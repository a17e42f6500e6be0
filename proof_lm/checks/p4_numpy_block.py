"""Problem set P4 numpy block: the parts of a decoder block one by one, what must hold of each, and help."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.random import Generator

from proof_lm import attention, block
from proof_lm.checks import attention as heads
from proof_lm.checks import block as parts
from proof_lm.checks import loss as losses
from proof_lm.checks.attention import Sizes
from proof_lm.checks.attention_mistakes import (
    WRONG_ATTENTION,
    WRONG_LARGE,
    WRONG_MASK,
    WRONG_MERGE,
    WRONG_MULTI_HEAD,
    WRONG_ROPE,
    WRONG_SPLIT,
)
from proof_lm.checks.block_mistakes import WRONG_BLOCK, WRONG_FORMULA, WRONG_GELU, WRONG_LOGITS, WRONG_LOSS
from proof_lm.checks.core import Case, Property
from proof_lm.checks.exercises import PublicExercise
from proof_lm.checks.general import Cases, behaves, matches, on_any_numbers
from proof_lm.checks.numpy_block_mistakes import (
    WRONG_ACTIVATION,
    WRONG_AFFINE,
    WRONG_BATCH,
    WRONG_HEADS,
    WRONG_MASK_KIND,
    WRONG_MEAN,
    WRONG_MODEL,
    WRONG_POSITIONS,
    WRONG_SINGLE,
    WRONG_SOFTMAX,
)

Shape = tuple[int, ...]
Draw = Callable[[Generator], tuple]  # the arguments of one call
Properties = tuple[Property, ...]

CLOSE = {
    "rtol": 1e-5,
    "atol": 1e-5,
    "tolerance": "1e-5 on numbers of order one, compared in float64: room for a float32 answer",
}
ANY_GELU = {
    "rtol": 5e-3,
    "atol": 5e-2,
    "tolerance": "5e-2: the tanh form and the exact GELU differ by 5e-4, summed over d_ff and the blocks",
}
LARGE = {
    "rtol": 5e-3,
    "atol": 5e-2,
    "tolerance": "5e-3 of each number: float32 holds scores near 3000 to about 1e-4",
}


# What is asked of every function


def _about(item: int, properties: Sequence[Property]) -> Properties:
    """Properties of the function at this place of an exercise with several."""
    return tuple(replace(prop, item=item) for prop in properties)


def _cases(label: str, draws: Sequence[Draw]) -> Cases:
    return lambda rng: [Case(label, (draw(rng),)) for draw in draws]


# 1 Softmax and mask


def softmax_and_mask_properties(shapes: Sequence[Shape], times: Sequence[int]) -> Properties:
    """Of row_softmax on values of these shapes, the first with two axes at least, and of causal_mask."""
    tables = [shape for shape in shapes if len(shape) > 1]

    def cases(rng: Generator) -> list[Case]:
        return [Case(f"values of shape {shape}", ((rng.normal(scale=2, size=shape),),)) for shape in shapes]

    softmax = (
        heads.rows_sum_to_one(shapes),
        matches(attention.row_softmax, cases, name="softmax equals its definition", lesson=heads.SOFTMAX_LESSON,
                meaning="exp(v_j) / sum_k exp(v_k), the sum over the last axis, whatever axes stand before it.",
                mistakes=WRONG_SOFTMAX, **CLOSE),
        heads.softmax_is_stable(tables),
        heads.masked_row_is_zero(tables),
        on_any_numbers(attention.row_softmax, lambda rng: (rng.normal(size=tables[0]),), heads.SOFTMAX_LESSON),
        behaves(attention.row_softmax, cases, heads.SOFTMAX_LESSON),
    )  # fmt: skip
    shown = heads.mask_shows_past_and_present(times)
    mask = replace(shown, mistakes=WRONG_MASK + WRONG_MASK_KIND), heads.mask_refuses_no_time()
    return *_about(0, softmax), *_about(1, mask)


# 2 One head, 4 many heads


def one_head_properties(plain: Sequence[Sizes], watched: Sequence[Sizes]) -> Properties:
    """Of single_head_attention; `watched` sizes have each position replaced in turn."""

    where = heads.CAUSAL_LESSON
    definition = heads.attention_equals_definition(plain)
    return (
        heads.attention_rows_sum_to_one(plain),
        heads.future_is_hidden(watched),
        heads.past_is_seen(watched),
        heads.scale_is_root_of_head_width(plain),
        replace(definition, mistakes=WRONG_SINGLE + WRONG_ATTENTION),
        _survives(attention.single_head_attention, plain),
        on_any_numbers(attention.single_head_attention, plain[0].draw, where),
        behaves(attention.single_head_attention, _cases(str(plain[0]), [plain[0].draw]), where),
    )


def many_heads_properties(plain: Sequence[Sizes], watched: Sequence[Sizes]) -> Properties:
    """Of multi_head_attention; `watched` sizes have each position replaced in turn."""
    definition = heads.attention_equals_definition(plain)
    return (
        heads.attention_rows_sum_to_one(plain),
        heads.future_is_hidden(watched),
        heads.past_is_seen(watched),
        heads.scale_is_root_of_head_width(plain),
        heads.heads_may_be_reordered([sizes for sizes in plain if sizes.heads > 1]),
        replace(definition, mistakes=WRONG_HEADS + WRONG_ATTENTION + WRONG_MULTI_HEAD),
        _survives(attention.multi_head_attention, plain),
        on_any_numbers(attention.multi_head_attention, plain[0].draw, heads.MULTI_HEAD_LESSON),
        behaves(attention.multi_head_attention, _cases(str(plain[0]), [plain[0].draw]), heads.MULTI_HEAD_LESSON),
    )


def _survives(reference: Callable, sizes: Sequence[Sizes]) -> Property:
    """Scores in the thousands, where a softmax that is not safe gives NaN."""

    def cases(rng: Generator) -> list[Case]:
        drawn = [(each, each.draw(rng)) for each in sizes]
        return [Case(f"{each}, scores in the thousands", ((60 * hidden, *rest),)) for each, (hidden, *rest) in drawn]

    meaning = "However large the scores, weights are finite: attention becomes a choice of one key, not NaN."
    where = heads.STABLE_LESSON
    return matches(reference, cases, name="large scores are survived", meaning=meaning, lesson=where,
                   mistakes=WRONG_LARGE, results=heads.result_names(False, bool(sizes[0].heads)), **LARGE)  # fmt: skip


# 3 Split and combine


def split_and_merge_properties(shapes: Sequence[Shape], refused: Sequence[Shape]) -> Properties:
    """Of split_heads and merge_heads, on shapes (T, d, h); h does not divide d in the refused ones."""
    time, width, count = shapes[0]

    def table(rng: Generator) -> tuple:
        return rng.normal(size=(time, width)), count

    def split(rng: Generator) -> tuple:
        return (rng.normal(size=(count, time, width // count)),)

    where = heads.HEADS_LESSON
    splitting = (
        replace(heads.heads_hold_neighbouring_features(shapes), mistakes=WRONG_SPLIT),
        heads.split_refuses_what_does_not_divide(refused),
        on_any_numbers(attention.split_heads, table, where),
        behaves(attention.split_heads, _cases(f"T = {time}, d = {width}, h = {count}", [table]), where),
    )
    merging = (
        replace(heads.heads_merge_back(shapes), mistakes=WRONG_MERGE),
        on_any_numbers(attention.merge_heads, split, where),
        behaves(attention.merge_heads, _cases(f"h = {count}, T = {time}, d_h = {width // count}", [split]), where),
    )
    return *_about(0, splitting), *_about(1, merging)


# 5 LayerNorm


def layer_norm_properties(shapes: Sequence[Shape]) -> Properties:
    """Of layer_norm, on values of these shapes (..., d)."""

    def affine(rng: Generator) -> tuple:
        width = shapes[0][-1]
        return rng.normal(0.4, 1.5, shapes[0]), rng.normal(1, 0.5, width), rng.normal(size=width)

    def tiny(rng: Generator) -> list[Case]:
        vectors = [(rng.normal(1, 0.5, shape[-1]), rng.normal(size=shape[-1])) for shape in shapes]
        calls = [(rng.normal(scale=0.003, size=shape), *both) for shape, both in zip(shapes, vectors, strict=True)]
        label = "values of shape {} and size 0.003, epsilon not given"
        return [Case(label.format(call[0].shape), (call,)) for call in calls]

    where = parts.NORM_LESSON
    return (
        replace(parts.each_row_standardised, cases=parts.layer_norm_cases(shapes)),
        replace(parts.each_position_normalised_alone, cases=parts.layer_norm_cases([s for s in shapes if len(s) > 1])),
        replace(parts.layer_norm_matches, cases=parts.affine_norm_cases(shapes)),
        replace(parts.constant_row_becomes_beta, cases=parts.constant_row_cases(shapes)),
        matches(block.layer_norm, tiny, name="epsilon is 1e-5 unless given", lesson=where, mistakes=WRONG_FORMULA,
                meaning="Among small values epsilon is no detail: it decides how far they are stretched.", **CLOSE),
        on_any_numbers(block.layer_norm, affine, where),
        behaves(block.layer_norm, _cases(f"values of shape {shapes[0]}", [affine]), where),
    )  # fmt: skip


# 6 MLP


def mlp_properties(shapes: Sequence[Shape], sizes: Sequence[tuple[Shape, int]]) -> Properties:
    """Of gelu on values of these shapes, and of feed_forward for (shape of values, d_ff)."""

    def far(rng: Generator) -> list[Case]:
        made = [rng.uniform(20, 90, shape) * rng.choice([-1, 1], shape) for shape in shapes]
        return [Case(f"values of shape {x.shape}, 20 to 90 in size", ((x,),)) for x in made]

    def layer(rng: Generator) -> tuple:
        shape, d_ff = sizes[0]
        return parts.feed_forward_cases([(shape, d_ff)])(rng)[0].calls[0]

    activation = (
        replace(parts.gelu_weighs_by_normal_probability, cases=parts.gelu_cases(shapes),
                mistakes=WRONG_GELU + WRONG_ACTIVATION),
        replace(parts.gelu_mirror_differs_by_x, cases=parts.gelu_cases(shapes), mistakes=WRONG_GELU + WRONG_ACTIVATION),
        matches(block.gelu, far, name="GELU far from zero", lesson=parts.GELU_LESSON, rtol=1e-4, atol=1e-4,
                meaning="Far below zero the gate is shut, far above it is open; nothing overflows on the way.",
                tolerance="1e-4: both forms have reached their limits", mistakes=WRONG_GELU),
        on_any_numbers(block.gelu, lambda rng: (rng.normal(size=shapes[0]),), parts.GELU_LESSON),
        behaves(block.gelu, parts.gelu_cases(shapes), parts.GELU_LESSON),
    )  # fmt: skip
    feed_forward = (
        replace(parts.feed_forward_matches, cases=parts.feed_forward_cases(sizes)),
        replace(parts.each_position_fed_alone, cases=parts.feed_forward_cases([s for s in sizes if len(s[0]) > 1])),
        on_any_numbers(block.feed_forward, layer, parts.FEED_FORWARD_LESSON),
        behaves(block.feed_forward, _cases(f"values of shape {sizes[0][0]}", [layer]), parts.FEED_FORWARD_LESSON),
    )
    return *_about(0, activation), *_about(1, feed_forward)


# 7 Residuals


def block_properties(sizes: Sequence[parts.BlockSize], watched: Sequence[parts.BlockSize]) -> Properties:
    """Of decoder_block for sizes (T, d, d_ff, h); `watched` ones have each position replaced in turn."""

    def one(rng: Generator) -> tuple:
        return parts.block_cases(sizes[:1])(rng)[0].calls[0]

    where = parts.BLOCK_LESSON
    silent = parts.block_cases(sizes, silent_attention=True, silent_feed_forward=True)
    return (
        replace(parts.zero_sublayers_leave_identity, cases=silent),
        replace(parts.residual_reads_unnormalised_input, cases=parts.block_cases(sizes, silent_feed_forward=True)),
        replace(parts.no_later_position_is_read, cases=parts.intervention_cases(watched)),
        replace(parts.decoder_block_matches, cases=parts.block_cases(sizes), mistakes=WRONG_BLOCK + WRONG_AFFINE),
        on_any_numbers(block.decoder_block, one, where),
        behaves(block.decoder_block, parts.block_cases(sizes[:1]), where),
    )


# 8 Causality and position


def batch_and_rope_properties(
    plain: Sequence[Sizes], watched: Sequence[Sizes], shapes: Sequence[Shape], bases: Sequence[float]
) -> Properties:
    """Of batched_multi_head_attention, and of rope on values of these shapes (..., T, d_h)."""

    def anywhere(rng: Generator) -> list[Case]:
        made = [(shape, rng.normal(size=shape), rng.permutation(60)[: shape[-2]]) for shape in shapes]
        return [Case(f"values of shape {shape}, positions in any order", ((x, at),)) for shape, x, at in made]

    def turned(rng: Generator) -> tuple:
        return rng.normal(size=shapes[0]), np.arange(3, 3 + shapes[0][-2]), 100.0

    batched, where = attention.batched_multi_head_attention, heads.BATCH_LESSON
    definition = heads.attention_equals_definition(plain)
    batch = (
        heads.future_is_hidden(watched),
        heads.past_is_seen(watched),
        heads.sequences_are_separate(watched),
        replace(definition, mistakes=WRONG_BATCH + WRONG_ATTENTION + WRONG_MULTI_HEAD),
        heads.batch_refuses_other_shapes(),
        on_any_numbers(batched, plain[0].draw, where),
        behaves(batched, _cases(str(plain[0]), [plain[0].draw]), where),
    )
    where = heads.POSITION_LESSON
    exact = heads.rotation_equals_definition(shapes, bases)
    rotation = (
        heads.rotation_keeps_lengths(shapes),
        heads.rotation_depends_on_distance_only(sorted({shape[-1] for shape in shapes})),
        replace(exact, mistakes=WRONG_ROPE + WRONG_POSITIONS),
        matches(attention.rope, anywhere, name="positions need not be in order", lesson=where, rtol=0, atol=1e-4,
                meaning="A row turns by its own position, given and not counted; the base is 10000 unless given.",
                tolerance="1e-4: float32 angles of a few dozen radians are good to 1e-5", mistakes=WRONG_ROPE),
        on_any_numbers(attention.rope, turned, where),
        behaves(attention.rope, _cases(f"values of shape {shapes[0]}", [turned]), where),
    )  # fmt: skip
    return *_about(0, batch), *_about(1, rotation)


# 9 From ids to logits


def transformer_properties(sizes: Sequence[losses.ModelSize], watched: Sequence[losses.ModelSize]) -> Properties:
    """Of tiny_transformer_forward for sizes (T, V, context, d, d_ff, h, blocks)."""

    def silent(rng: Generator) -> list[Case]:
        made = losses.tiny_transformer_cases(sizes)(rng)
        return [Case(f"{case.label}, silent blocks", (_silence(*case.calls[0]),)) for case in made]

    def interventions(rng: Generator) -> list[Case]:
        made = losses.tiny_transformer_cases(watched)(rng)
        return [Case(f"{case.label}, every token replaced in turn", _replaced(*case.calls[0])) for case in made]

    def one(rng: Generator) -> tuple:
        return losses.tiny_transformer_cases(sizes[:1])(rng)[0].calls[0]

    where = losses.LOGITS_LESSON
    reference, mistakes = block.tiny_transformer_forward, WRONG_LOGITS + WRONG_MODEL
    return (
        matches(reference, silent, name="silent blocks leave the embeddings", lesson=where, mistakes=mistakes, **CLOSE,
                meaning="Blocks that add nothing let token and position embeddings through to the projection."),
        replace(losses.tiny_transformer_matches, cases=losses.tiny_transformer_cases(sizes), mistakes=mistakes),
        Property("no logits depend on a later token", "Replacing a token changes logits there and later, never before.",
                 interventions, _judge_tokens, parts.ROUNDING, where, mistakes),
        on_any_numbers(reference, one, where),
        behaves(reference, losses.tiny_transformer_cases(sizes), where),
    )  # fmt: skip


def _silence(token_ids, tokens, positions, blocks, projection, count) -> tuple:
    quiet = [((*a[:5], 0 * a[5]), (*f[:4], 0 * f[4], 0 * f[5])) for a, f in blocks]
    return token_ids, tokens, positions, quiet, projection, count


def _replaced(token_ids, tokens, *rest) -> tuple[tuple, ...]:
    others = [token_ids.copy() for _ in token_ids]
    for place, ids in enumerate(others):
        ids[place] = (ids[place] + 1) % len(tokens)
    return tuple((ids, tokens, *rest) for ids in (token_ids, *others))


def _judge_tokens(case: Case, values: list) -> str | None:
    shape = (len(case.calls[0][0]), case.calls[0][4].shape[1])
    original, *others = (parts.numbers(value, shape) for value in values)
    for place, changed in enumerate(others):
        moved = (np.abs(changed - original) > parts.TOLERANCE).any(axis=-1)
        if moved[:place].any():
            return f"replacing the token at position {place} changed the logits at position {np.argmax(moved)}"
        if not moved[place:].all():
            missed = place + int(np.argmin(moved[place:]))
            return f"replacing the token at position {place} left the logits at position {missed} unchanged"
    return None


# 10 The loss


def loss_properties(sizes: Sequence[losses.LossSize], batches: Sequence[tuple[int, int, int]]) -> Properties:
    """Of masked_cross_entropy for (leading shape, V), and for batches (B, T, V) that it must overfit."""

    def one(rng: Generator) -> tuple:
        return losses.loss_cases(sizes[:1])(rng)[0].calls[0]

    def overfitting(rng: Generator) -> list[Case]:
        made = []
        for batch, time, vocabulary in batches:
            ids = np.stack([rng.permutation(np.resize(np.arange(vocabulary), time + 1)) for _ in range(batch)])
            ids[0, -1] = vocabulary - 1  # the largest id tells how many there are
            kept = np.ones((batch, time), dtype=bool)
            kept[0, 0] = kept[-1, -1] = False
            context = np.eye(batch * time).reshape(batch, time, -1)[..., rng.permutation(batch * time)]
            call = (context, ids, kept, 3.0 * kept.sum(), 8)
            made.append(Case(f"B = {batch}, T = {time}, V = {vocabulary}", (call,), "training.overfit", kept))
        return made

    where = losses.LOSS_LESSON
    return (
        replace(losses.masked_loss_matches, cases=losses.loss_cases(sizes), mistakes=WRONG_LOSS + WRONG_MEAN),
        replace(losses.uniform_logits_cost_ln_vocabulary, cases=losses.uniform_cases(sizes)),
        replace(losses.padding_changes_nothing, cases=losses.padded_cases(sizes)),
        replace(losses.labels_shifted_once, cases=losses.sure_cases(sizes)),
        replace(losses.nothing_kept_costs_nothing, cases=losses.nothing_kept_cases(sizes)),
        replace(losses.loss_survives_large_logits, cases=losses.loss_cases(sizes, scale=2000.0)),
        Property("descending it overfits one tiny batch",
                 "A projection that follows the loss downhill learns the next token at every kept position.",
                 overfitting, _judge_overfit, "below 0.2 nats from ln V: eight long steps on a convex loss", where),
        on_any_numbers(block.masked_cross_entropy, one, where),
        behaves(block.masked_cross_entropy, losses.loss_cases(sizes), where),
    )  # fmt: skip


def _judge_overfit(case: Case, values: list) -> str | None:
    ((_, ids, kept, *_),), trained = case.calls, values[0]
    first, last = (float(parts.numbers(trained[name], ())) for name in ("first", "last"))
    if not abs(first - math.log(ids.max() + 1)) < 1e-3:
        return f"the loss should start at ln V, it started at {first:.3g}"
    wrong = (np.asarray(trained["answers"]) != ids[:, 1:]) & kept
    if wrong.any():
        return f"after the last step the label at {np.argwhere(wrong)[0].tolist()} is not the most likely token"
    return None if last < 0.2 else f"the loss should come near 0, it ended at {last:.3g}"


# What a student sees

EXERCISES = (
    PublicExercise(
        "P4.4",
        "row_softmax, causal_mask",
        softmax_and_mask_properties([(3, 4), (5,), (2, 3, 5)], (1, 2, 5)),
        (
            (
                "rows do not sum to one, or shapes do not fit",
                "Sum over the last axis and keep it: `axis=-1, keepdims=True`.\n"
                "Then each row meets its own sum, whatever axes stand before it.",
            ),
            (
                "NaN or infinity comes for large values",
                "Adding a number to a whole row changes no weight of it. Which number, subtracted first,\n"
                "makes the largest exponent 0? Each row needs its own.",
            ),
            (
                "NaN comes for a row of nothing but -inf",
                "-inf - (-inf) is NaN, and so is 0 / 0. Replace a peak of -inf by 0\n"
                "before you subtract it, and a sum of 0 by 1 before you divide: np.where does both.",
            ),
        ),
    ),
    PublicExercise(
        "P4.5",
        "single_head_attention",
        one_head_properties(
            [Sizes(5, 6, head_width=4, value_width=3), Sizes(4, 7, head_width=3)], [Sizes(4, 5, head_width=3)]
        ),
        (
            (
                "a later position changes an earlier output",
                "Hide the future in the scores, with -inf, before the softmax: np.where(mask, scores, -np.inf).",
            ),
            (
                "the divisor is wrong",
                "The root of how many products each score sums: the last axis of the queries,\nnot d and not T.",
            ),
            (
                "a result is missing or in the wrong place",
                "In order: query, key, value; scores (T, T); masked; weights; attended = weights @ value;\n"
                "output = attended @ wo. Return output, weights, attended.",
            ),
        ),
    ),
    PublicExercise(
        "P4.6",
        "split_heads, merge_heads",
        split_and_merge_properties([(5, 6, 2), (4, 15, 3)], [(5, 6, 4), (3, 5, 2)]),
        (
            (
                "the shape is right and the numbers are not",
                "reshape(h, T, d_h) reads the numbers in the order in which they lie in\n"
                "memory and cuts time into heads. Cut the width first, then move an axis.",
            ),
            (
                "a head holds every h-th feature",
                "After reshape(T, h, d_h) head k holds neighbours. reshape(T, d_h, h) spreads them.",
            ),
            (
                "merging does not bring the input back",
                "Undo the steps in reverse order: first move the head axis back behind time,\n"
                "then reshape (T, h, d_h) to (T, h * d_h).",
            ),
        ),
    ),
    PublicExercise(
        "P4.7",
        "multi_head_attention",
        many_heads_properties([Sizes(5, 6, heads=2), Sizes(4, 15, heads=3)], [Sizes(4, 6, heads=3)]),
        (
            (
                "shapes do not fit",
                "Project first, (T, d) @ (d, d), then split: query, key and value are (h, T, d_h) each. With\n"
                "`@` and swapaxes(-2, -1) all heads go through one product; `.T` would turn all axes round.",
            ),
            ("the divisor is wrong", "Scores sum d_h products, not d: the root of d / h."),
            (
                "the output is not what its weights average",
                "Merge the heads side by side, (T, d), and only then multiply by wo.\n"
                "Return output, weights and the merged heads before wo.",
            ),
        ),
    ),
    PublicExercise(
        "P4.8",
        "layer_norm",
        layer_norm_properties([(4, 6), (2, 3, 5)]),
        (
            (
                "positions influence one another",
                "Mean and variance are taken over the features of one position: axis=-1,\nkeepdims=True.",
            ),
            (
                "the variance comes out a little too small or too large",
                "Divide by d, not d - 1, and add epsilon to the\nvariance, inside the root.",
            ),
            (
                "gamma and beta stand in the wrong place",
                "First (x - mean) / sqrt(variance + epsilon), then gamma times that, then plus beta.",
            ),
        ),
    ),
    PublicExercise(
        "P4.9",
        "gelu, feed_forward",
        mlp_properties([(9,), (2, 3, 5)], [((3, 4), 7), ((2, 3, 5), 8)]),
        (
            (
                "GELU looks like another function",
                "GELU(x) is x times P(Z <= x): -0.159 at -1, 0 at 0, 0.841 at 1. Compare three points by hand.",
            ),
            (
                "GELU is close, not equal",
                "0.5 x (1 + tanh(c (x + 0.044715 x^3))), with c the root of 2 / pi. Mind the cube and\nthe brackets.",
            ),
            (
                "feed_forward is off",
                "One linear map with its bias, GELU on all of that, a second linear map with its bias. Nothing\n"
                "else: norm and residual belong to the block.",
            ),
        ),
    ),
    PublicExercise(
        "P4.10",
        "decoder_block",
        block_properties(parts.BLOCK_SIZES, parts.BLOCK_SIZES[:1]),
        (
            (
                "silent sublayers do not leave the input alone",
                "Each sublayer's result is added to the stream.\n"
                "The stream itself is never normalised and never replaced.",
            ),
            (
                "stretching rows changes what attention adds",
                "Attention reads layer_norm(values, gamma1, beta1); its output is added to values.",
            ),
            (
                "the last numbers are off",
                "The second sublayer starts from the sum of the first: y = x + attention(norm1(x)), and then\n"
                "y + feed_forward(norm2(y)). multi_head_attention returns three things; you need the first.",
            ),
        ),
    ),
    PublicExercise(
        "P4.11",
        "batched_multi_head_attention, rope",
        batch_and_rope_properties(
            [Sizes(5, 12, heads=3, batch=2), Sizes(4, 10, heads=2, batch=3)],
            [Sizes(3, 4, heads=2, batch=2)],
            [(5, 6), (2, 3, 4)],
            (10000.0, 50.0),
        ),
        (
            (
                "sequences see one another",
                "The batch is one more leading axis, or a loop: no reshape may join it with time.\n"
                "Heads come out as (B, h, T, d_h), weights as (B, h, T, T).",
            ),
            (
                "pairs change their length",
                "Pairs are neighbours, values[..., 0::2] and values[..., 1::2]. Turning (a, b) by an angle\n"
                "gives (a cos - b sin, a sin + b cos), both from the old a and b.",
            ),
            (
                "products do not depend on the distance alone",
                "Pair p at position m turns by m * base ** (-2p / d_h) with\n"
                "p = 0, 1, ...: np.arange(0, d_h, 2) is 2p already. Put each turned pair back where it was.",
            ),
        ),
    ),
    PublicExercise(
        "P4.12",
        "tiny_transformer_forward",
        transformer_properties([(4, 9, 6, 6, 10, 3, 2), (5, 11, 5, 4, 7, 2, 1)], [(4, 9, 6, 6, 10, 3, 2)]),
        (
            (
                "shapes do not fit at the start",
                "token_embedding[token_ids] picks one row per token, (T, d). The table of positions may be\n"
                "longer than the sequence: its first T rows are needed.",
            ),
            (
                "one block too few, or the wrong one",
                "Each block reads what the one before it returned: reassign the stream in the loop,\n"
                "and unpack each block's own two tuples.",
            ),
            (
                "the logits are off",
                "After the last block comes the projection and nothing else: no norm, no softmax, no tied table.",
            ),
        ),
    ),
    PublicExercise(
        "P4.13",
        "masked_cross_entropy",
        loss_properties([((4,), 5), ((2, 3), 7)], [(2, 3, 4)]),
        (
            (
                "the loss of equal logits is not ln V",
                "It is minus the logarithm of the label's own probability, averaged over the positions kept:\n"
                "divide by their number, not by all.",
            ),
            (
                "infinity or NaN comes for large logits",
                "Never take the logarithm of a softmax. With the largest logit subtracted,\n"
                "log p = shifted - log(sum(exp(shifted))) is safe.",
            ),
            (
                "labels do not seem to fit",
                "They are shifted already: labels[t] belongs to logits[t]. Select what is kept first\n"
                "(logits[mask], labels[mask]), and return 0.0 if nothing is.",
            ),
        ),
    ),
)
