"""P5.1: next-token targets and the masked loss with its gradient."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from proof_lm.checks.core import Case, Mistake, Property, difference, kind, own_answers
from proof_lm.checks.general import Cases, behaves, matches, on_any_numbers, refuses
from proof_lm.checks.p5.manners import CLOSE, about, one_of
from proof_lm.probes import Answer

LESSON = "lesson 07, Shifted targets and the masked loss"
Shape = tuple[int, ...]


def shifted_targets(tokens: ArrayLike, loss_mask: ArrayLike) -> tuple[NDArray, NDArray, NDArray]:
    """tokens and loss_mask (..., T) -> inputs, labels and kept, (..., T - 1) each."""
    tokens, loss_mask = np.asarray(tokens), np.asarray(loss_mask, dtype=bool)
    if tokens.shape[-1] < 2:
        raise ValueError(f"tokens: at least two are needed, got {tokens.shape[-1]}")
    return tokens[..., :-1], tokens[..., 1:], loss_mask[..., 1:]


@dataclass(frozen=True)
class Loss:
    """masked_loss: the right way unless told otherwise. Numbers by which to divide are "kept", "all", "rows", "none"."""

    mean: str = "kept"
    gradient_mean: str = "kept"
    inverted: bool = False
    base2: bool = False
    one_hot: float = 1.0
    sign: float = 1.0
    everywhere: bool = False  # the gradient of hidden positions is not zero
    masked: bool = True
    stable: str = "row"  # what is subtracted before the exponential: the largest of each "row", of the "batch", "nothing"
    logarithm: str = "of the sum"  # "of shares"

    def __call__(self, logits: ArrayLike, labels: ArrayLike, kept: ArrayLike) -> tuple[float, NDArray]:
        """logits (..., V), labels and kept (...) -> loss, gradient (..., V)."""
        logits, labels, kept = np.asarray(logits, dtype=float), np.asarray(labels), np.asarray(kept, dtype=bool)
        kept = ~kept if self.inverted else kept if self.masked else np.ones_like(kept)
        labels = np.where((labels < 0) | (labels >= logits.shape[-1]), 0, labels)
        shifted = logits - {"row": logits.max(axis=-1, keepdims=True), "batch": logits.max(), "nothing": 0}[self.stable]
        powers = np.exp(shifted)
        total = powers.sum(axis=-1, keepdims=True)
        log_probability = np.log(powers / total) if self.logarithm == "of shares" else shifted - np.log(total)
        surprise = -np.take_along_axis(log_probability, labels[..., None], axis=-1)[..., 0]
        surprise = surprise / np.log(2) if self.base2 else surprise
        error = np.exp(log_probability) - self.one_hot * np.eye(logits.shape[-1])[labels]
        shown = np.ones_like(kept) if self.everywhere else kept
        gradient = self.sign * error * (shown * _weights(kept, self.gradient_mean))[..., None]
        return float((surprise * kept * _weights(kept, self.mean)).sum()), gradient


def _weights(kept: NDArray, mean: str) -> NDArray:
    """What each position counts for."""
    if mean == "rows":
        full = np.maximum(kept.any(axis=-1).sum(), 1)
        return np.ones(kept.shape) / np.maximum(kept.sum(axis=-1, keepdims=True), 1) / full
    number = {"kept": max(kept.sum(), 1), "kept, or 0": kept.sum(), "all": kept.size, "none": 1}[mean]
    return np.ones(kept.shape) / number


masked_loss = Loss()

RESULTS = ("loss", "gradient")

WRONG_SHIFT = (
    Mistake(
        "not shifted",
        "labels are the inputs themselves: the label of a token is the one after it, tokens[..., 1:]",
        lambda tokens, mask: (tokens[..., :-1], tokens[..., :-1], mask[..., :-1]),
    ),
    Mistake(
        "shifted backwards",
        "inputs and labels are swapped: the model would be asked for the token before",
        lambda tokens, mask: (tokens[..., 1:], tokens[..., :-1], mask[..., :-1]),
    ),
    Mistake(
        "inputs whole",
        "the inputs have a token too many: the last one has no successor here, so leave it out",
        lambda tokens, mask: (tokens, tokens[..., 1:], mask[..., 1:]),
    ),
    Mistake(
        "rolled",
        "the labels were rolled round: the last token would be asked for the first one; cut instead of rolling",
        lambda tokens, mask: (tokens, np.roll(tokens, -1, axis=-1), np.roll(mask, -1, axis=-1)),
    ),
    Mistake(
        "shifted by two",
        "labels are two tokens ahead: inputs and labels overlap in all but one token",
        lambda tokens, mask: (tokens[..., :-2], tokens[..., 2:], mask[..., 2:]),
    ),
    Mistake(
        "first axis",
        "the first axis was cut, which is the batch: time is the last one, [..., 1:]",
        lambda tokens, mask: (tokens[:-1], tokens[1:], mask[1:]),
    ),
)
WRONG_KEPT = (
    Mistake(
        "mask of the inputs",
        "the mask was cut like the inputs: it says which tokens are asked for, so it moves with the labels",
        lambda tokens, mask: (tokens[..., :-1], tokens[..., 1:], mask[..., :-1]),
    ),
    Mistake(
        "mask whole",
        "the mask has an entry too many: it is cut like the labels",
        lambda tokens, mask: (tokens[..., :-1], tokens[..., 1:], mask),
    ),
    Mistake(
        "mask inverted",
        "the mask is inverted: True means that the token counts",
        lambda tokens, mask: (tokens[..., :-1], tokens[..., 1:], ~mask[..., 1:]),
    ),
    Mistake(
        "both masks",
        "a position counts if its label is asked for, whether or not its input is",
        lambda tokens, mask: (tokens[..., :-1], tokens[..., 1:], mask[..., 1:] & mask[..., :-1]),
    ),
    Mistake(
        "all kept",
        "the argument loss_mask has no effect: all positions count",
        lambda tokens, mask: (tokens[..., :-1], tokens[..., 1:], np.ones_like(mask[..., 1:])),
    ),
)
WRONG_LOSS = (
    Mistake("mean over all", "the sum was divided by all positions: divide by the number kept", Loss(mean="all")),
    Mistake("sum", "the sum came: divide it by the number of kept positions", Loss(mean="none")),
    Mistake(
        "mean of means",
        "each sequence was averaged first: tokens of short ones count too much; average once, over all kept tokens",
        Loss(mean="rows"),
    ),
    Mistake("inverted", "the mask is inverted: True means that the position counts", Loss(inverted=True)),
    Mistake(
        "mask ignored", "the argument kept has no effect: hidden positions count too", Loss(masked=False, mean="all")
    ),
    Mistake("bits", "the loss is in bits: use the natural logarithm", Loss(base2=True)),
)
WRONG_GRADIENT = (
    Mistake(
        "not divided",
        "the gradient is that of the sum: the loss is a mean, so its gradient is divided by the number kept too",
        Loss(gradient_mean="none"),
    ),
    Mistake(
        "over all", "the gradient was divided by all positions: divide by the number kept", Loss(gradient_mean="all")
    ),
    Mistake("rows", "each sequence was averaged first: divide by all that is kept", Loss(gradient_mean="rows")),
    Mistake(
        "everywhere",
        "hidden positions have a gradient: they are not part of the loss, so theirs is zero",
        Loss(everywhere=True),
    ),
    Mistake("softmax alone", "the probabilities came: subtract 1 at each label", Loss(one_hot=0.0)),
    Mistake(
        "sign",
        "the sign is the wrong way round: a loss falls when the label's own logit grows",
        Loss(sign=-1.0),
    ),
    Mistake("mask ignored", "the argument kept has no effect", Loss(masked=False, gradient_mean="all")),
)


WRONG_NOTHING = (
    Mistake(
        "nothing over nothing",
        "where nothing is kept, the sum over nothing was divided by a count of 0: divide by 1 at least",
        Loss(mean="kept, or 0", gradient_mean="kept, or 0"),
    ),
)
WRONG_LARGE = (
    Mistake(
        "not shifted",
        "the exponential overflows: subtract each row's largest logit first, which changes no probability",
        Loss(stable="nothing"),
    ),
    Mistake(
        "shifted by the batch's largest",
        "the largest logit of the whole batch was subtracted, so that other rows vanish: take each row's own",
        Loss(stable="batch"),
    ),
    *(
        Mistake(
            "logarithm of a share",
            "the logarithm was taken of a probability that rounds to 0: ln softmax is logit - largest - ln(sum of exp)",
            Loss(logarithm="of shares", stable=stable),
        )
        for stable in ("row", "nothing")
    ),
)


def target_properties(shapes: Sequence[Shape]) -> tuple[Property, ...]:
    """Of shifted_targets on tokens of these shapes (..., T)."""

    def cases(rng: Generator) -> list[Case]:
        made = []
        for shape in shapes:
            tokens = rng.integers(100, size=shape)
            for name, mask in (("some tokens count", _some(rng, shape)), ("all count", np.ones(shape, dtype=bool))):
                made.append(Case(f"tokens of shape {shape}, {name}", ((tokens, mask),)))
        return made

    def short(rng: Generator) -> list[Case]:
        calls = [(rng.integers(9, size=shape), np.ones(shape, dtype=bool)) for shape in ((1,), (3, 1))]
        return [Case(f"tokens of shape {call[0].shape}", (call,)) for call in calls]

    def one(rng: Generator) -> tuple:
        return rng.integers(50, size=shapes[-1]), _some(rng, shapes[-1])

    return about(0, (
        Property("every token's label is the token after it",
                 "Inputs are all tokens but the last, labels all but the first: position t is asked for token t + 1.",
                 cases, _labels_right, "exact", LESSON, WRONG_SHIFT),
        Property("the mask moves with the labels",
                 "loss_mask says which tokens are asked for; token t + 1 is the label of position t.",
                 cases, _kept_right, "exact", LESSON, (*WRONG_KEPT, *WRONG_SHIFT)),
        refuses(short, error="ValueError", name="a single token is refused", lesson=LESSON,
                meaning="One token has no successor: nothing could be learned, so ValueError is raised."),
        on_any_numbers(shifted_targets, one, LESSON),
        behaves(shifted_targets, lambda rng: cases(rng)[:1], LESSON),
    ))  # fmt: skip


def _labels_right(case: Case, values: list) -> str | None:
    """Inputs everywhere, labels where the mask asks for them: elsewhere they may be any filler."""
    result, (inputs, labels, kept) = values[0], shifted_targets(*case.calls[0])
    if not isinstance(result, (tuple, list)) or len(result) != 3:
        return f"inputs, labels and kept were expected, {kind(result)} came"
    given = np.asarray(result[1])
    if given.shape == labels.shape and given.dtype.kind in "iu":
        given = np.where(kept, given, labels)
    for name, value, wanted in (("inputs", np.asarray(result[0]), inputs), ("labels", given, labels)):
        text = difference(value, wanted, 0, 0)
        if text or value.dtype.kind not in "iu":
            return f"{name}: {text or f'whole numbers were expected, {value.dtype} came'}"
    return None


def _kept_right(case: Case, values: list) -> str | None:
    result, (_, _, kept) = values[0], shifted_targets(*case.calls[0])
    if not isinstance(result, (tuple, list)) or len(result) != 3:
        return f"inputs, labels and kept were expected, {kind(result)} came"
    given = np.asarray(result[2])
    if given.dtype.kind in "iuf" and np.isin(given, (0, 1)).all():
        given = given.astype(bool)
    text = difference(given, kept, 0, 0)
    return text and f"kept: {text}"


def loss_properties(shapes: Sequence[tuple[Shape, int]]) -> tuple[Property, ...]:
    """Of masked_loss for (shape of the labels, V); the first has two axes at least."""

    def cases(rng: Generator) -> list[Case]:
        made = [_call(rng, shape, vocabulary) for shape, vocabulary in shapes]
        said = "labels elsewhere are fillers, such as -100"
        return [Case(f"logits of shape {call[0].shape}, {int(call[2].sum())} kept, {said}", (call,)) for call in made]

    def nothing(rng: Generator) -> list[Case]:
        made = [_call(rng, shape, vocabulary) for shape, vocabulary in shapes]
        return [Case(f"logits of shape {x.shape}, none kept", ((x, y, np.zeros_like(m)),)) for x, y, m in made]

    def large(rng: Generator) -> list[Case]:
        made = [_call(rng, shape, vocabulary) for shape, vocabulary in shapes]
        return [
            Case(f"logits of shape {x.shape}, {said}", ((size * x + shift, y, m),))
            for x, y, m in made
            for size, shift, said in ((900.0, 0.0, "in the thousands"), (1.0, -4000.0, "all near -4000"))
        ]

    def one(rng: Generator) -> tuple:
        x, y, m = _call(rng, *shapes[0])
        return x, np.where(m, y, 0), m

    far = {**CLOSE, "rtol": 1e-4, "atol": 1e-5}
    return about(1, (
        one_of(0, masked_loss, cases, results=RESULTS, name="the loss is the mean surprise of the kept tokens", lesson=LESSON,
                meaning="-ln softmax(logits)[label], averaged once over all positions that are kept.",
                mistakes=WRONG_LOSS, **CLOSE),
        one_of(1, masked_loss, cases, results=RESULTS, name="the gradient is probabilities minus one-hot labels", lesson=LESSON,
                meaning="(softmax(logits) - one-hot) / kept where kept is True, zero elsewhere: it belongs to the mean.",
                mistakes=WRONG_GRADIENT, **CLOSE),
        _breaks(masked_loss, nothing, name="nothing kept: loss 0 and no gradient", lesson=LESSON,
                meaning="A batch in which nothing is asked for teaches nothing: 0.0 and zeros, no NaN.",
                mistakes=WRONG_NOTHING, **CLOSE),
        _breaks(masked_loss, large, name="large logits are survived", lesson=LESSON,
                meaning="However large the logits, loss and gradient are finite and right.", mistakes=WRONG_LARGE, **far),
        on_any_numbers(masked_loss, one, LESSON, name="masked_loss"),
        behaves(masked_loss, lambda rng: cases(rng)[:1], LESSON, name="masked_loss"),
    ))  # fmt: skip


def _breaks(reference: Loss, cases: Cases, **about: Any) -> Property:
    """`matches` where a mistake gives NaN or infinity: it explains what is so in the same places."""

    def explains(mistake: Mistake, case: Case, given: list[Answer]) -> bool:
        planted = own_answers(mistake.candidate, case)
        return all(
            np.allclose(theirs, ours, 1e-4, 1e-5, equal_nan=True)
            for answer, own in zip(given, planted, strict=True)
            for theirs, ours in zip(answer.value, own.value, strict=True)
        )

    return replace(matches(reference, cases, results=RESULTS, **about), explains=explains)


def _some(rng: Generator, shape: Shape) -> NDArray:
    """A mask in which runs of True begin anywhere, of another length in each row; both values occur past index 0."""
    mask = rng.random(shape) < rng.uniform(0.3, 0.7, (*shape[:-1], 1))
    mask[..., -2:] = rng.permutation([True, False])
    mask[..., 0] = rng.random() < 0.5
    return mask


def _call(rng: Generator, shape: Shape, vocabulary: int) -> tuple:
    """Logits, labels with fillers where nothing is kept, and a mask that keeps another number in each row."""
    logits = rng.normal(scale=2, size=(*shape, vocabulary))
    labels = rng.integers(vocabulary, size=shape)
    rows = int(np.prod(shape[:-1]))
    counts = rng.permutation((np.arange(rows) + 2) % shape[-1]) if rows > 1 else [(shape[-1] + 1) // 2]
    kept = np.stack([rng.permutation(np.arange(shape[-1]) < count) for count in counts]).reshape(shape)
    fillers = np.stack([np.full(shape, -100), np.full(shape, vocabulary + 3), labels])
    filler = np.take_along_axis(fillers, rng.integers(3, size=(1, *shape)), axis=0)[0]
    return logits, np.where(kept, labels, filler), kept
