"""Generation of 200 tokens after 16 against the peers, with and without cache; writes docs/speed.md.

    .venv/bin/python benchmarks/generation.py [--rounds 3] [--threads 1 2] [--sizes S M]

All models draw from the whole distribution at temperature 1, in turns; nanoGPT has no cache.
"""

from __future__ import annotations

import argparse

import torch
from measure import medians, table, write_section
from peers import PEERS, SIZES, proof_lm

PROMPT, NEW, CONTEXT = 16, 200, 256


def compare(sizes: list[str], threads: list[int], rounds: int) -> str:
    rows = []
    for count in threads:
        torch.set_num_threads(count)
        for name in sizes:
            models = {label: build(SIZES[name], CONTEXT) for label, build in {"ProofLM": proof_lm, **PEERS}.items()}
            for peer in models.values():
                peer.model.eval()
            for sequences in (1, 8):
                ids = torch.randint(SIZES[name].V, (sequences, PROMPT), generator=torch.Generator().manual_seed(41))
                runs = {label: lambda peer=peer, ids=ids: peer.generate(ids, NEW) for label, peer in models.items()}
                for label, run in runs.items():
                    assert run().shape == (sequences, PROMPT + NEW), label
                seconds = medians(runs, rounds)
                rows.append([f"{name}, {count} threads, {sequences} at once", f"{sequences * NEW / seconds['ProofLM']:,.0f}"])
                rows[-1] += [f"{seconds[label] / seconds['ProofLM']:.1f}" for label in PEERS]
    return table(["size", "ProofLM, tokens/s", *(f"times {label}" for label in PEERS)], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    options = parser.parse_args()
    torch.manual_seed(41)
    write_section("speed.md", "generation", compare(options.sizes, options.threads, options.rounds))


if __name__ == "__main__":
    main()
