"""NumPy's attention against torch's fused kernel, gradient checks, and what importing costs; writes docs/speed.md.

    .venv/bin/python benchmarks/attention.py [--rounds 15]

One thread, float32, the same arrays for both; each ratio is the other's time over ours, so that more is better.
"""

from __future__ import annotations

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")  # read when NumPy is imported

import argparse
import subprocess
import sys
from collections.abc import Callable

import measure  # unsets what would slow down NumPy, so it comes before NumPy
import numpy as np
import torch
import torch.nn.functional as F

from proof_lm.attention import (
    blocked_causal_attention,
    causal_attention,
    merge_heads,
    multi_head_attention,
    split_heads,
)
from proof_lm.gradients import (
    directional_gradient_check,
    gradient_check,
    output_projection_loss_and_grad,
)

HEADS, WIDTH = 8, 256
CALLS = 5  # in a turn


def einsum_attention(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    """The formula as a lesson first writes it: (h, T, d_h) -> (h, T, d_h)."""
    scores = np.einsum("hqd,hkd->hqk", query, key) / np.sqrt(query.shape[-1])
    scores = np.where(np.tri(scores.shape[-1], dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return np.einsum("hqk,hkd->hqd", weights, value)


def fused(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, None]:
    """torch's own kernel, which never writes the weights: (h, T, d_h) -> (h, T, d_h)."""
    return F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0], None


def written_out(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """What torch takes to return the weights (h, T, T) as well, as ours does."""
    heads, time, head_width = q.shape
    future = q.new_full((time, time), -torch.inf).triu(1)
    scores = torch.baddbmm(future.expand(heads, time, time), q, k.mT, alpha=head_width**-0.5)
    weights = scores.softmax(dim=-1)
    return weights @ v, weights


def torch_layer(attention: Callable, hidden: torch.Tensor, weights: list[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """Projections, attention and output projection: (T, d) -> (T, d), and the weights if attention has them."""
    wq, wk, wv, wo = weights
    q, k, v = ((hidden @ weight).view(len(hidden), HEADS, -1).transpose(0, 1) for weight in (wq, wk, wv))
    attended, attention_weights = attention(q, k, v)
    return attended.transpose(0, 1).reshape(hidden.shape) @ wo, attention_weights


def layer_without_weights(hidden: np.ndarray, wq: np.ndarray, wk: np.ndarray, wv: np.ndarray, wo: np.ndarray) -> np.ndarray:
    """`multi_head_attention` for who does not ask for the weights: (T, d) -> (T, d)."""
    query, key, value = (split_heads(hidden @ weight, HEADS) for weight in (wq, wk, wv))
    return merge_heads(blocked_causal_attention(query, key, value, with_weights=False)[0]) @ wo


def attention(rounds: int) -> str:
    rows = [[f"T = {time}", *(f"{ratio:.2f}" for ratio in against_torch(time, rounds))] for time in (256, 512, 1024)]
    layers = ["layer", "layer, torch with weights", "layer without weights"]
    return measure.table(["torch's time over ours", *layers, "attention", "blocked", "einsum"], rows)


@torch.inference_mode()
def against_torch(time: int, rounds: int) -> list[float]:
    """Ratios for the layer, the same beside a torch that returns weights too, the layer without weights, plain
    attention, blocked attention and the einsum, after a look that they agree."""
    rng = np.random.default_rng(41)
    arrays = rng.normal(size=(3, HEADS, time, WIDTH // HEADS)).astype(np.float32)
    hidden = rng.normal(size=(time, WIDTH)).astype(np.float32)
    weights = list(rng.normal(scale=WIDTH**-0.5, size=(4, WIDTH, WIDTH)).astype(np.float32))
    tensors = list(torch.from_numpy(arrays)[:, None])
    torch_hidden, torch_weights = torch.from_numpy(hidden), [torch.from_numpy(weight) for weight in weights]
    runs = {
        "torch": lambda: F.scaled_dot_product_attention(*tensors, is_causal=True)[0].numpy(),
        "torch layer": lambda: torch_layer(fused, torch_hidden, torch_weights)[0].numpy(),
        "torch layer with weights": lambda: torch_layer(written_out, torch_hidden, torch_weights)[0].numpy(),
        "layer": lambda: multi_head_attention(hidden, *weights, HEADS)[0],
        "layer without weights": lambda: layer_without_weights(hidden, *weights),
        "plain": lambda: causal_attention(*arrays)[0],
        "blocked": lambda: blocked_causal_attention(*arrays, with_weights=False)[0],
        "einsum": lambda: einsum_attention(*arrays),
    }
    for name in ("torch layer", "torch layer with weights", "layer without weights"):
        np.testing.assert_allclose(runs["layer"](), runs[name](), atol=1e-4)
    for name in ("plain", "blocked", "einsum"):
        np.testing.assert_allclose(runs[name](), runs["torch"](), atol=1e-5)
    seconds = measure.medians(runs, rounds, CALLS)
    pairs = [
        ("torch layer", "layer"),
        ("torch layer with weights", "layer"),
        ("torch layer", "layer without weights"),
        *(("torch", name) for name in ("plain", "blocked", "einsum")),
    ]
    return [seconds[other] / seconds[ours] for other, ours in pairs]


def gradients(rounds: int, width: int = 32) -> str:
    """Both checks of one gradient, that of a (d, d) projection, and how many losses each asks for."""
    rng, asked = np.random.default_rng(41), 0
    context, projection, upstream = rng.normal(size=(3, width, width))
    _, gradient = output_projection_loss_and_grad(context, projection, upstream)

    def loss(weight: np.ndarray) -> float:
        nonlocal asked
        asked += 1
        return output_projection_loss_and_grad(context, weight, upstream)[0]

    checks = {
        "every entry": lambda: gradient_check(loss, projection, gradient, 1e-5, 1e-5),
        "random directions": lambda: directional_gradient_check(loss, projection, gradient, 1e-5, 1e-5, rng),
    }
    losses = {}
    for name, check in checks.items():
        asked = 0
        assert check(), name
        losses[name] = asked
    seconds = measure.medians(checks, rounds, CALLS)
    ratio = seconds["every entry"] / seconds["random directions"]
    rows = [[name, losses[name], f"{1000 * taken:.2f}"] for name, taken in seconds.items()]
    return measure.table([f"check at d = {width}", "losses", "ms"], rows) + f"\n\nRatio: {ratio:.0f}."


def imports(rounds: int) -> str:
    def run(statement: str) -> None:
        subprocess.run([sys.executable, "-c", statement], check=True)

    statements = {"nothing": "pass", "numpy": "import numpy", "proof_lm": "import proof_lm"}
    seconds = measure.medians({name: lambda text=text: run(text) for name, text in statements.items()}, rounds)
    numpy, own = (seconds[name] - seconds["nothing"] for name in ("numpy", "proof_lm"))
    return f"`import proof_lm` takes {own / numpy:.2f} times as long as `import numpy` (without Python's own start)."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    torch.set_num_threads(1)
    measure.write_section("speed.md", "attention", attention(options.rounds))
    measure.write_section("speed.md", "gradients", gradients(options.rounds))
    measure.write_section("speed.md", "imports", imports(options.rounds))


if __name__ == "__main__":
    main()
