"""Workers start quickly: they import little, and their kernels come from a process that has imported much."""

import gc
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from grading.collector import imports_kept
from grading.edition import _make, edition, walls
from grading.engine import cluster
from grading.exercises import WITHHELD
from grading.grade import Prepared
from grading.sandbox import Policy

ROOT = Path(__file__).parents[1]


def test_a_worker_imports_neither_nbgrader_nor_torch_nor_the_command_line():
    code = "import sys, grading.preload, grading.__main__; print({'nbgrader', 'torch', 'typer'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


@pytest.mark.parametrize("name", WITHHELD)
def test_what_is_imported_before_a_notebook_runs_is_of_its_edition(name):
    policy = walls(Policy(), WITHHELD[name])
    (package,) = policy.read_only_paths
    own = [module.split(".", 1)[1] for module in policy.preload if module.startswith("proof_lm.")]
    assert "probes.run" in own and "checks" in own
    failures = _failures(package, [f"import proof_lm.{module}" for module in own])
    failures += _failures(package, [f"from proof_lm import {module}" for module in own if "." not in module])
    unavailable = [f"proof_lm.{module} is not available" for module in WITHHELD[name]]
    assert all(any(reason in failure for reason in unavailable) for failure in failures), failures


def _failures(package: Path, statements: list[str]) -> list[str]:
    """What these raise in a process that sees the edition alone."""
    code = f"import sys\nsys.path.insert(0, {str(package.parent)!r})\n"
    for statement in statements:
        code += f"try:\n    {statement}\nexcept ImportError as error:\n    print(error)\n"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_threads_that_ask_at_once_share_one_edition():
    """A second one would be a second warm process, which takes seconds to start."""
    _make.cache_clear()
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(lambda _: edition(("model",)), range(8)))) == 1


def test_the_command_line_starts_its_workers_before_it_imports_what_takes_time():
    code = "import sys, grading.cli; print({'nbgrader', 'torch', 'numpy', 'distributed'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def _how_many_prepared() -> int:
    gc.collect()
    return sum(isinstance(thing, Prepared) for thing in gc.get_objects())


def test_what_is_done_with_is_forgotten_by_coordinator_and_worker():
    with cluster(workers=1) as client:
        for number in range(100):
            assert client.submit(bool, Prepared(None, None, [], str(number))).result()
        client.submit(time.sleep, 0.3).result()
        held = {"coordinator": _how_many_prepared(), **client.run(_how_many_prepared)}
        assert max(held.values()) < 30, held
        assert not client.profile()["count"]  # a profile grows with every submission


RELEASES = """
import multiprocessing, os, psutil
from grading.workers import METHOD, prepare_to_fork

def flood():
    b"x" * (1 << 24)  # after which malloc, left alone, keeps blocks of this size on its heap
    held = [(b"x" * (1 << 20), os.urandom(1 << 16)) for _ in range(200)]
    small = [pair[1] for pair in held]  # lie between the large ones
    del held
    print(psutil.Process().memory_info().rss >> 20, flush=True)

if __name__ == "__main__":
    prepare_to_fork()
    worker = multiprocessing.get_context(METHOD).Process(target=flood)
    worker.start()
    worker.join()
"""


def test_a_worker_gives_back_what_a_flood_of_output_took(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(RELEASES)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MALLOC_")}
    done = subprocess.run(
        [sys.executable, script],
        env=environment | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) < 200, done.stdout


def test_what_is_imported_is_kept_from_the_collector_even_when_importing_fails():
    with suppress(ImportError), imports_kept():
        held = [object()]
        raise ImportError
    assert gc.isenabled() and not any(thing is held for thing in gc.get_objects())
    gc.unfreeze()
