"""Two commands set everything up: pins, lock, Makefile, package."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from importlib.metadata import distribution
from pathlib import Path
from urllib.request import urlopen

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.lint_notebooks import ROOT

SETUP_FILES = ["Makefile", "requirements.txt", "constraints.txt", "pyproject.toml", "labconfig"]


def lines(path: Path) -> list[Requirement]:
    text = (line.partition("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines())
    return [Requirement(line) for line in text if line]


def named(requirements) -> dict[str, Requirement]:
    return {canonicalize_name(requirement.name): requirement for requirement in requirements}


@pytest.fixture(scope="module")
def pins() -> dict[str, Requirement]:
    return named(lines(ROOT / "requirements.txt"))


@pytest.fixture(scope="module")
def locked() -> dict[str, Requirement]:
    return named(lines(ROOT / "constraints.txt"))


@pytest.fixture(scope="module")
def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_requirements_pin_one_version_each(pins):
    for requirement in pins.values():
        assert re.fullmatch(r"==[\w.]+", str(requirement.specifier)), requirement


def test_every_pin_is_the_locked_version(pins, locked):
    for name, requirement in pins.items():
        if requirement.marker is None or requirement.marker.evaluate({"sys_platform": "linux"}):
            assert locked[name].specifier == requirement.specifier


def test_pins_meet_the_ranges_of_the_package(pins, project):
    extras = project["optional-dependencies"].values()
    for text in [*project["dependencies"], *(text for extra in extras for text in extra)]:
        wanted = Requirement(text)
        [pinned] = pins[canonicalize_name(wanted.name)].specifier
        assert wanted.specifier.contains(pinned.version), text


def test_everything_that_is_pulled_in_is_locked_at_the_installed_version(pins, locked):
    waiting, seen = list(pins.values()), set()
    while waiting:
        requirement = waiting.pop()
        name, extras = canonicalize_name(requirement.name), frozenset(requirement.extras)
        environments = [{"extra": extra} for extra in extras or {""}]
        if (name, extras) in seen or not (
            requirement.marker is None or any(map(requirement.marker.evaluate, environments))
        ):
            continue
        if name.startswith("nvidia-"):  # of torch's GPU build, where the index gives that one
            continue
        seen.add((name, extras))
        installed = distribution(name)
        exact = name in locked or name in pins or "==" in str(requirement.specifier)
        assert exact, f"{name} is pulled in by none of the locked versions: run make lock"
        if name in locked:
            assert locked[name].specifier.contains(installed.version, prereleases=True), name
        for text in installed.requires or []:
            needed = Requirement(text)
            if needed.marker is None or any(map(needed.marker.evaluate, environments)):
                needed.marker = None
                waiting.append(needed)
    assert len(seen) > 100


def make(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        ["make", *arguments],
        cwd=folder,
        env=bare_environment() | environment,
        capture_output=True,
        text=True,
        timeout=300,
    )


def bare_environment() -> dict[str, str]:
    """The environment of somebody who has activated nothing and is not running inside another make."""
    hidden = {"VIRTUAL_ENV", "PYTHONPATH", "MAKEFLAGS", "MAKELEVEL", "MFLAGS", "DISPLAY", "WAYLAND_DISPLAY"}
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    environment["PATH"] = os.pathsep.join(
        entry for entry in os.environ["PATH"].split(os.pathsep) if not entry.startswith(f"{ROOT}/.venv")
    )
    return environment


@pytest.fixture
def checkout(tmp_path) -> Path:
    """The files that set-up reads, in a folder with a space in its name, and a finished installation."""
    folder = tmp_path / "my course"
    folder.mkdir()
    for name in SETUP_FILES:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        copy(ROOT / name, folder / name)
    (folder / "tests").mkdir()
    binaries = folder / ".venv" / "bin"
    binaries.mkdir(parents=True)
    (binaries / "python").symlink_to(sys.executable)
    (binaries / "pip").touch(mode=0o755)
    (folder / ".venv" / "pyvenv.cfg").write_text(f"command = python -m venv {folder}/.venv\n")
    (folder / ".venv" / ".installed").touch()
    return folder


def test_make_alone_lists_every_target():
    shown = make(ROOT).stdout
    rules = re.findall(
        r"^([a-z][a-z-]*):(?!=).*##", "".join(path.read_text() for path in makefiles(ROOT)), re.MULTILINE
    )
    assert {"help", "lab", "test"} <= set(rules)
    assert [line.split()[1] for line in shown.splitlines()] == rules


def test_a_run_may_lie_in_a_folder_with_a_space_in_its_name():
    said = make(ROOT, "--dry-run", "--assume-old=.venv/.installed", "train", "RUN=runs/two words").stdout
    assert '--run "runs/two words"' in said


def test_readme_names_no_command_that_is_missing():
    named = set(re.findall(r"(?:`|^ {4})make ([a-z]+)", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE))
    listed = {line.split()[1] for line in make(ROOT).stdout.splitlines()}
    assert {"lab", "test"} <= named <= listed


def makefiles(folder: Path) -> list[Path]:
    return [path for path in (folder / "Makefile", folder / "instructor.mk") if path.exists()]


def test_nothing_is_installed_when_nothing_changed(checkout):
    for target in ("lab", "test"):
        plan = make(checkout, "--dry-run", target)
        assert plan.returncode == 0, plan.stderr
        assert "pip install" not in plan.stdout


@pytest.mark.parametrize("changed", ["requirements.txt", "constraints.txt", "pyproject.toml"])
def test_a_changed_list_of_packages_is_installed(checkout, changed):
    later = time.time() + 5
    os.utime(checkout / changed, (later, later))
    plan = make(checkout, "--dry-run", "lab").stdout
    assert "-c constraints.txt -r requirements.txt" in plan


def test_a_moved_folder_is_installed_anew(checkout):
    moved = checkout.rename(checkout.with_name("another course"))
    assert "pip install" in make(moved, "--dry-run", "lab").stdout


def test_missing_python_is_one_line_that_says_what_to_do(checkout):
    shutil.rmtree(checkout / ".venv")
    refused = make(checkout, "lab", "PYTHON=")
    assert refused.returncode != 0
    assert refused.stderr.splitlines()[0].startswith("ProofLM needs Python 3.11, 3.12 or 3.13")


def test_lab_prints_its_address_without_a_display_and_stops_cleanly(tmp_path):
    """The real server, started from a shell in which nothing is active, in a group as a terminal makes it."""
    log = tmp_path / "lab.log"
    with log.open("w") as output:
        lab = subprocess.Popen(
            ["make", "--assume-old=.venv/.installed", "lab"],
            cwd=ROOT,
            env=bare_environment() | {"JUPYTER_RUNTIME_DIR": str(tmp_path), "JUPYTER_PORT": "0"},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # ignored where tests run in the background
        )
    try:
        address = wait_for(r"http://\S+/lab/tree/course/00_start_here\.ipynb\?token=\w+", log, lab)
        with urlopen(address.partition("/lab/")[0] + "/custom/custom.css") as page:
            assert b".jp-PlaceholderText" in page.read()  # folded answers show nothing
    finally:
        os.killpg(lab.pid, signal.SIGINT)  # what Ctrl-C sends
        lab.wait(timeout=60)
    shown = log.read_text()
    assert "Traceback" not in shown
    assert "Shut down this Jupyter server" not in shown  # no question that waits for an answer


def wait_for(pattern: str, log: Path, process: subprocess.Popen, seconds: float = 90) -> str:
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        if match := re.search(pattern, log.read_text()):
            return match[0]
        time.sleep(0.2)
    raise AssertionError(f"{pattern!r} did not appear:\n{log.read_text()}")


def run_python(code: str, **options) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, **options)
    return done.stdout.strip()


def test_importing_the_package_imports_neither_torch_nor_matplotlib():
    code = "import proof_lm, proof_lm.checks, sys; print(sorted({'torch', 'matplotlib'} & set(sys.modules)))"
    assert run_python(code) == "[]"


def test_wheel_holds_the_student_package_alone_and_works(tmp_path):
    tree = tmp_path / "tree"
    shutil.copytree(ROOT / "proof_lm", tree / "proof_lm", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("grading", "tools"):
        (tree / name).mkdir()
        (tree / name / "__init__.py").touch()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    pip = [sys.executable, "-m", "pip", "--quiet"]
    subprocess.run(
        [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", tmp_path, tree], check=True
    )
    [wheel] = tmp_path.glob("*.whl")
    subprocess.run([*pip, "install", "--no-deps", "--target", tmp_path / "site", wheel], check=True)
    installed = {path.name for path in (tmp_path / "site").iterdir() if not path.name.endswith(".dist-info")}
    assert installed == {"proof_lm"}
    code = "import proof_lm; print(proof_lm.__file__, proof_lm.causal_mask(2).tolist())"
    shown = run_python(code, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(tmp_path / "site")})
    assert str(tmp_path / "site") in shown and "[[True, False], [True, True]]" in shown
