"""Where a sandbox cannot be made, the reason is one line; nothing runs without walls by accident."""

import asyncio
import os
import stat
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from grading.sandbox import Policy, SandboxedKernelManager, SandboxError, available, bubblewrap, seccomp


@pytest.fixture
def bwrap(monkeypatch, tmp_path):
    """Replace the machine's bubblewrap by a script, or by none."""

    def install(script: str | None, mode: int = 0o755) -> Path:
        path = tmp_path / "bwrap"
        if script is not None:
            path.write_text(f"#!/bin/sh\n{script}\n")
            path.chmod(mode)
        monkeypatch.setattr(bubblewrap, "_candidates", lambda: [] if script is None else [path])
        bubblewrap._examined.cache_clear()
        return path

    yield install
    bubblewrap._examined.cache_clear()


def start() -> None:
    asyncio.run(SandboxedKernelManager(policy=Policy(start="cold")).start_kernel())


def test_missing_bubblewrap_is_named(bwrap):
    bwrap(None)
    assert "bubblewrap is not installed" in available() and "\n" not in available()
    with pytest.raises(SandboxError, match="bubblewrap is not installed"):
        start()


def test_missing_namespaces_are_named(bwrap):
    bwrap("echo 'bwrap: No permissions to create new namespace' >&2; exit 1")
    assert available().endswith("bwrap cannot make a sandbox: bwrap: No permissions to create new namespace")
    with pytest.raises(SandboxError, match="No permissions"):
        start()


def test_a_refusal_leaves_no_file_open(bwrap):
    bwrap("exit 1")
    assert available()
    before = os.listdir("/proc/self/fd")
    with pytest.raises(SandboxError):
        start()
    assert os.listdir("/proc/self/fd") == before


def test_bubblewrap_that_builds_no_walls_is_refused(bwrap):
    bwrap('while [ "$1" != -- ]; do shift; done; shift; exec "$@"')
    assert available()
    with pytest.raises(SandboxError):
        start()


def test_setuid_bubblewrap_is_never_used(bwrap):
    path = bwrap("exit 0", 0o4755)
    assert path.stat().st_mode & stat.S_ISUID
    assert "setuid" in available()


def test_user_namespaces_that_are_switched_off_are_named():
    """A real refusal by the kernel: an ordinary user where no more user namespaces may be made."""
    root = Path(__file__).parents[2]
    code = "from grading.sandbox import available; print(available())"
    done = subprocess.run(
        [bubblewrap.executable(), "--dev-bind", "/", "/", "--unshare-user", "--uid", "1000", "--disable-userns", "--",
         sys.executable, "-c", code],
        cwd=root, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "cannot make a sandbox" in done.stdout
    assert "amespace" in done.stdout


@pytest.mark.parametrize(
    ("fields", "named"),
    [({"memory_bytes": 0}, "memory_bytes"), ({"wall_seconds": -1}, "wall_seconds"), ({"start": "hot"}, "start"),
     ({"files": {"../x": b""}}, "files"), ({"files": {"/x": b""}}, "files"),
     ({"read_only_paths": (Path("a/p"), Path("b/p"))}, "read_only_paths")],
)  # fmt: skip
def test_policy_names_the_field_that_is_wrong(fields, named):
    with pytest.raises(ValueError, match=f"^{named}: "):
        Policy(**fields)


def test_path_that_the_sandbox_cannot_show_is_named(tmp_path):
    async def start() -> None:
        policy = Policy(start="cold", read_only_paths=(tmp_path / "missing",))
        await SandboxedKernelManager(policy=policy).start_kernel()

    with pytest.raises(SandboxError, match="missing"):
        asyncio.run(start())


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_filter_jumps_stay_inside(machine):
    code = list(struct.iter_unpack("=HBBI", seccomp.program(machine)))
    assert len(code) < 4096
    for position, (operation, true, false, _) in enumerate(code):
        if operation & 7 == 5:  # a jump
            assert position + 1 + max(true, false) < len(code)
    assert code[-1] == (6, 0, 0, seccomp.ALLOW)


def test_unknown_processor_is_refused():
    with pytest.raises(SandboxError, match="riscv64"):
        seccomp.program("riscv64")
