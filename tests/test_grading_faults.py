"""What breaks while a class is graded: one clear line, nothing lost, and after a rerun the gradebook is whole.

Whole means cell by cell what an undisturbed run wrote.
"""

import atexit
import contextlib
import os
import random
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from nbclient import NotebookClient
from nbgrader.api import Gradebook
from typer.testing import CliRunner

import grading.engine
import grading.session
from benchmarks.classes import kernels
from grading import demo
from grading.assignment import Assignment
from grading.cli import app
from grading.course import course as nbgrader_course
from grading.grade import Task, finish, nothing_ran, prepare, run
from grading.nbgrader_classes import SafeAutograde
from grading.sandbox import SandboxedKernelManager
from tests.grading_class import (
    POINTS,
    command,
    copied,
    environment,
    grade,
    gradebook,
    points,
    records,
    released,
    start,
    wait_for,
)
from tests.grading_class import ROOT as CHECKOUT


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    return released(tmp_path_factory.mktemp("course"))


@pytest.fixture(scope="module")
def undisturbed(course, tmp_path_factory):
    """The same class, graded without any trouble."""
    folder = copied(course, tmp_path_factory.mktemp("undisturbed"))
    done = grade(folder)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert points(gradebook(folder)) == POINTS
    return folder


@pytest.fixture
def fresh(course, tmp_path):
    """Nothing run yet."""
    return copied(course, tmp_path / "class")


@pytest.fixture
def executed(course, undisturbed, tmp_path):
    """Everything run, nothing recorded yet."""
    folder = copied(course, tmp_path / "class")
    copied(undisturbed / ".prooflm", folder / ".prooflm")
    return folder


def told_in_one_line(done: subprocess.CompletedProcess, status: int, *words: str) -> None:
    assert done.returncode == status, done.stderr
    assert len(done.stderr.splitlines()) == 1 and "Traceback" not in done.stderr, done.stderr
    assert all(word in done.stderr for word in words), done.stderr


def whole_after_a_rerun(folder: Path, undisturbed: Path) -> None:
    done = grade(folder)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert gradebook(folder) == gradebook(undisturbed)
    kept = {path.relative_to(undisturbed): path.read_bytes() for path in undisturbed.glob("autograded/*/*/*")}
    assert len(kept) == len(POINTS)
    assert {path.relative_to(folder): path.read_bytes() for path in folder.glob("autograded/*/*/*")} == kept


def test_the_coordinator_killed_at_any_moment(fresh, undisturbed):
    some = random.randint(1, len(POINTS) - 1)
    moments = [
        lambda: len(records(fresh)) >= some,
        lambda: len(list(fresh.glob("autograded/*/*/*.ipynb"))) >= some,
    ]
    for moment in moments:
        process = start(fresh)
        helpers = []
        wait_for(moment, process)
        helpers = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        process.communicate()
        _, left = psutil.wait_procs(helpers, timeout=30)
        assert not left, f"still running: {left}"
    whole_after_a_rerun(fresh, undisturbed)


def test_what_is_done_is_recorded_while_others_still_run(tmp_path):
    folder = tmp_path / "class"
    demo.build(folder, students={"loops_forever", "solves_everything"})
    process = start(folder)
    try:
        wait_for(lambda: list(folder.glob("autograded/solves_everything/*/*.ipynb")), process)
        assert len(records(folder)) == 1 and points(gradebook(folder)) == {"solves_everything": 25}
    finally:
        process.kill()
        process.communicate()


def test_others_may_write_the_gradebook_while_a_class_is_recorded(executed, undisturbed):
    first, second = (SafeAutograde(coursedir=nbgrader_course(executed, "p4"), stored_only=True) for _ in range(2))
    with first.recording() as record:
        second.start()  # all students are new to both
        with Gradebook(f"sqlite:///{executed / 'gradebook.db'}") as others:
            others.remove_submission("p4", "swaps_the_order")
        for task in first.tasks():
            record(prepare(task))
    assert gradebook(executed) == gradebook(undisturbed)


def test_a_student_who_is_excluded_is_neither_run_nor_recorded(executed):
    (executed / "nbgrader_config.py").write_text(
        "c = get_config()\nc.CourseDirectory.student_id_exclude = 'untouched'\n"
    )
    done = grade(executed)
    assert done.returncode == 0 and done.stderr == ""
    assert points(gradebook(executed)).keys() == POINTS.keys() - {"untouched"}


def workers(process: psutil.Process) -> list[psutil.Process]:
    """What the server forked that multiprocessing started."""
    return [child for server in process.children() for child in server.children() if child.name() != "bwrap"]


@pytest.mark.parametrize("kind", [workers, kernels])
def test_a_worker_or_kernel_killed_midway_needs_no_rerun(fresh, undisturbed, kind):
    process = start(fresh)
    some = random.randint(1, 2)
    wait_for(lambda: len(records(fresh)) >= some, process)

    def killed() -> bool:
        with contextlib.suppress(psutil.NoSuchProcess, AttributeError):  # it ended while we looked
            victims = kind(psutil.Process(process.pid))
            for victim in victims[:1]:
                victim.kill()
                return True
        return False

    wait_for(killed, process)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 0 and said == "", said
    assert gradebook(fresh) == gradebook(undisturbed)


def test_a_kernel_killed_before_it_answers_is_started_once_more(course, monkeypatch):
    killed = []

    class KilledAtItsStart(SandboxedKernelManager):
        async def _async_post_start_kernel(self, **options):
            await super()._async_post_start_kernel(**options)
            if not killed:
                killed.append(self)
                await self.provisioner.kill()

    monkeypatch.setattr(grading.session, "SandboxedKernelManager", KilledAtItsStart)
    folder = course / "submitted" / "solves_everything" / "p4"
    at_exit = []
    monkeypatch.setattr(atexit, "register", lambda callback, *_, **__: at_exit.append(callback))
    monkeypatch.setattr(
        atexit, "unregister", lambda callback: at_exit.__setitem__(slice(None), [c for c in at_exit if c != callback])
    )
    record = run(prepare(Task(Assignment("p4", CHECKOUT), "solves_everything", folder, seed=5)))
    assert killed and not record["execution"]["died"] and not record["execution"]["failures"]
    assert set(record["execution"]["answers"]) == {"P4.1", "P4.2", "P4.3"}
    assert [callback for callback in at_exit if isinstance(getattr(callback, "__self__", None), NotebookClient)] == []


def deadly(prepared):
    """Stands in for a run that takes its worker along."""
    if prepared.task.student == "swaps_the_order":
        os.kill(os.getpid(), signal.SIGKILL)
    return run(prepared)


def test_what_kills_every_worker_costs_one_student_only(fresh, undisturbed, monkeypatch):
    monkeypatch.setattr(grading.engine, "run", deadly)
    done = CliRunner().invoke(app, ["grade", "p4", "--root", str(fresh), "--workers", "2"])
    assert done.exit_code == 3, done.output
    assert [line for line in done.stderr.splitlines() if "swaps_the_order" in line and "look at the submission" in line]
    assert points(gradebook(fresh)) == POINTS | {"swaps_the_order": 0}
    assert (
        "ended every one of the grader's own processes"
        in (fresh / "autograded/swaps_the_order/p4/p4.ipynb").read_text()
    )
    monkeypatch.undo()
    whole_after_a_rerun(fresh, undisturbed)


def mounted(*arguments: str) -> None:
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"mount is not allowed here: {done.stderr.strip()}")


@pytest.fixture
def small_disk(course, tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted("-t", "tmpfs", "-o", "size=64m", "tmpfs", str(folder))
    yield copied(course, folder)
    subprocess.run(["umount", "-l", str(folder)], check=True)


def resize(disk: Path, room: int) -> None:
    status = os.statvfs(disk)
    used = (status.f_blocks - status.f_bfree) * status.f_frsize
    subprocess.run(["mount", "-o", f"remount,size={used + room}", str(disk)], check=True)


def test_a_full_disk_while_running_and_while_recording(small_disk, undisturbed):
    resize(small_disk, 8192)
    told_in_one_line(grade(small_disk), 2, "disk is full", "make room")
    resize(small_disk, 1 << 24)
    copied(undisturbed / ".prooflm", small_disk / ".prooflm")
    resize(small_disk, 40_000)
    told_in_one_line(grade(small_disk), 2, "full", "make room")
    resize(small_disk, 1 << 24)
    whole_after_a_rerun(small_disk, undisturbed)


def test_a_locked_gradebook(executed, undisturbed):
    holder = sqlite3.connect(executed / "gradebook.db")
    holder.execute("begin exclusive")
    told_in_one_line(grade(executed), 2, "locked", "nothing is lost")
    holder.rollback()
    holder.close()
    whole_after_a_rerun(executed, undisturbed)


def test_a_gradebook_that_may_not_be_written(executed, undisturbed):
    path = executed / "gradebook.db"
    if os.geteuid() == 0:  # whom no mode of a file keeps out
        mounted("--bind", str(path), str(path))
        mounted("-o", "remount,ro,bind", str(path))
    path.chmod(0o444) if os.geteuid() else None
    try:
        told_in_one_line(grade(executed), 2, "readonly", "right to write")
    finally:
        subprocess.run(["umount", str(path)]) if os.geteuid() == 0 else path.chmod(0o644)
    whole_after_a_rerun(executed, undisturbed)


def test_torn_entries_of_the_store_are_run_again(executed, undisturbed):
    whole, torn, foreign, empty, _ = records(executed)
    torn.write_bytes(torn.read_bytes()[:-7])
    foreign.write_bytes(whole.read_bytes().replace(b"warm", b"cold"))
    empty.write_bytes(b"")
    whole_after_a_rerun(executed, undisturbed)
    assert {path.name for path in records(executed)} == {path.name for path in records(undisturbed)}
    assert len(torn.read_bytes()) > 100 and empty.read_bytes()


CLOCK = """
import runpy, sys, time
real, jump = time.time, float(sys.argv.pop(1))
time.time = lambda: real() + jump
runpy.run_module("grading", run_name="__main__", alter_sys=True)
"""


def test_a_clock_that_jumps(fresh, undisturbed):
    decade = 3.2e8
    for path in fresh.rglob("*"):
        os.utime(path, (2**31, 2**31) if len(path.name) % 2 else (0, 0))
    for jump, who in ((decade, "s*"), (-decade, "*")):
        more = [sys.executable, "-c", CLOCK, str(jump), *command(fresh)[3:], "--students", who]
        done = subprocess.run(more, cwd=CHECKOUT, env=environment(), capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
    assert gradebook(fresh) == gradebook(undisturbed)


def test_no_answers_means_no_points_and_the_reason(undisturbed):
    task = next(
        t for t in SafeAutograde(coursedir=nbgrader_course(undisturbed, "p4")).tasks() if t.student == "untouched"
    )
    prepared = prepare(task)
    graded = finish(prepared, nothing_ran(prepared, "the reason"))
    assert graded.points == 0 and all("the reason" in str(verdict) for verdict in graded.verdicts.values())
