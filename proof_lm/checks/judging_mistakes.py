"""Known mistakes in functions that judge or choose: what each would say is compared with what a student's said."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from proof_lm.checks.core import Mistake

# P4.1, an intervention on the future -------------------------------------------------------------------------

Attention = Callable[[NDArray], NDArray]
Rows = Callable[[NDArray, int], NDArray]  # of an output, those that are compared when position j is replaced


def _before(output: NDArray, j: int) -> NDArray:
    return output[..., :j, :]


def _intervention(
    positions: Callable[[int], Iterable[int]] = range,
    rows: Rows = _before,
    new: Callable[[NDArray, Generator], Any] = lambda row, rng: rng.normal(size=row.shape),
    close: Callable[[NDArray, NDArray], bool] = lambda a, b: np.allclose(a, b, rtol=0, atol=1e-9),
) -> Callable[[Attention, NDArray, Generator], bool]:
    """The right function, with one decision made otherwise."""

    def judge(attention: Attention, hidden: NDArray, rng: Generator) -> bool:
        before = attention(hidden)

        def unmoved(j: int) -> bool:
            changed = hidden.copy()
            changed[..., j, :] = new(hidden[..., j, :], rng)
            return close(rows(attention(changed), j), rows(before, j))

        return all(unmoved(j) for j in positions(hidden.shape[-2]))

    return judge


def _first_batch_row(output: NDArray, j: int) -> NDArray:
    return output[0, :j] if output.ndim == 3 else output[:j]


def _first_axis(attention: Attention, hidden: NDArray, rng: Generator) -> bool:
    before = attention(hidden)
    for j in range(len(hidden)):
        changed = hidden.copy()
        changed[j] = rng.normal(size=changed[j].shape)
        if not np.allclose(attention(changed)[:j], before[:j], rtol=0, atol=1e-9):
            return False
    return True


def _cut(attention: Attention, hidden: NDArray, rng: Generator) -> bool:
    return _intervention()(attention, hidden[..., : hidden.shape[-2] // 2, :], rng)


WRONG_INTERVENTION = (
    Mistake("always True", "the answer is True whatever attention does: does the loop end at its first position, or is one "
            "position enough?", lambda *given: True),
    Mistake("always False", "the answer is False whatever attention does: rows that may change are compared (the replaced "
            "one, later ones), or rows stay replaced", lambda *given: False),
    Mistake("inverted", "the answer is the wrong way round: True means that nothing before the replaced row changes",
            lambda *given: not _intervention()(*given)),
    Mistake("last position only", "only the last position is replaced: a leak from any earlier one stays unseen",
            _intervention(lambda time: [time - 1])),
    Mistake("not the last position", "the last position is never replaced: a leak from it stays unseen",
            _intervention(lambda time: range(time - 1))),
    Mistake("second position only", "only position 1 is replaced: a leak from any later one stays unseen",
            _intervention(lambda time: [1])),
    Mistake("every other position", "every other position is left out: each one can leak",
            _intervention(lambda time: range(0, time, 2))),
    Mistake("row just before only", "only the row just before the replaced one is compared: all rows before it count",
            _intervention(lambda time: range(1, time), lambda output, j: output[..., j - 1, :])),
    Mistake("first row only", "only row 0 is compared: all rows before the replaced one count",
            _intervention(lambda time: range(1, time), lambda output, j: output[..., 0, :])),
    Mistake("adds a constant", "a constant is added instead of replacing the row: attention on normalised rows does "
            "not notice it", _intervention(new=lambda row, rng: row + 100)),
    Mistake("sets to zero", "the row is set to zero instead of random values: a row that was zero stays as it was",
            _intervention(new=lambda row, rng: 0 * row)),
    Mistake("multiplies", "the row is multiplied instead of replaced: normalised rows and rows of zeros do not notice",
            _intervention(new=lambda row, rng: 2 * row)),
    Mistake("multiplies, coarsely", "the row is multiplied instead of replaced: normalised rows hardly notice",
            _intervention(new=lambda row, rng: 2 * row, close=lambda a, b: np.allclose(a, b, atol=1e-4))),
    Mistake("first batch row only", "only sequence 0 of the batch is compared: every one must be causal",
            _intervention(rows=_first_batch_row)),
    Mistake("coarse", "differences of several hundredths pass: only rounding may (1e-9)",
            _intervention(close=lambda a, b: np.allclose(a, b, rtol=0, atol=0.1))),
    Mistake("two decimals", "differences of a hundredth pass: only rounding may (1e-9)",
            _intervention(close=lambda a, b: np.allclose(a, b, rtol=0, atol=0.01))),
    Mistake("first axis", "positions are taken from the first axis, which is the batch when there is one", _first_axis),
    Mistake("shortened", "a shorter sequence is compared in place of a replaced row: attention may depend on the length",
            lambda attention, hidden, rng: all(
                np.allclose(attention(hidden[..., :j, :]), attention(hidden)[..., :j, :])
                for j in range(1, hidden.shape[-2]))),
    Mistake("first four only", "only the first positions are tried: a leak further on stays unseen",
            lambda attention, hidden, rng: _intervention()(attention, hidden[..., :4, :], rng)),
    Mistake("first half only", "only the first half of the sequence is tried: a leak further on stays unseen", _cut),
)  # fmt: skip


# P4.2, the most stable configuration -------------------------------------------------------------------------


def _chosen(score: Callable[[NDArray], float], best: Callable = min) -> Callable[[dict], str]:
    """The name with the best score of its norms."""
    return lambda experiment: best(experiment, key=lambda name: float(score(np.asarray(experiment[name]))))


def _logs(norms: NDArray) -> NDArray:
    return np.log(norms / norms[0])


def _first_of_all(experiment: dict) -> str:
    first = next(iter(experiment.values()))[0]
    return min(experiment, key=lambda name: np.abs(np.log(np.asarray(experiment[name]) / first)).max())


WRONG_STABILITY = (
    Mistake("first", "the first name is returned, whatever its norms", lambda experiment: next(iter(experiment))),
    Mistake("last", "the last name is returned, whatever its norms", lambda experiment: list(experiment)[-1]),
    Mistake("alphabet", "the names are compared, not their norms", min),
    Mistake("least stable", "the largest worst log-ratio is chosen: the smallest is the most stable",
            _chosen(lambda n: np.abs(_logs(n)).max(), max)),
    Mistake("no absolute value", "the logarithm keeps its sign, or there is none, so that what vanishes looks "
            "stable: compare |log(norm / first norm)|",
            _chosen(lambda n: _logs(n).max())),
    Mistake("vanishing only", "only what falls counts: what explodes is as far from its start",
            _chosen(lambda n: -_logs(n).min())),
    Mistake("last depth", "only the last depth is compared with the first: a norm can stray and come back",
            _chosen(lambda n: abs(_logs(n)[-1]))),
    Mistake("all but the last", "the last depth is left out", _chosen(lambda n: np.abs(_logs(n)[:-1]).max())),
    Mistake("second depth", "only the second depth is compared with the first",
            _chosen(lambda n: abs(_logs(n)[1]))),
    Mistake("mean", "log-ratios are averaged over depths: the worst depth counts",
            _chosen(lambda n: np.abs(_logs(n)).mean())),
    Mistake("median", "the median over depths is taken: the worst depth counts",
            _chosen(lambda n: np.median(np.abs(_logs(n))))),
    Mistake("root mean square", "log-ratios are averaged over depths (as squares): the worst depth counts",
            _chosen(lambda n: (_logs(n) ** 2).mean())),
    Mistake("signed sum", "log-ratios of either sign cancel in the sum: take their size, then the worst",
            _chosen(lambda n: abs(_logs(n).sum()))),
    Mistake("ratios", "ratios are compared without the logarithm: a half then looks nearer to 1 than a double",
            _chosen(lambda n: np.abs(n / n[0] - 1).max())),
    Mistake("inverse ratios", "inverse ratios are compared without the logarithm",
            _chosen(lambda n: np.abs(n[0] / n - 1).max())),
    Mistake("differences", "norms are subtracted, or their spread is taken: stability is about ratios, so take logarithms first",
            _chosen(lambda n: np.abs(n - n[0]).max())),
    Mistake("own start ignored", "norms are compared with 1, not with the configuration's own first norm",
            _chosen(lambda n: np.abs(np.log(n)).max())),
    Mistake("ratio of logarithms", "logarithms are divided: divide the norms first, then take the logarithm of the ratio",
            _chosen(lambda n: np.abs(np.log(n) / np.log(n[0])).max())),
    Mistake("distance from one", "norms are compared with 1 by subtraction: divide by the own first norm, then log",
            _chosen(lambda n: np.abs(n - 1).max())),
    Mistake("another's start", "every configuration is compared with the first norm of the first one", _first_of_all),
    *(
        Mistake(name, "distances are not taken from the configuration's first norm, but from another depth, the mean or "
                "across the band", _chosen(score))
        for name, score in {
            "from the depth before": lambda n: np.abs(np.diff(np.log(n))).max(),
            "from the last depth": lambda n: np.abs(np.log(n / n[-1])).max(),
            "from the mean": lambda n: np.abs(np.log(n / n.mean())).max(),
            "across the band": lambda n: n.max() / n.min(),
        }.items()
    ),
    Mistake("largest at the end", "the largest last norm is chosen", _chosen(lambda n: n[-1], max)),
    Mistake("smallest at the end", "the smallest last norm is chosen", _chosen(lambda n: n[-1])),
)  # fmt: skip


# P4.3, three checks of a decoder -----------------------------------------------------------------------------


def _equal(one: Any, other: Any) -> bool:
    return bool(((one - other).abs() <= 1e-5).all())


def _early(logits: Any) -> Any:
    return logits[:, :-1]


def _one_storage(model: Any) -> bool:
    return model.token_embedding.weight.data_ptr() == model.lm_head.weight.data_ptr()


def _decoder(
    part: Callable[[Any], Any] = _early,
    equal: Callable[[Any, Any], bool] = _equal,
    tied: Callable[[Any], bool] = _one_storage,
    reloaded: Callable[[Any], Any] = lambda logits: logits,
    against: int = 1,
    order: tuple[int, int, int] = (0, 1, 2),
) -> Callable[..., tuple]:
    """The right function, with one decision made otherwise."""

    def checks(model: Any, original: Any, changed: Any, reload: Any) -> tuple:
        said = (
            equal(part(original), part(changed)),
            tied(model),
            equal(reloaded((original, original, changed)[against]), reloaded(reload)),
        )
        return tuple(said[place] for place in order)

    return checks


def _no_nan_seen(one: Any, other: Any) -> bool:
    return not ((one - other).abs() > 1e-5).any()


def _nan_alike(one: Any, other: Any) -> bool:
    return bool((((one - other).abs() <= 1e-5) | (one.isnan() & other.isnan())).all())


def _same_numbers(model: Any) -> bool:
    return bool((model.token_embedding.weight == model.lm_head.weight).all())


WRONG_CHECKS = (
    Mistake("always True", "all three are True whatever comes", lambda *given: (True, True, True)),
    Mistake("always False", "all three are False whatever comes", lambda *given: (False, False, False)),
    Mistake("future always", "future_ok is True whatever comes", _decoder(part=lambda logits: logits[:, :0])),
    Mistake("reload always", "reload_ok is True whatever comes", _decoder(reloaded=lambda logits: logits[:0])),
    Mistake("tied always", "tied_ok is True whatever comes", _decoder(tied=lambda model: True)),
    Mistake("tied never", "tied_ok is False whatever comes", _decoder(tied=lambda model: False)),
    Mistake("claimed", "the model's own claim is believed: ask where the two weights are stored",
            _decoder(tied=lambda model: model.embeddings_are_tied)),
    Mistake("by value", "ties are compared by value, not by storage: a copy holds the same numbers",
            _decoder(tied=_same_numbers)),
    Mistake("by object", "the two names are asked for one Python object: two parameters can share one storage (data_ptr)",
            _decoder(tied=lambda model: model.token_embedding.weight is model.lm_head.weight)),
    Mistake("claim needed", "storage and the model's claim must both say so: the claim counts for nothing",
            _decoder(tied=lambda model: model.embeddings_are_tied and _one_storage(model))),
    Mistake("claim enough", "the model's claim is enough, whatever the storage",
            _decoder(tied=lambda model: model.embeddings_are_tied or _one_storage(model))),
    Mistake("last step compared", "future_ok is False whatever comes: the last step, whose input token was changed, is compared too",
            _decoder(part=lambda logits: logits)),
    Mistake("first step only", "future_ok compares the first step alone: every step but the last counts",
            _decoder(part=lambda logits: logits[:, :1])),
    Mistake("two steps left out", "future_ok leaves out two steps: only the last may change",
            _decoder(part=lambda logits: logits[:, :-2])),
    Mistake("batch for time", "future_ok leaves out the last sequence of the batch: time is axis 1",
            _decoder(part=lambda logits: logits[:-1])),
    Mistake("first sequence only", "future_ok looks at batch row 0 alone: every sequence counts",
            _decoder(part=lambda logits: logits[:1, :-1])),
    Mistake("first sequences only", "future_ok and reload_ok look at batch row 0 alone: every sequence counts",
            _decoder(part=lambda logits: logits[:1, :-1], reloaded=lambda logits: logits[:1])),
    Mistake("NaN in the last step", "future_ok is False for NaN in the last step, which it must leave out",
            lambda model, original, *others: (
                not original.isnan().any() and _decoder()(model, original, *others)[0],
                *_decoder()(model, original, *others)[1:])),
    Mistake("sums", "differences of several hundredths pass: sums are compared, in which they cancel, or the bound is coarse",
            _decoder(equal=lambda a, b: bool(((a - b).sum(-1).abs() <= 1e-4).all()))),
    Mistake("any entry", "one equal entry is enough for True: all must be equal",
            _decoder(equal=lambda a, b: bool(((a - b).abs() <= 1e-5).any()))),
    Mistake("predictions", "the most likely tokens are compared: logits can differ and agree on those",
            _decoder(equal=lambda a, b: bool((a.argmax(-1) == b.argmax(-1)).all()) if a.numel() else True)),
    Mistake("coarse", "differences of a hundredth pass: only rounding may (1e-5)",
            _decoder(equal=lambda a, b: bool(((a - b).abs() <= 1e-2).all()))),
    Mistake("NaN passes", "NaN passes: no comparison with NaN is true, so ask that all are close, not that none is far",
            _decoder(equal=_no_nan_seen)),
    Mistake("NaN alike", "NaN counts as equal to NaN: it equals nothing", _decoder(equal=_nan_alike)),
    Mistake("reload without the last step", "reload_ok leaves out the last step: a reloaded model must agree everywhere",
            _decoder(reloaded=_early)),
    Mistake("reload last step", "reload_ok looks at the last step alone: a reloaded model must agree everywhere",
            _decoder(reloaded=lambda logits: logits[:, -1:])),
    Mistake("reload against changed", "reload_ok compares with changed_logits: the original ones belong to its input",
            _decoder(against=2)),
    Mistake("order", "the order is future, tied, reload: here the last two are swapped", _decoder(order=(0, 2, 1))),
    Mistake("order, first two", "the order is future, tied, reload: here the first two are swapped",
            _decoder(order=(1, 0, 2))),
    Mistake("order, first and last", "the order is future, tied, reload: here future and reload are swapped",
            _decoder(order=(2, 1, 0))),
)  # fmt: skip


# P4.19, a check of gradients ---------------------------------------------------------------------------------


def _numeric(loss: Callable, parameter: NDArray, epsilon: float) -> NDArray:
    steps = epsilon * np.eye(parameter.size).reshape(-1, *parameter.shape)
    slopes = [(loss(parameter + step) - loss(parameter - step)) / (2 * epsilon) for step in steps]
    return np.array(slopes, dtype=float).reshape(parameter.shape)


def _check(
    agree: Callable[[NDArray, NDArray, float], bool], epsilon: float = 0.0, tolerance: float = 0.0, shapes: bool = True
) -> Callable[..., bool]:
    """The right check, with one decision made otherwise."""

    def check(loss: Callable, parameter: NDArray, analytic: NDArray, given: float, allowed: float) -> bool:
        numeric = _numeric(loss, parameter, epsilon or given)
        if shapes and np.shape(analytic) != numeric.shape:
            return False
        return bool(agree(np.asarray(analytic), numeric, tolerance or allowed))

    return check


def _all_close(one: NDArray, other: NDArray, tolerance: float) -> bool:
    return np.allclose(one, other, tolerance, tolerance)


def _lengths(one: NDArray, other: NDArray, tolerance: float) -> bool:
    return _all_close(np.linalg.norm(one), np.linalg.norm(other), tolerance)


WRONG_GRADIENT_CHECK = (
    Mistake("always True", "the answer is True whatever the gradient", lambda *given: True),
    Mistake("always False", "the answer is False whatever the gradient", lambda *given: False),
    Mistake("inverted", "the answer is the wrong way round: True means that the gradient is right",
            lambda *given: not _check(_all_close)(*given)),
    Mistake("no shapes", "shapes are broadcast: compare them before the numbers", _check(_all_close, shapes=False)),
    Mistake("first entry", "only the first entry is compared: each one can be wrong",
            _check(lambda a, n, t: _all_close(a.flat[0], n.flat[0], t))),
    Mistake("any entry", "one right entry is enough for True: all must be right",
            _check(lambda a, n, t: np.isclose(a, n, t, t).any())),
    Mistake("mean", "errors are averaged: one wrong entry among many hides",
            _check(lambda a, n, t: np.abs(a - n).mean() <= t)),
    Mistake("mean with signs", "errors are averaged with their signs, and shapes are broadcast",
            _check(lambda a, n, t: abs(np.mean(n - a)) <= t, shapes=False)),
    Mistake("no absolute value, no size", "the difference keeps its sign, so that a gradient too large passes",
            _check(lambda a, n, t: (n - a <= t).all())),
    Mistake("first entry, any shape", "only the first entry is compared: each one can be wrong",
            _check(lambda a, n, t: np.isclose(n.flat[0], a.flat[0], rtol=t), shapes=False)),
    Mistake("no absolute value", "the difference keeps its sign, so that a gradient too small passes",
            _check(lambda a, n, t: ((a - n) <= t * (1 + np.abs(n))).all())),
    Mistake("NaN passes", "NaN passes: ask that all entries are close, not that none is far",
            _check(lambda a, n, t: not (np.abs(a - n) > t * (1 + np.abs(n))).any())),
    Mistake("sizes only", "sizes are compared without signs: a gradient that points uphill passes",
            _check(lambda a, n, t: _all_close(np.abs(a), np.abs(n), t))),
    Mistake("lengths only", "lengths of the gradients are compared, not their entries", _check(_lengths)),
    Mistake("sums only", "sums of the gradients are compared, not their entries",
            _check(lambda a, n, t: _all_close(a.sum(), n.sum(), t))),
    Mistake("own tolerance", "the argument tolerance is not used", _check(_all_close, tolerance=1e-4)),
    Mistake("own epsilon", "the argument epsilon is not used", _check(_all_close, epsilon=1e-5)),
    Mistake("zero by zero", "the error is divided by a gradient that can be zero: NaN is not small",
            _check(lambda a, n, t: (np.abs(a - n) / np.abs(n) <= t).all())),
)  # fmt: skip
