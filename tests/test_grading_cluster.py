"""Grading on machines that work together: a scheduler and workers as processes of their own."""

import json
import os
import subprocess
import sys

import pytest

from tests.grading_class import POINTS, ROOT, environment, gradebook, points, records, released, start, wait_for


@pytest.fixture
def cluster(tmp_path):
    """The scheduler's address, and two workers without anybody who would start them again."""
    place = tmp_path / "scheduler.json"
    dask = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
    dask_worker = [sys.executable, "-m", "distributed.cli.dask_worker"]
    silent = {"cwd": ROOT, "env": environment() | {"PYTHONPATH": str(ROOT)}, "stderr": subprocess.DEVNULL}
    options = ["--port", "0", "--no-dashboard", "--host", "127.0.0.1", "--scheduler-file", str(place)]
    processes = [subprocess.Popen([*dask, *options], **silent)]
    options = ["--no-nanny", "--no-dashboard", "--nthreads", "1", "--scheduler-file", str(place)]
    processes += [subprocess.Popen([*dask_worker, *options], **silent) for _ in range(2)]
    try:
        wait_for(lambda: place.exists() and place.stat().st_size, processes[0])
        yield json.loads(place.read_text())["address"], processes[1:]
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_one_of_two_workers_killed_midway_and_every_grade_is_there(cluster, tmp_path):
    address, workers = cluster
    course = released(tmp_path / "course")
    process = start(course, "--scheduler", address)
    wait_for(lambda: records(course), process)
    workers[0].kill()
    _, said = process.communicate(timeout=300)
    assert process.returncode == 0 and said == "", said
    assert points(gradebook(course)) == POINTS


def test_a_scheduler_that_does_not_answer_is_said_in_one_line(tmp_path):
    course = released(tmp_path / "course")
    process = start(course, "--scheduler", "tcp://127.0.0.1:9")
    _, said = process.communicate(timeout=120)
    assert process.returncode == 2 and "no scheduler answers at tcp://127.0.0.1:9" in said
    assert len(said.splitlines()) == 1


def test_make_passes_the_scheduler_on():
    make = ["make", "-n", "grade", "SCHEDULER=tcp://head:8786", "-o", "gradebook.db", "-o", ".venv/.installed"]
    done = subprocess.run(make, cwd=ROOT, capture_output=True, text=True, env=os.environ)
    assert "--scheduler 'tcp://head:8786'" in done.stdout


def test_what_dask_logs_of_its_own_is_not_shown_while_a_class_is_run(cluster):
    """For instance that a result must be fetched anew when its worker is killed just after it was done."""
    grading = (
        "import logging, sys\n"
        "from grading.engine import cluster\n"
        "with cluster(sys.argv[1]):\n"
        "    logging.getLogger('distributed.client').warning('fetched anew')\n"
    )
    command = [sys.executable, "-c", grading, cluster[0]]
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stderr == ""
