"""Kernels from start to first answer to end: plain, cold sandbox, warm sandbox, as ratios to plain.

    python benchmarks/kernels.py [repetitions]

The first cell imports NumPy and torch, as every submission does, and takes one gradient step. Medians; private
memory is what the kernel's processes share with nobody (Private_Clean + Private_Dirty).
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from grading.sandbox import Policy, SandboxedKernelManager
from grading.sandbox.limits import family
from grading.sandbox.warm import warm_process

CELL = """
import numpy, torch
layer = torch.nn.Linear(64, 64)
layer(torch.ones(8, 64)).sum().backward()
print(numpy.ones(3).sum())
"""
KINDS = {
    "plain": {"unsafe": True},
    "cold": {"policy": Policy(start="cold")},
    "warm": {"policy": Policy(start="warm")},
}


def private_bytes(pid: int) -> int:
    """Memory that no other process shares."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Private_"))


async def cycle(options: dict) -> dict[str, float]:
    """Seconds of one kernel's stages and the bytes it held."""
    begin = time.perf_counter()
    manager = SandboxedKernelManager(**options)
    await manager.start_kernel(extra_arguments=["--HistoryManager.hist_file=:memory:"])
    client = manager.client()
    client.start_channels()
    await client.wait_for_ready(timeout=120)
    ready = time.perf_counter()
    text: list[str] = []
    await client.execute_interactive(CELL, output_hook=lambda message: text.append(message["content"].get("text", "")))
    answered = time.perf_counter()
    assert "".join(text) == "3.0\n", text
    process = manager.provisioner.process
    held = sum(map(private_bytes, family(process.pid if manager.isolation == "none" else process.init)))
    ending = time.perf_counter()
    client.stop_channels()
    await manager.shutdown_kernel(now=True)
    end = time.perf_counter() - ending
    return {"ready": ready - begin, "answer": answered - begin, "end": end, "all": answered - begin + end, "held": held}


def main() -> None:
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    warm_process(KINDS["warm"]["policy"])  # its preloading is paid once for a class
    runs: dict[str, list[dict[str, float]]] = {kind: [] for kind in KINDS}
    for _ in range(repetitions):  # in turns, so that a busy machine is busy for all
        for kind, options in KINDS.items():
            runs[kind].append(asyncio.run(cycle(options)))
    medians = {
        kind: {name: statistics.median(run[name] for run in results) for name in results[0]}
        for kind, results in runs.items()
    }
    print(f"{'kernel':8}{'ready':>10}{'answer':>10}{'end':>10}{'all':>10}{'plain/all':>12}{'private MiB':>14}")
    for kind, median in medians.items():
        seconds = "".join(f"{median[name]:>8.3f} s" for name in ("ready", "answer", "end", "all"))
        ratio = medians["plain"]["all"] / median["all"]
        print(f"{kind:8}{seconds}{ratio:>12.1f}{median['held'] / 2**20:>14.0f}")


if __name__ == "__main__":
    main()
