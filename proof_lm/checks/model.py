"""Properties of a language model in PyTorch. A candidate is the model itself; see proof_lm.probes.models.

Every maker of a property takes the vocabulary size of the models that it is for, and B and T of its cases.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.random import Generator

from proof_lm.checks.core import Case, Property, difference

Sizes = Sequence[tuple[int, int]]  # (B, T) of each case

SIZES: Sizes = ((1, 5), (3, 8))
ROUNDING = "1e-4 on logits of order one: float32 sums in another order"
TIED_LESSON = "lesson 06, One matrix, two uses"
CAUSAL_LESSON = "lesson 06, The intervention"
RELOAD_LESSON = "lesson 06, Save and reload"
GRADIENT_LESSON = "lesson 06, Every gradient"
LOSS_LESSON = "lesson 06, Loss on some positions"
CACHE_LESSON = "lesson 08, The cache"
PATHS = ("as built", "load_state_dict", "load_state_dict(assign=True)", "an optimiser step")


def _ids(rng: Generator, vocab_size: int, *shape: int) -> np.ndarray:
    return rng.integers(vocab_size, size=shape)


def earlier_logits_unchanged(vocab_size: int, sizes: Sizes = SIZES) -> Property:
    """Replacing one token, each in turn, changes no logits before it, and does change its own."""

    def cases(rng: Generator) -> list[Case]:
        made = []
        for batch, time in sizes:
            original = _ids(rng, vocab_size, batch, time)
            calls = [original]
            for position in range(time):
                changed = original.copy()
                changed[:, position] = (changed[:, position] + rng.integers(1, vocab_size)) % vocab_size
                calls.append(changed)
            label = f"B = {batch}, T = {time}, every token replaced in turn"
            made.append(Case(label, tuple((ids,) for ids in calls), "models.logits"))
        return made

    def judge(case: Case, values: list) -> str | None:
        original, *others = (np.asarray(value, dtype=float) for value in values)
        if not np.isfinite(original).all():
            return "logits are not all finite"
        for position, changed in enumerate(others):
            moved = (changed != original).any(axis=(0, 2))  # (T,)
            if moved[:position].any():
                return f"replacing token {position} changed the logits at position {int(moved.argmax())}"
            if not moved[position]:
                return f"replacing token {position} left the logits at its own position unchanged"
        return None

    meaning = "What is predicted after a token depends on that token and those before it, on nothing later."
    exact = "exact: a hidden key has weight 0, and the sums that do not see it are the same sums"
    return Property("earlier logits are unchanged", meaning, cases, judge, exact, CAUSAL_LESSON)


def tied_embeddings_share_storage(
    embedding: str = "token_embedding.weight", head: str = "lm_head.weight", paths: Sequence[str] = PATHS
) -> Property:
    """Input and output matrix are one memory, when built and after each of `paths`."""

    def cases(rng: Generator) -> list[Case]:
        return [Case(f"after {path}", ((embedding, head, path),), "models.addresses") for path in paths]

    def judge(case: Case, values: list) -> str | None:
        first, second = values[0]
        return None if first == second != 0 else f"{head} lies elsewhere than {embedding}: two matrices, not one"

    meaning = "Tied means one matrix with two uses: what training does to one use, the other sees."
    return Property("tied embeddings share storage", meaning, cases, judge, lesson=TIED_LESSON)


def reload_changes_nothing(vocab_size: int, sizes: Sizes = SIZES) -> Property:
    """A model that loads the state of another gives its logits, bit for bit."""

    def judge(case: Case, values: list) -> str | None:
        text = difference(values[0]["after"], values[0]["before"], rtol=0, atol=0)
        return text and f"after reloading, {text}: the state does not hold all that the logits depend on"

    meaning = "A state dict holds everything that the logits depend on."
    cases = _id_cases("models.saved_and_loaded", vocab_size, sizes)
    return Property("reload changes nothing", meaning, cases, judge, "exact: equal bits", RELOAD_LESSON)


def evaluation_repeats(vocab_size: int, sizes: Sizes = SIZES) -> Property:
    """Two forward passes in evaluation mode give equal bits."""

    def cases(rng: Generator) -> list[Case]:
        twice = [(_ids(rng, vocab_size, *size), size) for size in sizes]
        return [Case(f"B = {b}, T = {t}, twice", ((ids,), (ids,)), "models.logits") for ids, (b, t) in twice]

    def judge(case: Case, values: list) -> str | None:
        text = difference(values[1], values[0], rtol=0, atol=0)
        return text and f"in the second pass, {text}: something is still drawn at random"

    meaning = "In evaluation mode nothing is random: dropout is off."
    return Property("evaluation repeats", meaning, cases, judge, "exact: equal bits", RELOAD_LESSON)


def _id_cases(probe: str, vocab_size: int, sizes: Sizes) -> Callable[[Generator], list[Case]]:
    def cases(rng: Generator) -> list[Case]:
        return [Case(f"B = {b}, T = {t}", ((_ids(rng, vocab_size, b, t),),), probe) for b, t in sizes]

    return cases


def _loss_cases(vocab_size: int, sizes: Sizes, keep: float) -> Callable[[Generator], list[Case]]:
    def cases(rng: Generator) -> list[Case]:
        made = []
        for batch, time in sizes:
            tokens, labels = _ids(rng, vocab_size, batch, time), _ids(rng, vocab_size, batch, time)
            mask = rng.random(labels.shape) < keep
            call = (tokens, labels, mask)
            made.append(Case(f"B = {batch}, T = {time}, {mask.sum()} labels kept", (call,), "models.loss"))
        return made

    return cases


def all_gradients_are_finite(vocab_size: int, sizes: Sizes = SIZES) -> Property:
    """Every parameter gets a gradient from the masked loss, finite throughout and not zero throughout."""

    def judge(case: Case, values: list) -> str | None:
        for name, gradient in values[0]["gradients"].items():
            if gradient is None:
                return f"{name} gets no gradient: the loss does not depend on it"
            if not np.isfinite(gradient).all():
                return f"the gradient of {name} is not finite"
            if not np.any(gradient):
                return f"the gradient of {name} is zero throughout"
        return None if values[0]["gradients"] else "the model has no parameters"

    meaning = "Training can move every parameter, and none of them to NaN."
    cases = _loss_cases(vocab_size, sizes, keep=1.0)
    return Property("all gradients are finite", meaning, cases, judge, "none needed", GRADIENT_LESSON)


def nothing_kept_teaches_nothing(vocab_size: int, sizes: Sizes = SIZES) -> Property:
    """With loss_mask False throughout, loss and gradients are zero, not NaN."""

    def judge(case: Case, values: list) -> str | None:
        if values[0]["loss"] != 0:
            return "the loss over no label is not zero"
        for name, gradient in values[0]["gradients"].items():
            if gradient is not None and np.any(gradient):  # NaN counts as something
                return f"the gradient of {name} is not zero"
        return None

    meaning = "A batch without labels has a loss of zero and moves no weight; 0 / 0 would make every weight NaN."
    cases = _loss_cases(vocab_size, sizes, keep=0.0)
    return Property("nothing kept teaches nothing", meaning, cases, judge, "exact", LOSS_LESSON)


def padding_changes_nothing(vocab_size: int, sizes: Sizes = SIZES, padding: int = 3) -> Property:
    """Masked positions appended to every row change neither loss nor gradients. Context must hold them."""

    def cases(rng: Generator) -> list[Case]:
        made = []
        for batch, time in sizes:
            tokens, labels = _ids(rng, vocab_size, batch, time), _ids(rng, vocab_size, batch, time)
            mask = np.ones(labels.shape, dtype=bool)
            filler = _ids(rng, vocab_size, batch, padding)
            off = np.zeros(filler.shape, dtype=bool)
            padded = tuple(np.hstack(pair) for pair in ((tokens, filler), (labels, filler), (mask, off)))
            label = f"B = {batch}, T = {time}, {padding} steps of padding"
            made.append(Case(label, ((tokens, labels, mask), padded), "models.loss"))
        return made

    def judge(case: Case, values: list) -> str | None:
        plain, padded = values
        text = difference(padded["loss"], plain["loss"], rtol=1e-4, atol=1e-6)
        if text:
            return f"with padding the loss is another ({text}): divide by the kept labels alone"
        text = difference(padded["gradients"], plain["gradients"], rtol=1e-3, atol=1e-5)
        return text and f"with padding gradients are others: {text}"

    meaning = "The loss is the mean over the labels that are kept; what is masked does not exist for it."
    return Property("padding changes nothing", meaning, cases, judge, ROUNDING, LOSS_LESSON)


def initial_loss_is_log_of_vocabulary(vocab_size: int, sizes: Sizes = ((8, 8),)) -> Property:
    """An untrained model gives each token about 1 / V."""

    def judge(case: Case, values: list) -> str | None:
        loss = float(values[0]["loss"])
        expected = np.log(vocab_size)
        if abs(loss - expected) <= 0.05 * expected:
            return None
        return f"the loss before training is {loss:.2f}, far from ln V = {expected:.2f}"

    meaning = "Before training nothing is known: every token is as likely as any other, and the loss is ln V."
    cases = _loss_cases(vocab_size, sizes, keep=1.0)
    bound = "5 %: weights of spread 0.02 make logits small, not zero"
    return Property("initial loss is near ln V", meaning, cases, judge, bound, LOSS_LESSON)


def cache_changes_nothing(vocab_size: int, sizes: Sizes = SIZES) -> Property:
    """Read through a cache in chunks, whatever their lengths, a text has the logits of a plain forward pass."""

    def cases(rng: Generator) -> list[Case]:
        made = []
        for batch, time in sizes:
            ids, cut = _ids(rng, vocab_size, batch, time), int(rng.integers(1, time))
            for chunks in ([time], [1] * time, [cut, time - cut], [cut] + [1] * (time - cut)):
                label = f"B = {batch}, in chunks of {', '.join(map(str, chunks))}"
                made.append(Case(label, ((ids, chunks),), "models.cached_logits"))
        return made

    def judge(case: Case, values: list) -> str | None:
        text = difference(values[0]["cached"], values[0]["plain"], rtol=1e-3, atol=1e-4)
        return text and f"through the cache, {text}"

    meaning = "The cache saves work and nothing else: keys and values of earlier steps never change."
    return Property("the cache changes nothing", meaning, cases, judge, ROUNDING, CACHE_LESSON)
