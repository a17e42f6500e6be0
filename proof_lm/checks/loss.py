"""What is to be proved of the way from token ids to logits and from logits to the masked loss."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from proof_lm.block import masked_cross_entropy, tiny_transformer_forward
from proof_lm.checks.block import ROUNDING, TOLERANCE, Shape, block_weights, numbers
from proof_lm.checks.block_mistakes import WRONG_LOGITS, WRONG_LOSS
from proof_lm.checks.core import Case, Property
from proof_lm.checks.general import Cases, matches

LOGITS_LESSON = "lesson 03, From block to logits"

# Logits -------------------------------------------------------------------------------------------------

ModelSize = tuple[int, int, int, int, int, int, int]  # T, V, context, d, d_ff, heads, blocks


def tiny_transformer_cases(
    sizes: Sequence[ModelSize] = ((4, 9, 6, 6, 10, 3, 2), (5, 11, 5, 4, 7, 2, 1)),
) -> Cases:
    """Random token ids, one of them twice, through a random model."""

    def cases(rng: Generator) -> list[Case]:
        made = []
        for time, vocabulary, context, d, d_ff, heads, blocks in sizes:
            token_ids = rng.permutation(np.resize(rng.permutation(vocabulary)[: time - 1], time))
            tables = [rng.normal(size=(rows, d)) for rows in (vocabulary, context)]
            stack = [block_weights(rng, d, d_ff) for _ in range(blocks)]
            call = (token_ids, *tables, stack, rng.normal(size=(d, vocabulary)), heads)
            made.append(Case(f"T = {time}, V = {vocabulary}, d = {d}, blocks = {blocks}", (call,)))
        return made

    return cases


tiny_transformer_matches = matches(
    tiny_transformer_forward,
    tiny_transformer_cases(),
    name="embed, add positions, pass the blocks, project",
    meaning="Token embeddings plus the first T positions, through every block in order, then to V logits.",
    rtol=5e-3,
    atol=5e-2,
    tolerance="5e-2 on logits of size 3: exact GELU in two blocks is accepted",
    lesson=LOGITS_LESSON,
    mistakes=WRONG_LOGITS,
)


# Loss ---------------------------------------------------------------------------------------------------

LOSS_LESSON = "lesson 03, One number to push down"
LossSize = tuple[Shape, int]  # leading shape, V
LOSS_SIZES: tuple[LossSize, ...] = (((4,), 5), ((2, 3), 7))


def _some(rng: Generator, shape: Shape) -> NDArray:
    """A random mask for T >= 3 that hides something in every sequence, and not equally much in neighbours."""
    *leading, time = shape
    kept = 1 + (np.arange(math.prod(leading)) + rng.integers(time)) % (time - 1)
    order = rng.permuted(np.tile(np.arange(time), (len(kept), 1)), axis=1)
    return (order < kept[:, None]).reshape(shape)


def loss_cases(sizes: Sequence[LossSize] = LOSS_SIZES, scale: float = 2.0) -> Cases:
    """Random logits of that scale, labels and mask."""

    def cases(rng: Generator) -> list[Case]:
        made = []
        for shape, size in sizes:
            logits, labels = rng.normal(scale=scale, size=(*shape, size)), rng.integers(size, size=shape)
            call = (logits, labels, _some(rng, shape))
            made.append(Case(f"logits of shape {(*shape, size)}, a part of them kept", (call,)))
        return made

    return cases


def uniform_cases(sizes: Sequence[LossSize] = LOSS_SIZES) -> Cases:
    """Equal logits, once with all positions kept and once with a part of them."""

    def cases(rng: Generator) -> list[Case]:
        made = []
        for shape, size in sizes:
            logits, labels = np.full((*shape, size), rng.normal()), rng.integers(size, size=shape)
            calls = tuple((logits, labels, mask) for mask in (np.ones(shape, bool), _some(rng, shape)))
            made.append(Case(f"equal logits of shape {(*shape, size)}", calls, facts=math.log(size)))
        return made

    return cases


def padded_cases(sizes: Sequence[LossSize] = LOSS_SIZES) -> Cases:
    """Logits, labels and mask; then the same with masked steps of arbitrary numbers appended."""

    def cases(rng: Generator) -> list[Case]:
        made = []
        for shape, size in sizes:
            longer = (*shape[:-1], shape[-1] + int(rng.integers(1, 4)))
            logits, labels = rng.normal(scale=9.0, size=(*longer, size)), rng.integers(size, size=longer)
            mask = np.zeros(longer, bool)
            mask[..., : shape[-1]] = _some(rng, shape)
            short = tuple(array[..., : shape[-1]] for array in (labels, mask))
            calls = (logits[..., : shape[-1], :], *short), (logits, labels, mask)
            made.append(Case(f"T = {shape[-1]}, then {longer[-1]} with padding, V = {size}", calls))
        return made

    return cases


def sure_cases(sizes: Sequence[LossSize] = LOSS_SIZES) -> Cases:
    """Logits that are sure of the label at their own index; neighbours have different labels."""

    def cases(rng: Generator) -> list[Case]:
        made = []
        for shape, size in sizes:
            labels = (np.cumsum(rng.integers(1, size, shape), axis=-1)) % size
            call = (40.0 * np.eye(size)[labels], labels, np.ones(shape, bool))
            made.append(Case(f"logits of shape {(*shape, size)}, sure of the label", (call,)))
        return made

    return cases


def nothing_kept_cases(sizes: Sequence[LossSize] = LOSS_SIZES) -> Cases:
    """Random logits and labels under a mask that hides everything."""

    def cases(rng: Generator) -> list[Case]:
        made = []
        for shape, size in sizes:
            call = (rng.normal(size=(*shape, size)), np.zeros(shape, int), np.zeros(shape, bool))
            made.append(Case(f"logits of shape {(*shape, size)}, nothing kept", (call,)))
        return made

    return cases


def _loss(value: Any) -> float:
    return float(numbers(value, ()))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.generic, np.ndarray)) and np.shape(value) == ()


def _judge_uniform(case: Case, values: list) -> str | None:
    right = [abs(_loss(value) - case.facts) <= TOLERANCE for value in values]
    if all(right):
        return None
    which = "all positions" if not right[0] else "a part of the positions"
    return f"ln V was expected with {which} kept, {_loss(values[right.index(False)]):.3g} came"


def _judge_padding(case: Case, values: list) -> str | None:
    plain, padded = map(_loss, values)
    if abs(plain - padded) <= TOLERANCE * (1 + abs(plain)):
        return None
    return f"{plain:.3g} without padding and {padded:.3g} with it; the same loss was expected"


def _judge_large(case: Case, values: list) -> str | None:
    ((logits, labels, mask),) = case.calls
    if _is_number(values[0]) and not np.isfinite(values[0]):
        why = "exp of a large logit overflows, and the logarithm of a share that became 0 is -inf"
        return f"{values[0]:g} came: {why}; log p is shifted - log(sum(exp(shifted))), each row less its own largest logit"
    came, wanted = _loss(values[0]), masked_cross_entropy(logits, labels, mask)
    if abs(came - wanted) <= TOLERANCE * (1 + wanted):
        return None
    if 0 < came < wanted:
        return f"{came:.3g} came, too small: has a probability a floor, as in log(p + 1e-9)? That hides how wrong it is"
    return f"another loss was expected, {came:.3g} came"


def _judge_zero(case: Case, values: list) -> str | None:
    return None if abs(_loss(values[0])) <= TOLERANCE else f"0 was expected, {_loss(values[0]):.3g} came"


def _judge_nothing(case: Case, values: list) -> str | None:
    if _is_number(values[0]) and np.isnan(values[0]):
        return "NaN came: no position is kept, and a mean over nothing is 0 / 0; return 0.0 before you divide"
    return _judge_zero(case, values)


uniform_logits_cost_ln_vocabulary = Property(
    "equal logits cost ln V, however many tokens are kept",
    "A model that knows nothing pays ln V for each token; the mean over the kept ones is ln V again.",
    uniform_cases(),
    _judge_uniform,
    ROUNDING,
    LOSS_LESSON,
    WRONG_LOSS,
)
padding_changes_nothing = Property(
    "padding changes nothing",
    "Steps that the mask hides may hold any numbers and any labels.",
    padded_cases(),
    _judge_padding,
    "1e-5 of the loss: the order of summation may differ",
    LOSS_LESSON,
    WRONG_LOSS,
)
labels_shifted_once = Property(
    "labels are shifted once, by the caller",
    "labels[t] is the answer to logits[t]: a model that is sure of it there pays nothing.",
    sure_cases(),
    _judge_zero,
    ROUNDING,
    LOSS_LESSON,
    WRONG_LOSS,
)
nothing_kept_costs_nothing = Property(
    "a mask without True costs 0",
    "A mean over nothing has no value; 0 keeps NaN out of everything that shares the weights.",
    nothing_kept_cases(),
    _judge_nothing,
    ROUNDING,
    LOSS_LESSON,
)
loss_survives_large_logits = Property(
    "the loss survives large logits",
    "Only differences of logits matter, so thousands must neither overflow nor be cut off.",
    loss_cases(scale=2000.0),
    _judge_large,
    ROUNDING,
    LOSS_LESSON,
    WRONG_LOSS,
)
masked_loss_matches = matches(
    masked_cross_entropy,
    loss_cases(),
    name="the loss is the mean surprise of the kept tokens",
    meaning="The mean of -log softmax(logits)[label] over the positions where loss_mask is True.",
    rtol=TOLERANCE,
    atol=TOLERANCE,
    tolerance=ROUNDING,
    lesson=LOSS_LESSON,
    mistakes=WRONG_LOSS,
)
