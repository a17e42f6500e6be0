"""Workers start quickly: they import little, and their kernels come from a process that has imported much."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from grading.edition import _make, edition, walls
from grading.exercises import PROBLEM_SETS, withheld
from grading.sandbox import Policy

ROOT = Path(__file__).parents[1]


def test_a_worker_imports_neither_nbgrader_nor_torch_nor_the_command_line():
    code = "import sys, grading.preload, grading.__main__; print({'nbgrader', 'torch', 'typer'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


@pytest.mark.parametrize("name", PROBLEM_SETS)
def test_what_is_imported_before_a_notebook_runs_is_of_its_edition(name):
    policy = walls(Policy(), withheld(name))
    (package,) = policy.read_only_paths
    own = [module.split(".")[1:] for module in policy.preload if module.startswith("proof_lm.")]
    assert ["probes", "run"] in own and ["checks"] in own
    assert all(package.joinpath(*parts).with_suffix(".py").is_file() for parts in own)


def test_threads_that_ask_at_once_share_one_edition():
    """A second one would be a second warm process, which takes seconds to start."""
    _make.cache_clear()
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(lambda _: edition(("model",)), range(8)))) == 1


def test_the_command_line_starts_its_workers_before_it_imports_what_takes_time():
    code = "import sys, grading.cli; print({'nbgrader', 'torch', 'numpy', 'distributed'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
