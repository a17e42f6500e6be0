"""Grading a class against stock nbgrader, in one run on one machine.

    python benchmarks/grading.py                          the tables of docs/grading-speed.md and docs/scale.md
    python benchmarks/grading.py --submissions 8 --keep   a quick look that leaves the pages alone
    python benchmarks/grading.py --scale 2000             growth up to 2,000 submissions; 0 for the comparison alone

Stock is `nbgrader autograde` with its own classes and no sandbox over the very same submissions; whole commands are
timed, from start to exit. With `--otter /path/to/otter` (of an environment of its own that has torch, ipykernel and
otter-grader) `otter run` is timed beside it on one notebook that imports torch.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import psutil
from nbgrader.api import Gradebook

from benchmarks.classes import ROOT, SET, build, environment, helpers, kernels, private_bytes, sampled, say
from benchmarks.measure import write_section

MEBIBYTE = 1 << 20


def timed(command: list[str], cwd: Path, memory: list[int] | None = None) -> float:
    """Seconds of a whole command; what its own processes hold at most goes to `memory`, in bytes."""
    begin = time.perf_counter()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, cwd=cwd, env=environment(), stdout=output, stderr=output)
        with sampled(process.pid, lambda p: memory.append(sum(map(_resident, helpers(p)))), 0.5) if memory is not None \
                else sampled(process.pid, lambda p: None, 60):  # fmt: skip
            status = process.wait()
        seconds = time.perf_counter() - begin
        if status:
            output.seek(0)
            raise SystemExit(f"{' '.join(command)} ended with {status}:\n{output.read().decode()[-2000:]}")
    return seconds


def _resident(process: psutil.Process) -> int:
    try:
        return process.memory_info().rss
    except psutil.NoSuchProcess:
        return 0


def ours(what: str, course: Path) -> list[str]:
    return [sys.executable, "-m", "grading", what, SET, "--root", str(course)]


def points(course: Path) -> dict[str, dict[str, float]]:
    """Points for code by student and test cell."""
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        return {
            submission.student.id: {g.name: g.auto_score for g in submission.notebooks[0].grades if "-tests" in g.name}
            for submission in gradebook.assignment_submissions(SET)
        }


def kernel_memory(course: Path) -> float:
    """Median over kernels of the most that one held privately, in MiB."""
    held: dict[int, int] = {}

    def look(process: psutil.Process) -> None:
        for kernel in kernels(process):
            held[kernel.pid] = max(held.get(kernel.pid, 0), private_bytes(kernel))

    process = subprocess.Popen(
        ours("grade", course), cwd=ROOT, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    with sampled(process.pid, look, 0.02):
        process.wait()
    most = sorted(held.values())
    return most[len(most) // 2] / MEBIBYTE if most else math.nan


def otter_seconds(otter: Path, folder: Path) -> float:
    """Seconds of `otter run` on one notebook that imports torch and has one test."""
    import nbformat
    from nbformat.v4 import new_code_cell, new_notebook, new_raw_cell

    cells = [
        new_raw_cell("# ASSIGNMENT CONFIG\ninit_cell: false\nexport_cell: false\ngenerate: true"),
        new_code_cell("import torch"),
        new_raw_cell("# BEGIN QUESTION\nname: q1\npoints: 1"),
        new_raw_cell("# BEGIN SOLUTION"),
        new_code_cell("total = torch.ones(3).sum().item() # SOLUTION"),
        new_raw_cell("# END SOLUTION"),
        new_raw_cell("# BEGIN TESTS"),
        new_code_cell("total == 3"),
        new_raw_cell("# END TESTS"),
        new_raw_cell("# END QUESTION"),
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(new_notebook(cells=cells, metadata=kernel), folder / "work.ipynb")
    quiet = {"cwd": folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    subprocess.run([otter, "assign", "work.ipynb", "dist", "--no-run-tests"], check=True, **quiet)
    archive = next((folder / "dist" / "autograder").glob("*.zip"))
    begin = time.perf_counter()
    subprocess.run([otter, "run", "-a", archive, folder / "dist" / "autograder" / "work.ipynb"], check=True, **quiet)
    return time.perf_counter() - begin


def compare(folder: Path, size: int) -> dict:
    """Stock over a class, and ours over the same before it and after it: a machine is not as fast at all times."""
    stock, before, after = (folder / name for name in ("stock", "before", "after"))
    for place in (stock, before, after):
        build(place, size)
    turns = [one_turn(before, size)]
    say(f"stock nbgrader autograde over {size} submissions")
    nbgrader = [sys.executable, "-m", "nbgrader", "autograde", SET, f"--course-dir={stock}", "--log-level=ERROR"]
    found = {"stock": timed(nbgrader, stock)}
    say(f"  {found['stock'] / size:.2f} s a submission")
    turns.append(one_turn(after, size))
    found |= {what: statistics.mean(turn[what] for turn in turns) for what in turns[0]}
    found["same_points"] = points(stock) == points(before) == points(after)
    found["rows"] = sum(map(len, points(after).values()))
    found["stored_bytes"] = sum(p.stat().st_size for p in (after / ".prooflm").rglob("*") if p.is_file()) / size
    return found


def one_turn(course: Path, size: int) -> dict[str, float]:
    """Seconds of grading a class, of judging it again with nothing changed, and with every grade to be written anew."""
    seconds = {"ours": timed(ours("grade", course), ROOT), "regrade": timed(ours("regrade", course), ROOT)}
    subprocess.run(["rm", "-r", str(course / "autograded")], check=True)
    seconds["regrade_all"] = timed(ours("regrade", course), ROOT)
    say("  ".join(f"{what} {taken / size:.3f} s a submission" for what, taken in seconds.items()))
    return seconds


def growth(folder: Path, sizes: list[int]) -> list[tuple[int, float, float, float]]:
    """(submissions, seconds, MiB of the grader's own processes at most, coordinator's core-seconds) for these sizes."""
    rows = []
    for size in sizes:
        course, memory = folder / f"class{size}", []
        build(course, size)
        seconds = timed(ours("grade", course), ROOT, memory)
        record = json.loads(next((course / ".prooflm" / "runs").iterdir()).read_text())
        rows.append((size, seconds, max(memory, default=0) / MEBIBYTE, record["seconds"]["coordinator"]))
        say(f"  {size} submissions: {seconds:.1f} s, {rows[-1][2]:.0f} MiB in the grader's own processes")
        subprocess.run(["rm", "-r", str(course)], check=True)
    return rows


def comparison(found: dict, memory: float, otter: float | None, size: int) -> str:
    cores = len(os.sched_getaffinity(0))
    stock, here = found["stock"] / size, found["ours"] / size
    same = "the same points in every cell" if found["same_points"] else "DIFFERENT POINTS"
    otter_row = f"| `otter run` (one notebook, one test) | {otter:.2f} s | {otter / here:.1f} |" if otter else (
        "| `otter run` | not measured in this run | |")  # fmt: skip
    lines = [
        f"{size} submissions of P4 (each imports torch and runs a small decoder), {cores} processors; {same}",
        f"({found['rows']} grades) from both.",
        "",
        "| command | a submission | times `make grade` |",
        "|---|--:|--:|",
        f"| stock `nbgrader autograde`, no sandbox | {stock:.2f} s | {stock / here:.1f} |",
        otter_row,
        f"| `make grade`, sandbox and verdicts | {here:.2f} s | 1 |",
        f"| `make regrade`, nothing changed | {found['regrade'] / size:.3f} s | {found['regrade'] / found['ours']:.3f} |",
        f"| `make regrade`, every grade written anew | {found['regrade_all'] / size:.3f} s "
        f"| {found['regrade_all'] / found['ours']:.3f} |",
        "",
        f"Stock takes {found['stock'] / found['ours']:.1f} times as long as `make grade` and "
        f"{found['stock'] / found['regrade_all']:.0f} times as long as `make regrade`. "
        f"A kernel holds {memory:.0f} MiB of its own (median); the rest it shares with the warm process.",
    ]
    return "\n".join(lines)


def growth_table(rows: list) -> str:
    lines = [
        "| submissions | seconds | a submission | grader's own processes |",
        "|--:|--:|--:|--:|",
        *(f"| {n:,} | {seconds:.1f} | {seconds / n:.3f} s | {mib:.0f} MiB |" for n, seconds, mib, _ in rows),
    ]
    return "\n".join(lines)


def scale_page(found: dict, rows: list, size: int, target: int, price: float) -> str:
    """Nodes, hours and cost for `target` submissions, from what was just measured."""
    (few, first, _, busy), (many, last, _, busy_for_all) = rows[0], rows[-1]
    cores = len(os.sched_getaffinity(0))
    judge = (busy_for_all - busy) / (many - few)  # core-seconds of the coordinator for one more submission
    work = cores * (last - first) / (many - few) - judge  # and of the workers
    stock = found["stock"] / size  # core-seconds: stock runs one kernel at a time
    lines = [
        "| measured | value | from |",
        "|---|--:|---|",
        f"| run one more submission | {work:.2f} core-seconds | growth from {few} to {many:,} submissions, {cores} cores |",
        f"| take in, judge and record it | {judge:.3f} core-seconds | the same runs' records: the coordinator's own |",
        f"| stored answers | {found['stored_bytes'] / 1024:.0f} KiB | files in `.prooflm/` |",
        f"| stock nbgrader | {stock:.2f} s | one kernel at a time |",
        f"| price of a core-hour | {price:.3f} $ | an assumption: put in your own (`--price`) |",
        "",
        f"| {target:,} submissions | nodes of 16 cores | hours | core-hours | cost |",
        "|---|--:|--:|--:|--:|",
    ]
    for nodes in (1, 4, 16):
        running, judging = target * work / (16 * nodes) / 3600, target * judge / 3600
        hours, paid = max(running, judging), 16 * nodes * running + judging
        lines.append(f"| `make grade` | {nodes} | {hours:.1f} | {paid:.0f} | {paid * price:.2f} $ |")
    hours = target * stock / 3600
    lines.append(f"| stock, one machine, one core used | 1 | {hours:.1f} | {hours:.0f} | {hours * price:.2f} $ |")
    lines.append("")
    lines.append(f"Answers of all {target:,} take {target * found['stored_bytes'] / 1024**3:.1f} GiB.")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--submissions", type=int, default=40)
    parser.add_argument("--scale", type=int, default=160, help="largest class of the growth table; 0 for none")
    parser.add_argument("--otter", type=Path, help="the otter of an environment that has torch and otter-grader")
    parser.add_argument("--target", type=int, default=100_000, help="submissions that docs/scale.md plans")
    parser.add_argument("--price", type=float, default=0.05, help="of a core-hour, in dollars")
    parser.add_argument("--keep", action="store_true", help="print, and leave the pages as they are")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="prooflm-bench-") as name:
        folder = Path(name)
        found = compare(folder, given.submissions)
        say("private memory of kernels, in a run of its own")
        build(folder / "memory", min(8, given.submissions))
        memory = kernel_memory(folder / "memory")
        otter = None
        if given.otter:
            say("otter run")
            (folder / "otter").mkdir()
            otter = otter_seconds(given.otter, folder / "otter")
        rows = []
        if given.scale:
            say("growth")
            known = {n for n in (10, 40, 160, 500, 1000, 2000) if n < given.scale}
            rows = growth(folder, sorted(known | {max(1, given.scale // 4), given.scale}))
    sections = [("grading-speed.md", "comparison", comparison(found, memory, otter, given.submissions))]
    if rows:
        sections.append(("grading-speed.md", "growth", growth_table(rows)))
        sections.append(("scale.md", "measured", scale_page(found, rows, given.submissions, given.target, given.price)))
    for section in sections:
        print(section[-1], end="\n\n") if given.keep else write_section(*section)
    print(json.dumps({"cores": len(os.sched_getaffinity(0)), "python": sys.version.split()[0], **found}))


if __name__ == "__main__":
    main()
