"""Training steps a second against the peers, memory kept for backward, and how the cost grows; writes docs/speed.md.

    .venv/bin/python benchmarks/training.py [--rounds 9] [--threads 1 2] [--sizes S M] [--compiled] [--growth]

A step is forward, masked cross-entropy, backward and fused AdamW on one batch, all models in turns. Compiling happens
before, anew for each size and number of threads; how long it took stands beside the model.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace

import torch
import torch.nn.functional as F
from measure import medians, save_figure, table, write_section
from peers import PEERS, SIZES, Peer, Size, proof_lm
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks

from proof_lm.training import TrainConfig
from proof_lm.training.speed import prepare, settled


def step(model: nn.Module, loss: Callable[[], Tensor]) -> Callable[[], None]:
    optimiser = torch.optim.AdamW(model.parameters(), 1e-3, fused=True)

    def run() -> None:
        loss().backward()
        optimiser.step()
        optimiser.zero_grad()

    return run


def candidates(size: Size, ids: Tensor, labels: Tensor, compiled: bool = False) -> dict[str, Callable[[], None]]:
    """One training step of each model; ProofLM with each switch that works here, and as `auto` settles it."""
    steps = own_steps(size, ids, labels, compiled)
    for name, build in PEERS.items():
        peer: Peer = build(size, size.T)
        peer.model.train()
        steps[name] = step(peer.model, lambda peer=peer: F.cross_entropy(peer.logits(ids).flatten(0, 1), labels.flatten()))
    return steps


def own_steps(size: Size, ids: Tensor, labels: Tensor, compiled: bool) -> dict[str, Callable[[], None]]:
    own, mask, steps = config(size), torch.ones_like(labels, dtype=torch.bool), {}
    half = replace(own, precision="bfloat16")
    switched = {"float32": own, "bfloat16": half, "auto": settled(replace(own, precision="auto"))}
    if compiled:
        torch.compiler.reset()
        switched["bfloat16, compiled"] = replace(half, compile=True)
    for name, chosen in switched.items():
        missing, began = [], time.perf_counter()
        model = prepare(proof_lm(size, size.T).model, chosen, missing.append)
        if missing:
            print(*missing, sep="\n")
            continue
        run = step(model, lambda model=model: model(ids, labels, mask)[1])
        run()
        took = f" in {time.perf_counter() - began:.0f} s" if chosen.compile else ""
        steps[f"ProofLM, {name}{took}"] = run
    return steps


def config(size: Size) -> TrainConfig:
    return TrainConfig(
        context_length=size.T, n_layers=size.L, d_model=size.d, n_heads=size.h, d_ff=size.ff, batch_size=size.B
    )


def batch(size: Size) -> tuple[Tensor, Tensor]:
    tokens = torch.randint(size.V, (size.B, size.T + 1), generator=torch.Generator().manual_seed(41))
    return tokens[:, :-1], tokens[:, 1:]


def kept_for_backward(peer: Peer, ids: Tensor) -> int:
    """Bytes of the tensors that the forward pass saves, each storage once, the weights left out."""
    weights = {parameter.untyped_storage().data_ptr() for parameter in peer.model.parameters()}
    kept: dict[int, tuple[Tensor, int]] = {}

    def pack(saved: Tensor) -> Tensor:
        storage = saved.untyped_storage()
        if storage.data_ptr() not in weights:
            kept[storage.data_ptr()] = (saved, storage.nbytes())  # held, so that no address is used twice
        return saved

    peer.model.train()
    with saved_tensors_hooks(pack, lambda saved: saved):
        loss = F.cross_entropy(peer.logits(ids).flatten(0, 1), ids.flatten())
    del loss
    return sum(count for _, count in kept.values())


def compare(sizes: list[str], threads: list[int], rounds: int, compiled: bool) -> str:
    rows = []
    for count in threads:
        torch.set_num_threads(count)
        for name in sizes:
            size = SIZES[name]
            seconds = medians(candidates(size, *batch(size), compiled), rounds)
            nano = seconds["nanoGPT (written anew)"]
            tokens = size.B * size.T
            rows += [
                [f"{name}, {count} threads: {model}", f"{tokens / taken:,.0f}", f"{nano / taken:.2f}"]
                for model, taken in seconds.items()
            ]
    return table(["size, threads: model", "tokens/s", "of nanoGPT's"], rows)


def memory(sizes: list[str]) -> str:
    rows = []
    for name in sizes:
        size = SIZES[name]
        own, nano = (kept_for_backward(build(size, size.T), batch(size)[0]) for build in (proof_lm, PEERS["nanoGPT (written anew)"]))
        rows.append([name, f"{own / 2**20:.1f}", f"{nano / 2**20:.1f}", f"{own / nano:.3f}"])
    return table(["size", "ProofLM, MiB", "nanoGPT, MiB", "ratio"], rows)


def flops_per_token(size: Size) -> float:
    """Multiplications and additions of forward and backward: 6 for each weight in a product, 6 L T d for attention.

    The 12 L T d of full attention is halved, as a causal kernel need not look ahead.
    """
    weights = size.L * (4 * size.d**2 + 2 * size.d * size.ff) + size.V * size.d
    return 6 * weights + 6 * size.L * size.T * size.d


def matmul_flops(rounds: int = 20, n: int = 1024) -> float:
    """What this machine reaches on a square float32 product, per second."""
    a, b = torch.randn(n, n), torch.randn(n, n)
    return 2 * n**3 / medians({"matmul": lambda: a @ b}, rounds)["matmul"]


def growth(rounds: int) -> str:
    """tokens/s as one of B, T, L, d grows and the others stay at S; utilisation is of a measured product."""
    base, rows, curves = SIZES["S"], [], {}
    peak = matmul_flops()
    for axis, values in {"B": (1, 4, 16, 64), "T": (32, 128, 512), "L": (1, 4, 8), "d": (32, 128, 256)}.items():
        steps, sizes = {}, {}
        for value in values:
            size = base._replace(**{axis: value}, **({"ff": 4 * value} if axis == "d" else {}))
            (ids, labels), model = batch(size), proof_lm(size, size.T).model
            sizes[value], steps[value] = size, step(model, lambda m=model, i=ids, t=labels: m(i, t)[1])
        for value, taken in medians(steps, rounds).items():
            size = sizes[value]
            rate = size.B * size.T / taken
            used = rate * flops_per_token(size) / peak
            rows.append([f"{axis} = {value}", f"{rate:,.0f}", f"{used:.0%}"])
            curves.setdefault(axis, []).append((value, rate, used))
    plot(curves)
    return table(["S, but", "tokens/s", "FLOPs utilisation"], rows) + (
        "\n\n![Tokens a second and FLOPs utilisation as batch, time, layers and width grow: small batches and widths "
        "leave most of the machine unused, longer sequences and more layers cost in proportion.](figures/growth.png)"
    )


def plot(curves: dict[str, list[tuple[int, float, float]]]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    for (axis, points), marker in zip(curves.items(), "osv^", strict=True):
        values, rates, used = zip(*points, strict=True)
        left.plot(values, rates, marker=marker, label=axis)
        right.plot(values, [100 * share for share in used], marker=marker, label=axis)
    left.set(xscale="log", yscale="log", xlabel="size of the axis that grows", ylabel="tokens/s")
    right.set(xscale="log", xlabel="size of the axis that grows", ylabel="% of a measured product's FLOPs")
    left.legend()
    save_figure(figure, "growth")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--compiled", action="store_true", help="compile ProofLM too, minutes for each row")
    parser.add_argument("--growth", action="store_true", help="measure growth instead, on one thread")
    options = parser.parse_args()
    torch.manual_seed(41)
    if options.growth:
        torch.set_num_threads(1)
        write_section("speed.md", "growth", growth(options.rounds))
        return
    write_section("speed.md", "training", compare(options.sizes, options.threads, options.rounds, options.compiled))
    write_section("speed.md", "memory", memory(options.sizes))


if __name__ == "__main__":
    main()
