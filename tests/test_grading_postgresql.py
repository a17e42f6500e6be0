"""The gradebook on a PostgreSQL server of its own: the same points, cell by cell, as in a file."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.grading_class import POINTS, ROOT, copied, environment, grade, gradebook, points, released, rows

FOUND = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb")) or [Path(p) for p in [shutil.which("initdb")] if p]
NOBODY = 65534
pytest.importorskip("psycopg2", reason="the driver psycopg2-binary is not installed")
pytestmark = pytest.mark.skipif(not FOUND, reason="no PostgreSQL server is installed (Debian: postgresql)")


@pytest.fixture
def server(tmp_path):
    """A server's db_url; it listens on a socket in a folder of its own and runs as an ordinary user."""
    home = Path("/tmp") / f"prooflm-postgresql-{os.getpid()}"  # a socket's path is short
    home.mkdir(mode=0o755)
    binaries, data = FOUND[-1].parent, home / "data"
    root = os.geteuid() == 0  # whom PostgreSQL refuses
    if root:
        os.chown(home, NOBODY, NOBODY)
    run = {"cwd": home, "check": True, "user": NOBODY if root else None, "group": NOBODY if root else None,
           "extra_groups": [] if root else None, "stdout": subprocess.DEVNULL}  # fmt: skip
    subprocess.run([binaries / "initdb", "-D", data, "-U", "grader", "-A", "trust", "--no-sync"], **run)
    options = f"-c listen_addresses='' -c unix_socket_directories={home} -c fsync=off"
    control = [binaries / "pg_ctl", "-D", data, "-w"]
    subprocess.run([*control, "-o", options, "-l", home / "log", "start"], **run)
    try:
        yield f"postgresql+psycopg2://grader@/postgres?host={home}"
    finally:
        subprocess.run([*control, "-m", "immediate", "stop"], **run)
        shutil.rmtree(home)


def test_the_same_points_as_in_a_file(server, tmp_path):
    here = released(tmp_path / "here")
    assert grade(here).returncode == 0
    there = copied(here, tmp_path / "there")
    shutil.rmtree(there / "autograded")
    (there / "gradebook.db").unlink()
    (there / "nbgrader_config.py").write_text(f"c = get_config()\nc.CourseDirectory.db_url = {server!r}\n")
    told = grade(there)
    assert told.returncode == 2 and "run make release" in told.stderr
    release = ["generate_assignment", "p4", f"--course-dir={there}", f"--db={server}", "--force"]
    command = [Path(sys.executable).parent / "nbgrader", *release, "--log-level=ERROR"]
    subprocess.run(command, cwd=ROOT, check=True, env=environment())
    done = grade(there)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert not (there / "gradebook.db").exists()
    assert rows(server) == gradebook(here)
    assert points(rows(server)) == POINTS
    assert grade(there).returncode == 0 and rows(server) == gradebook(here)
