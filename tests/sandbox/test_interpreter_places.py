"""Wherever the interpreter lies, it is shown and what lies beside it is not."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from grading.sandbox import SandboxError, bubblewrap

ROOT = Path(__file__).parents[2]
LOOK = """
import sys
sys.path[:0] = ["tests"]
from sandbox.conftest import Box
for start in ("cold", "warm"):
    box = Box(start=start, preload=("numpy",))
    assert box.manager.isolation == start
    print(box.run('''
import os, sys
import numpy
for folder, names, files in os.walk(TOP):
    if folder == sys.prefix:
        names.clear()
        files.clear()
    print(folder, *files)
for path in (sys.prefix, sys.prefix + "/lib"):
    try:
        open(path + "/owned", "w")
    except OSError as error:
        print(error.strerror)
'''.replace("TOP", repr(TOP))).text, end="")
    box.close()
"""


@pytest.mark.parametrize("place", ["/tmp", "/dev/shm"])
def test_interpreter_below_a_private_folder_is_shown_and_its_neighbours_are_not(place):
    """A real one: this interpreter at another place, made by a mount, so that nothing is copied."""
    with tempfile.TemporaryDirectory(dir=place, prefix="a clone ") as top:
        prefix = Path(top, "ProofLM", ".venv")
        prefix.mkdir(parents=True)
        for folder in (Path(top), prefix.parent):
            (folder / "secret").write_text("secret")
        shared = [str(prefix / Path(sys.executable).relative_to(sys.prefix)), "-c", LOOK.replace("TOP", repr(top))]
        command = [bubblewrap.executable(), "--dev-bind", "/", "/", "--ro-bind", sys.prefix, prefix]
        rights = ["--cap-add", "ALL"] if os.geteuid() == 0 else []
        done = subprocess.run(
            [*command, *rights, "--die-with-parent", "--", *shared], cwd=ROOT, capture_output=True, text=True
        )
        assert done.stdout.splitlines() == [top, str(prefix.parent), str(prefix), *2 * ["Read-only file system"]] * 2, (
            done.stderr
        )


@pytest.mark.parametrize("place", ["/", "/tmp", "/dev/shm", str(ROOT)])
def test_interpreter_whose_prefix_holds_everything_is_refused(place, monkeypatch):
    monkeypatch.setattr(sys, "prefix", place)
    with pytest.raises(SandboxError, match=r"prefix is|course's own folder"):
        bubblewrap.interpreter_paths()


def test_course_that_lies_where_the_interpreter_is_stays_hidden(new_box, monkeypatch, tmp_path):
    course, inner = tmp_path / "env" / "course", tmp_path / "env" / "course" / ".venv"
    inner.mkdir(parents=True)
    for folder in (course.parent, course, inner):
        (folder / "file").write_text("")
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    known, link = bubblewrap.interpreter_paths(), tmp_path / "link"
    link.symlink_to(course.parent)
    monkeypatch.setattr(bubblewrap, "interpreter_paths", lambda: [course.parent, inner, link, *known])
    monkeypatch.setattr(bubblewrap, "hidden_paths", lambda: [course])
    answer = new_box(preload=("json",)).run(f"""
import os
for top in ({str(course.parent)!r}, {str(link)!r}):
    for folder, _, files in os.walk(top):
        print(folder, *files)
""")
    seen = [f"{course.parent} file", str(course), f"{inner} file", f"{link} file", f"{link}/course"]
    assert answer.text.splitlines() == seen


def test_package_with_answers_that_is_installed_stays_hidden(monkeypatch, tmp_path):
    (tmp_path / "proof_lm").mkdir()
    monkeypatch.setattr(bubblewrap.sysconfig, "get_path", lambda name: str(tmp_path))
    assert bubblewrap.hidden_paths() == [ROOT.resolve(), tmp_path / "proof_lm"]
