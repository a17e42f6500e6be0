"""Does grading hold level? Many submissions, one in twenty hostile or broken; memory and descriptors over time.

    python benchmarks/soak.py [submissions]            500 unless said otherwise

Samples the coordinator and its workers each second and prints them by quarter of the run: what leaks shows as a rise
from quarter to quarter.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import psutil

from benchmarks.classes import ROOT, SET, build, environment, hand_in, helpers, sampled, say

HOSTILE = {
    "floods_output": "for _ in range(3_000_000): print('flood ' * 40)",
    "takes_memory": "hoard = [bytearray(1 << 24) for _ in range(1000)]",
    "forks": "import os\nfor _ in range(500): os.fork()",
    "ends_itself": "import os\nos._exit(3)",
    "fills_the_disk": "with open('big', 'wb') as f:\n    for _ in range(4000): f.write(bytes(1 << 20))",
    "opens_files": "held = [open('/dev/null') for _ in range(100_000)]",
    "leaves_a_child": "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(1000)\n    os._exit(0)",
}
BROKEN = {"cut_off": lambda text: text[: len(text) // 2], "empty": lambda text: "", "no_json": lambda text: "hello"}


def spoil(course: Path, size: int) -> None:
    """Every twentieth submission becomes hostile or broken, each kind in turn."""
    kinds = [*HOSTILE, *BROKEN]
    for turn, number in enumerate(range(0, size, 20)):
        path = course / "submitted" / f"student{number:05d}" / SET / f"{SET}.ipynb"
        text, kind = path.read_text(encoding="utf-8"), kinds[turn % len(kinds)]
        if kind in BROKEN:
            text = BROKEN[kind](text)
        else:
            notebook = json.loads(text)
            cell = {
                "cell_type": "code",
                "metadata": {},
                "source": HOSTILE[kind],
                "outputs": [],
                "execution_count": None,
            }
            notebook["cells"].insert(3, {**cell, "id": "hostile"})
            text = json.dumps(notebook)
        path.unlink()
        path.parent.rmdir()
        path.parent.parent.rmdir()
        hand_in(course, f"student{number:05d}", text)


def main() -> None:
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    samples: dict[str, list[tuple[float, int, int]]] = defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="prooflm-soak-") as name:
        course = Path(name)
        build(course, size)
        spoil(course, size)
        command = [sys.executable, "-m", "grading", "grade", SET, "--root", str(course), "--json"]
        output = course / "result.json"
        begin = time.monotonic()
        with output.open("wb") as file:
            process = subprocess.Popen(command, cwd=ROOT, env=environment(), stdout=file)

        def look(grader: psutil.Process) -> None:
            for own in helpers(grader):
                who = "coordinator" if own.pid == grader.pid else f"helper {own.pid}"
                samples[who].append((time.monotonic() - begin, own.memory_info().rss, own.num_fds()))

        with sampled(process.pid, look, 1.0):
            while process.poll() is None:
                time.sleep(10)
                done = len(list((course / ".prooflm").glob("executions/*/*.json")))
                say(f"{done} of {size} run")
        seconds = time.monotonic() - begin
        result = json.loads(output.read_text()) if process.returncode in (0, 3) else {"scores": [], "failed": {}}
    whole = sum(sum(score["code"].values()) == 25 for score in result["scores"])
    honest = size - len(range(0, size, 20))
    print(f"{size} submissions in {seconds:.0f} s, exit status {process.returncode}; {len(result['scores'])} graded, "
          f"{len(result['failed'])} failed, {whole} with full marks ({honest} honest)")  # fmt: skip
    print(f"{'process':22}" + "".join(f"{f'quarter {q}':>24}" for q in range(1, 5)))
    for who, seen in samples.items():
        if len(seen) < 8:
            continue
        quarter = len(seen) // 4
        parts = [seen[q * quarter : (q + 1) * quarter] for q in range(4)]
        held = [f"{statistics.median(m for _, m, _ in p) / 2**20:.0f} MiB, "
                f"{statistics.median(f for _, _, f in p):.0f} files" for p in parts]  # fmt: skip
        print(f"{who:22}" + "".join(f"{text:>24}" for text in held))


if __name__ == "__main__":
    main()
