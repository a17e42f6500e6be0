"""How many parameters each of the course's three architectures has, by formula, and how the counting goes wrong."""

from collections.abc import Callable

from proof_lm.checks.core import Mistake


def parameter_count(architecture: str, **sizes: int) -> int:
    """Parameters of "numpy_block", "prooflm" or "gpt"; ValueError for another architecture."""
    if architecture not in COUNTS:
        raise ValueError(f"architecture: expected one of {', '.join(COUNTS)}, got {architecture!r}")
    return sum(COUNTS[architecture](**sizes).values())


def _block(d: int, d_ff: int) -> dict[str, int]:
    return {
        "attention": 4 * d * d,
        "attention biases": 4 * d,
        "mlp": 2 * d * d_ff,
        "mlp biases": d_ff + d,
        "scales": 2 * d,
        "shifts": 2 * d,
    }


def _numpy_block(d_model: int, num_heads: int, d_ff: int) -> dict[str, int]:
    return _block(d_model, d_ff)


def _prooflm(
    vocab_size: int, context_length: int, n_layers: int, d_model: int, n_heads: int, d_ff: int
) -> dict[str, int]:
    layers = {name: n_layers * size for name, size in _block(d_model, d_ff).items()}
    return layers | {"embedding": vocab_size * d_model, "final norm": 2 * d_model}


def _gpt(vocab_size: int, context_length: int, n_layers: int, d_model: int, n_heads: int) -> dict[str, int]:
    layers = {name: n_layers * size for name, size in _block(d_model, 4 * d_model).items()}
    tables = {"embedding": vocab_size * d_model, "positions": context_length * d_model, "final norm": 2 * d_model}
    return layers | tables | {"head": vocab_size * d_model, "head bias": vocab_size}


COUNTS = {"numpy_block": _numpy_block, "prooflm": _prooflm, "gpt": _gpt}


def _without(*names: str, plus: Callable[[dict], int] = lambda sizes: 0) -> Callable:
    """The count without the terms `names`, and with `plus(sizes)`."""

    def count(architecture: str, **sizes: int) -> int:
        terms = COUNTS[architecture](**sizes)
        return sum(size for name, size in terms.items() if name not in names) + plus(sizes)

    return count


def _layers(sizes: dict) -> int:
    return sizes.get("n_layers", 1)


def _table(sizes: dict) -> int:
    return sizes.get("vocab_size", 0) * sizes["d_model"]


COUNT_MISTAKES = (
    Mistake("biases forgotten", "the biases of attention and MLP are not counted",
            _without("attention biases", "mlp biases")),
    Mistake("4 d forgotten", "4 d numbers of every block are missing: the four biases of attention, or the scales and "
            "shifts of its two norms", _without("attention biases")),
    Mistake("mlp biases forgotten", "the two biases of the MLP are not counted: d_ff and d", _without("mlp biases")),
    Mistake("shifts forgotten", "2 d numbers of every block are missing: each of its two norms has a shift beside its scale, 4 d in all", _without("shifts")),
    Mistake("final norm forgotten", "the final norm is not counted", _without("final norm")),
    Mistake("output projection forgotten", "attention has four matrices: the output projection is not counted",
            _without(plus=lambda s: -_layers(s) * s["d_model"] ** 2)),
    Mistake("one MLP matrix", "the MLP has two matrices, d to d_ff and back; one is counted",
            _without(plus=lambda s: -_layers(s) * s["d_model"] * s.get("d_ff", 4 * s["d_model"]))),
    Mistake("positions forgotten", "learned positions are parameters too: context_length d", _without("positions")),
    Mistake("head bias forgotten", "the head's bias is not counted", _without("head bias")),
    Mistake("untied taken for tied", "this head is not tied: embedding and head both count", _without("head")),
    Mistake("head and bias forgotten", "the head is not counted", _without("head", "head bias")),
    Mistake("tied counted twice", "ProofLM's head is the embedding's matrix: a tied matrix counts once",
            _without(plus=_table)),
    Mistake("rope counted", "rotation has no parameters: nothing is learned for each position",
            _without(plus=lambda s: s.get("context_length", 0) * s["d_model"])),
    Mistake("one layer", "the blocks are counted once, not n_layers times",
            lambda architecture, **sizes: parameter_count(
                architecture, **{name: 1 if name == "n_layers" else size for name, size in sizes.items()})),
    Mistake("rough estimate", "12 d^2 for a layer and 2 V d around them is the estimate; biases, norms and positions "
            "belong in the count",
            lambda architecture, **s: 12 * _layers(s) * s["d_model"] ** 2 + 2 * _table(s)),
)  # fmt: skip
