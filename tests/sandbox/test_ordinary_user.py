"""The same attacks when the grader is not root: the whole folder once more, as a user that owns nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from grading.sandbox import bubblewrap

NOBODY_SPECIAL = "54321"


@pytest.mark.skipif(os.geteuid() != 0, reason="already an ordinary user; only root can become another")
def test_every_attack_fails_for_an_ordinary_user_too():
    root = Path(__file__).parents[2]
    command = [str(bubblewrap.executable()), "--dev-bind", "/", "/", "--tmpfs", "/tmp", "--chmod", "1777", "/tmp"]
    emptied = {Path("/tmp")}
    places = [path for path in bubblewrap.interpreter_paths() if not path.is_relative_to(root)]
    for path in (root, *places):  # what lies there or out of others' reach, as in root's home
        closed = [parent for parent in path.parents if parent in emptied or not parent.stat().st_mode & 1]
        if closed:
            top = closed[-1]
            if top not in emptied:
                command += ["--tmpfs", str(top), "--chmod", "0755", str(top)]
                emptied.add(top)
            for folder in reversed(path.parents):
                if folder.is_relative_to(top) and folder != top:
                    command += ["--perms", "0755", "--dir", str(folder)]
            command += ["--ro-bind", str(path), str(path)]
    command += ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--die-with-parent", "--"]
    command += ["setpriv", f"--reuid={NOBODY_SPECIAL}", f"--regid={NOBODY_SPECIAL}", "--clear-groups"]
    command += ["--inh-caps=-all", "--ambient-caps=-all"]
    command += [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(root / "tests" / "sandbox")]
    environment = os.environ | {"HOME": "/tmp", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "passed" in done.stdout
