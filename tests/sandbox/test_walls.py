"""Nothing outside the private folders can be changed, and there is no way back to rights."""

import os
import sys

import pytest

X86 = os.uname().machine == "x86_64"


def errno_of(box, x86: int, arm: int, *arguments: int) -> str:
    """Name of the error that a raw system call ends with, "none" if it worked."""
    call = ", ".join(map(str, (x86 if X86 else arm, *arguments)))
    return box.run(f"""
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
worked = libc.syscall({call}) >= 0
print("none" if worked else errno.errorcode[ctypes.get_errno()])
""").text.strip()


def test_only_private_folders_are_writable(box):
    answer = box.run("""
import os
writable = set()
for folder, names, _ in os.walk("/"):
    if folder in ("/proc", "/tmp"):
        names.clear()
    for name, flags in ((folder, os.O_TMPFILE), (os.path.join(folder, "probe"), os.O_CREAT | os.O_EXCL)):
        try:
            os.close(os.open(name, flags | os.O_WRONLY))
            writable.add(folder)
        except OSError:
            pass
print(*sorted(writable))
""")
    assert answer.text.split() == ["/dev/shm", "/tmp"]


def test_no_file_outside_is_writable(box):
    answer = box.run(f"""
import os
found = []
for top in ("/usr/lib", "/etc", "/run", "/packages", {sys.prefix!r}, {sys.base_prefix!r}):
    for folder, _, files in os.walk(top):
        for file in files:
            path = os.path.join(folder, file)
            if not os.path.islink(path) and os.access(path, os.W_OK):
                found.append(path)
print(found)
""")
    assert answer.text == "[]\n"


@pytest.mark.parametrize("path", ["/", "/dev", "/usr", "/usr/lib", sys.prefix, "/run", "/etc", "/proc"])
def test_system_folder_cannot_be_written_or_opened_up(box, path):
    for attempt in (f"open({path!r} + '/x', 'w')", f"os.chmod({path!r}, 0o777)", f"os.mkdir({path!r} + '/x')"):
        answer = box.run(f"import os\n{attempt}")
        assert answer.error and answer.error.startswith(("OSError", "PermissionError", "FileNotFoundError")), attempt


@pytest.mark.parametrize("path", ["/proc/sys/kernel/hostname", "/proc/sysrq-trigger", "/proc/sys/vm/drop_caches"])
def test_switches_of_the_machine_are_closed(box, path):
    answer = box.run(f"open({path!r}, 'w').write('1')")
    assert answer.error and answer.error.startswith(("OSError", "PermissionError", "FileNotFoundError"))


def test_standard_streams_are_no_files_of_the_host(box):
    answer = box.run("""
import os, stat
for number in (0, 1, 2):
    for path in (f"/proc/self/fd/{number}", f"/proc/1/fd/{number}"):
        try:
            mode = os.stat(path).st_mode
            print("pipe" if stat.S_ISFIFO(mode) else "device" if stat.S_ISCHR(mode) else "file")
        except OSError as error:
            print("closed")
""")
    assert set(answer.text.split()) <= {"pipe", "device", "closed"}


def test_open_descriptors_lead_nowhere(box):
    answer = box.run("""
import os
for number in os.listdir("/proc/self/fd"):
    try:
        print(os.readlink(f"/proc/self/fd/{number}"))
    except OSError:
        pass
""")
    strange = [
        target for target in answer.text.split("\n")
        if target and not target.startswith(("pipe:", "socket:", "anon_inode:", "/dev/null", "/proc/", "/dev/urandom"))
    ]  # fmt: skip
    assert strange == []


def test_no_rights_and_none_to_be_had(box):
    lines = box.run("print(open('/proc/self/status').read())").text.splitlines()
    status = dict(line.split(":\t") for line in lines if ":\t" in line)
    assert {status[f"Cap{kind}"] for kind in ("Inh", "Prm", "Eff", "Amb")} == {"0" * 16}
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"
    assert "0" not in status["Uid"].split()


@pytest.mark.parametrize(
    ("x86", "arm", "arguments"),
    [
        pytest.param(272, 97, (0x10000000,), id="unshare user"),
        pytest.param(272, 97, (0x00020000,), id="unshare mount"),
        pytest.param(56, 220, (0x10000000 | 17, 0, 0, 0, 0), id="clone user"),
        pytest.param(165, 40, (0, 0, 0, 0, 0), id="mount"),
        pytest.param(166, 39, (0, 2), id="umount"),
        pytest.param(161, 51, (0,), id="chroot"),
        pytest.param(308, 268, (0, 0), id="setns"),
        pytest.param(101, 117, (16, 1, 0, 0), id="ptrace"),
        pytest.param(311, 271, (1, 0, 0, 0, 0, 0), id="process_vm_writev"),
        pytest.param(321, 280, (0, 0, 0), id="bpf"),
        pytest.param(425, 425, (1, 0), id="io_uring"),
        pytest.param(323, 282, (0,), id="userfaultfd"),
        pytest.param(298, 241, (0, 0, -1, -1, 0), id="perf_event_open"),
        pytest.param(319, 279, (0, 0), id="memfd_create"),
        pytest.param(29, 194, (0, 4096, 0o1600), id="shmget"),
        pytest.param(105, 146, (0,), id="setuid"),
    ],
)
def test_system_call_is_refused(box, x86, arm, arguments):
    # a user namespace has no uid 0 to become, which is an error of its own
    assert errno_of(box, x86, arm, *arguments) in (("EPERM", "EINVAL") if x86 == 105 else ("EPERM",))


def test_namespace_flags_cannot_hide_behind_clone3(box):
    assert errno_of(box, 435, 435, 0, 0) == "ENOSYS"


@pytest.mark.skipif(not X86, reason="x32 is a second table of x86-64 alone")
def test_second_system_call_table_is_closed(box):
    assert errno_of(box, 0x40000000 | 41, 0, 40, 1, 0) == "ENOSYS"


def test_limits_cannot_be_raised(box):
    answer = box.run("""
import resource
for name in ("NPROC", "FSIZE", "DATA", "CPU", "NOFILE"):
    limit = getattr(resource, "RLIMIT_" + name)
    soft, hard = resource.getrlimit(limit)
    assert soft == hard != resource.RLIM_INFINITY, name
    try:
        resource.setrlimit(limit, (hard + 1, hard + 1))
    except ValueError:
        print("refused")
""")
    assert answer.text.split() == ["refused"] * 5


def test_setuid_programs_give_nothing(box):
    answer = box.run("""
import subprocess
done = subprocess.run(["su", "-c", "id -u"], stdin=subprocess.DEVNULL, capture_output=True)
print(done.returncode, done.stdout)
""")
    assert answer.error or not answer.text.startswith("0 ")


def test_devices_cannot_be_made(box):
    assert box.run("import os\nos.mknod('/tmp/disk', 0o60666, os.makedev(254, 0))").error.startswith("PermissionError")
