"""How a gradient grows or shrinks on its way down a deep stack: a toy of gains and residual paths."""

import numpy as np

SEED = 41
PLAIN_GAIN, NORMALIZED_GAIN = 0.70, 0.15


def gradient_norm_by_depth(depth: int, residual: bool, normalized: bool, width: int = 8, seed: int = SEED) -> float:
    """2-norm of a unit gradient (equal entries) after the transposed Jacobians of `depth` blocks.

    A block's Jacobian is gain * Q, plus the identity if residual; Q (width, width) is a random orthogonal
    matrix, the gain 0.15 if normalized, else 0.70. One generator from `seed` draws every Q, so the four
    configurations share their directions. Raises ValueError unless depth and width are at least 1.
    """
    if depth < 1 or width < 1:
        raise ValueError(f"depth and width must be at least 1, got {depth} and {width}")
    rng = np.random.default_rng(seed)
    gain = NORMALIZED_GAIN if normalized else PLAIN_GAIN
    product = np.eye(width)
    for _ in range(depth):
        direction, _ = np.linalg.qr(rng.normal(size=(width, width)))
        block = gain * direction + (np.eye(width) if residual else 0)
        product = block @ product
    return float(np.linalg.norm(product.T @ np.full(width, width**-0.5)))
