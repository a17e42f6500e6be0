"""What the benchmarks share: timing in turns, medians, and tables that they write into the docs."""

from __future__ import annotations

import os
import random
import statistics
import time
from collections.abc import Callable, Iterable
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
# A BLAS that was told to be another processor's, or to have another cache, is not what users run.
for variable in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
    os.environ.pop(variable, None)


def medians(candidates: dict[str, Callable[[], object]], rounds: int, calls: int = 1) -> dict[str, float]:
    """Median seconds of each candidate; all take turns, so that a busy machine is busy for all of them.

    The order changes from round to round, as one leaves the caches to the next. Of candidates so short that this would
    decide, a turn times several calls, after one that is not timed.
    """
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for candidate in candidates.values():  # the first call pays for caches and lazy imports
        candidate()
    turns, order = list(candidates.items()), random.Random(41)
    for _ in range(rounds):
        order.shuffle(turns)
        for name, candidate in turns:
            if calls > 1:
                candidate()
            for _ in range(calls):
                began = time.perf_counter()
                candidate()
                seconds[name].append(time.perf_counter() - began)
    return {name: statistics.median(values) for name, values in seconds.items()}


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A Markdown table; the first column is text, the others are set flush right."""
    head = list(head)
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def save_figure(figure, name: str) -> None:
    """Keep a Matplotlib figure as docs/figures/<name>.png, where the tables show it."""
    (DOCS / "figures").mkdir(exist_ok=True)
    figure.savefig(DOCS / f"figures/{name}.png", dpi=120)


def write_section(document: str, name: str, text: str) -> None:
    """Replace what stands between the document's marks `<!-- name -->` and `<!-- end name -->`, and print it."""
    path, (begin, end) = DOCS / document, (f"<!-- {name} -->", f"<!-- end {name} -->")
    before, mark, rest = path.read_text().partition(begin)
    _, end_mark, after = rest.partition(end)
    if not (mark and end_mark):
        raise SystemExit(f"{path}: expected the marks {begin} and {end}")
    path.write_text(f"{before}{begin}\n{text.strip()}\n{end}{after}")
    print(text)
