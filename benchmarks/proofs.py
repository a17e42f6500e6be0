"""The share of held-out theorems that the default run proves, by seed, beside its baselines; writes docs/training.md and README.md.

    .venv/bin/python benchmarks/proofs.py 41 42 43     train what is missing
    .venv/bin/python benchmarks/proofs.py              table and figures from what is measured already

Each seed trains in runs/proofs-<seed>, as `make train` does in runs/proofs, and may be stopped and called again.
Minutes are those of runs that had the machine to themselves; `--untimed` says that this one has not.
Results are kept in docs/figures/proofs.json, so that tables and figures can be drawn anew without training.
"""

from __future__ import annotations

import argparse
import json
import statistics
from dataclasses import replace
from functools import partial

from matplotlib.figure import Figure
from measure import DOCS, save_figure, table, write_section

from proof_lm.training import (
    ProofData,
    State,
    TrainConfig,
    held_out,
    load_data,
    load_newest,
    make_optimiser,
    new_state,
    prove,
    train,
)
from proof_lm.training.baselines import NGram, remove_attention
from proof_lm.training.checkpoints import checkpoints
from proof_lm.training.evaluation import counted
from proof_lm.training.progress import Bar, CsvLog, read_log

THEOREMS = 500  # of each kind, the same for every model
TEST_SEED = 2026  # a draw that no choice of task or options was made on
LONGER = 3  # how many more lines the longer theorems' proofs have, at most
RESULTS = DOCS / "figures/proofs.json"
NAMES = {
    "trained": "ProofLM, trained",
    "untrained": "ProofLM, untrained",
    "no attention": "no attention, trained",
    "6-gram": "6-gram",
}


def test_sets(config: TrainConfig) -> dict[str, list]:
    levels = {
        "held-out": range(1, config.hardest + 1),
        "longer": range(config.hardest + 1, config.hardest + 1 + LONGER),
    }
    options = {"largest_formula": config.largest_formula}
    return {name: held_out("test", THEOREMS, TEST_SEED, levels=tuple(of), **options) for name, of in levels.items()}


def rates(write, config: TrainConfig) -> dict[str, dict[int, list[int]]]:
    """For each test set [proved, asked] by level; `write` gives a proof's text for each theorem of a list."""
    return {
        name: counted(examples, write([theorem for theorem, _ in examples]))
        for name, examples in test_sets(config).items()
    }


def trained(config: TrainConfig) -> tuple[State, float]:
    """The run in its folder, taken to its end, and the seconds its steps took in all."""
    state = load_newest(config.run) if checkpoints(config.run) else new_state(config, ProofData.vocab_size)
    log, bar = CsvLog(state), Bar(state)

    def watch(report) -> None:
        log(report)
        bar(report)

    try:
        train(state, load_data(config), load_data(config, "validation"), watch=watch)
    finally:
        log.close()
        bar.close()
    if state.step < config.steps:
        raise SystemExit(f"stopped after step {state.step}; the same command goes on")
    return state, sum(float(row["seconds"]) for row in read_log(f"{config.run}/log.csv"))


def without_attention(config: TrainConfig) -> State:
    """The same run, its model's attention taken out; short enough not to need checkpoints of its own."""
    state = new_state(replace(config, run=f"{config.run}-no-attention"), ProofData.vocab_size)
    remove_attention(state.model)
    state.optimiser = make_optimiser(state.model, config)
    return train(state, load_data(config))


def measure(seed: int, timed: bool) -> None:
    """Train and count what is not in the results yet, and keep it there."""
    config = TrainConfig(seed=seed, run=f"runs/proofs-{seed}")
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}

    def write_trained() -> tuple:
        state, seconds = trained(config)
        return partial(prove, state.model), {"curve": curve(config)} | ({"seconds": seconds} if timed else {})

    def write_untrained() -> tuple:
        return partial(prove, new_state(config, ProofData.vocab_size).model), {}

    def write_without_attention() -> tuple:
        return partial(prove, without_attention(config).model, use_cache=False), {}

    def write_counts() -> tuple:
        return partial(NGram(load_data(config).sequences).prove, limit=config.context_length), {}

    makers = (write_trained, write_untrained, write_without_attention, write_counts)
    for name, make in zip(NAMES, makers, strict=True):
        if str(seed) not in results.setdefault(name, {}):
            write, about = make()
            results[name][str(seed)] = rates(write, config) | about
            RESULTS.parent.mkdir(exist_ok=True)
            RESULTS.write_text(json.dumps(results, indent=1) + "\n")


def curve(config: TrainConfig) -> list[tuple[int, float]]:
    rows = read_log(f"{config.run}/log.csv")
    return [(int(row["step"]), float(row["validation_loss"])) for row in rows if row["validation_loss"]]


def percent(counts: dict[str, list[int]]) -> float:
    return 100 * sum(proved for proved, _ in counts.values()) / sum(asked for _, asked in counts.values())


def spread(values: list[float]) -> str:
    """Mean and, of several seeds, standard deviation; their number in brackets."""
    deviation = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.1f}{deviation} ({len(values)})"


def summary(results: dict) -> str:
    """Every model's share of both kinds of theorems."""
    rows = []
    for name, title in NAMES.items():
        runs = results.get(name, {}).values()
        if not runs:
            rows.append([title, *["not measured"] * 2, ""])
            continue
        minutes = [run["seconds"] / 60 for run in runs if "seconds" in run]
        row = [title, *(spread([percent(run[kind]) for run in runs]) for kind in ("held-out", "longer"))]
        rows.append([*row, spread(minutes) if minutes else ""])
    return table(["% of theorems proved (seeds)", "held-out", "longer than any seen", "minutes"], rows)


def details(results: dict) -> str:
    """The trained model's share by length of proof, and the figure."""
    trained = results["trained"]
    rows = [
        [
            f"{level} line{'s' * (level != '1')}",
            spread([100 * run[kind][level][0] / run[kind][level][1] for run in trained.values()]),
        ]
        for kind in ("held-out", "longer")
        for level in next(iter(trained.values()))[kind]
    ]
    return table(["ProofLM, trained, by length of proof", "% proved (seeds)"], rows) + (
        "\n\n![Validation loss falls with the steps for every seed; the share of theorems proved is high up to the length "
        "of the proofs trained on and falls beyond it.](figures/proofs.png)"
    )


def draw(results: dict) -> None:
    figure = Figure(figsize=(9, 3.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    for (seed, run), style in zip(results["trained"].items(), ("-", "--", ":", "-.") * 9, strict=False):
        steps, losses = zip(*run["curve"], strict=True)
        left.plot([step / 1000 for step in steps], losses, style, label=f"seed {seed}")
        counts = run["held-out"] | run["longer"]
        right.plot(list(map(int, counts)), [100 * proved / asked for proved, asked in counts.values()], f"o{style}")
    left.set(xlabel="thousand steps", ylabel="validation loss (nats per token)", yscale="log")
    left.legend()
    right.axvline(TrainConfig.hardest, color="grey", linewidth=1)
    right.set(
        xlabel="lines of the proof (grey: longest trained on)",
        ylabel="% of theorems proved",
        ylim=(0, 100),
    )
    save_figure(figure, "proofs")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("seeds", type=int, nargs="*", help="seeds to train and count")
    parser.add_argument("--untimed", action="store_true", help="others use the machine meanwhile")
    options = parser.parse_args()
    for seed in options.seeds:
        measure(seed, not options.untimed)
    if not RESULTS.exists():
        raise SystemExit("nothing is measured yet: name a seed to train, for instance 41")
    results = json.loads(RESULTS.read_text())
    draw(results)
    write_section("../README.md", "proofs", summary(results))
    write_section("training.md", "proofs", f"{summary(results)}\n\n{details(results)}")


if __name__ == "__main__":
    main()
