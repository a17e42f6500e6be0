"""Generation of 200 tokens after 16 against the peers, with and without cache; writes docs/speed.md.

    .venv/bin/python benchmarks/generation.py [--rounds 3] [--threads 1 2] [--sizes S M]

All models draw from the whole distribution at temperature 1, in turns; nanoGPT has no cache. Then ProofLM alone, with
and without its cache, for texts of growing length.
"""

from __future__ import annotations

import argparse

import torch
from matplotlib.figure import Figure
from measure import medians, save_figure, table, write_section
from peers import PEERS, SIZES, proof_lm

PROMPT, NEW, CONTEXT = 16, 200, 256
LENGTHS, LONG_CONTEXT = (1, 4, 16, 64, 256, 1000), 1024


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
                rows.append(
                    [f"{name}, {count} threads, {sequences} at once", f"{sequences * NEW / seconds['ProofLM']:,.0f}"]
                )
                rows[-1] += [f"{seconds[label] / seconds['ProofLM']:.1f}" for label in PEERS]
    return table(["size", "ProofLM, tokens/s", *(f"times {label}" for label in PEERS)], rows)


def by_length(rounds: int) -> str:
    """Seconds for one text on S as it grows, one thread; the figure beside the table is on logarithmic axes."""
    torch.set_num_threads(1)
    model = proof_lm(SIZES["S"], LONG_CONTEXT).model.eval()
    ids = torch.randint(SIZES["S"].V, (1, PROMPT), generator=torch.Generator().manual_seed(41))
    runs = {
        (new, use_cache): lambda new=new, use_cache=use_cache: model.generate(ids, new, use_cache=use_cache)
        for new in LENGTHS
        for use_cache in (False, True)
    }
    seconds = medians(runs, rounds)
    figure = Figure(figsize=(6, 3.5), layout="constrained")
    axes = figure.subplots()
    for use_cache, label, style in ((False, "without cache", "o-"), (True, "with cache", "s--")):
        axes.loglog(LENGTHS, [seconds[new, use_cache] for new in LENGTHS], style, label=label)
    axes.set(xlabel=f"new tokens after {PROMPT}", ylabel="seconds")
    axes.legend()
    save_figure(figure, "generation")
    rows = [
        [
            new,
            f"{seconds[new, False]:.3f}",
            f"{seconds[new, True]:.3f}",
            f"{seconds[new, False] / seconds[new, True]:.1f}",
        ]
        for new in LENGTHS
    ]
    return table(["new tokens", "seconds without cache", "with cache", "ratio"], rows) + (
        "\n\n![Seconds by number of new tokens on logarithmic axes: with the cache they grow nearly in proportion, without "
        "it much faster.](figures/generation.png)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    options = parser.parse_args()
    torch.manual_seed(41)
    write_section("speed.md", "generation", compare(options.sizes, options.threads, options.rounds))
    write_section("speed.md", "generation by length", by_length(options.rounds))


if __name__ == "__main__":
    main()
