"""Nothing of the grader's machine is to be seen, and nothing of another student."""

import os
import socket
from pathlib import Path

import pytest

from grading.sandbox import bubblewrap

REPOSITORY = Path(__file__).parents[2]


def test_only_python_and_private_folders_exist(box):
    code = """
import os
seen = []
for folder, names, files in os.walk("/"):
    if folder in ("/usr", "/proc", "/etc", *SHOWN):
        names.clear()
        continue
    seen += [os.path.join(folder, file) for file in files]
print(*seen, sep="\\n")
"""
    code = f"SHOWN = {[*map(str, bubblewrap.interpreter_paths())]}\n" + code
    seen = box.run(code).text.split()
    known = ("/tmp/", "/dev/", "/run/inside.py", "/bin/", "/lib")
    strange = [name for name in seen if not name.startswith(known)]
    assert "/dev/null" in seen
    assert strange == []


@pytest.mark.parametrize(
    "path",
    [REPOSITORY / "grading", REPOSITORY / "source", REPOSITORY / "pyproject.toml", REPOSITORY / ".git",
     Path.home() / ".ssh", "/etc/shadow", "/etc/passwd", "/var", "/home", "/sys", "/mnt", "/srv", "/dev/vda",
     "/dev/kmsg", "/dev/mem", "/proc/kcore", "/root/.bashrc", __file__],
)  # fmt: skip
def test_host_path_is_not_there(box, path):
    answer = box.run(f"import os\nprint(os.path.exists({str(path)!r}) and os.access({str(path)!r}, os.R_OK))")
    assert answer.text == "False\n"


def test_grader_code_cannot_be_imported(box):
    assert box.run("import grading").error.startswith("ModuleNotFoundError")


def test_graders_environment_is_not_readable(new_box, monkeypatch):
    monkeypatch.setenv("GRADER_TOKEN", "canary-7f3a")
    answer = new_box().run("""
import glob, os
print(dict(os.environ))
for path in glob.glob("/proc/[0-9]*/environ"):
    try:
        print(path, open(path).read())
    except OSError as error:
        print(path, error)
""")
    assert "/proc/1/environ" in answer.text
    assert "canary" not in answer.text and "GRADER_TOKEN" not in answer.text


def test_command_lines_name_nothing_of_the_host(box):
    answer = box.run("""
import glob
for path in glob.glob("/proc/[0-9]*/cmdline"):
    print(open(path).read().replace("\\0", " "))
""")
    assert "inside" in answer.text
    assert "grading" not in answer.text and "bind" not in answer.text


def test_processes_of_the_host_are_not_to_be_seen(box):
    pids = box.run("import os\nprint(*[name for name in os.listdir('/proc') if name.isdigit()])").text.split()
    assert set(pids) == {"1", "2"}


def test_host_name_is_hidden(box):
    assert box.run("import socket\nprint(socket.gethostname())").text == "sandbox\n"


@pytest.mark.parametrize("path", ["/proc/1/mem", "/proc/1/root/etc", "/proc/1/fd/0", "/proc/1/cwd", "/proc/1/maps"])
def test_first_process_is_closed(box, path):
    answer = box.run(f"import os\nos.listdir({path!r}) if os.path.isdir({path!r}) else open({path!r}, 'rb+')")
    assert answer.error and answer.error.startswith(("PermissionError", "FileNotFoundError"))


def test_keyrings_are_closed(box):
    answer = box.run("""
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
for number in (248, 249, 250) if __import__("os").uname().machine == "x86_64" else (217, 218, 219):
    print(libc.syscall(number, 0, -3, 0, 0, 0), errno.errorcode[ctypes.get_errno()])
""")
    assert answer.text.splitlines() == ["-1 EPERM"] * 3


def test_two_students_share_no_files_memory_or_sockets(new_box):
    first, second = new_box(), new_box()
    leave = """
import os, pty, socket
open("/tmp/note", "w").write("answer")
open("/dev/shm/note", "w").write("answer")
open("mine.txt", "w").write("answer")
ours = socket.socket(socket.AF_UNIX); ours.bind("\\0note"); ours.listen()
terminal, _ = pty.openpty()
os.write(terminal, b"answer")
print(os.listdir("/dev/pts"), os.readlink("/proc/self/ns/ipc"), os.readlink("/proc/self/ns/net"))
"""
    look = """
import os, socket
print([os.path.exists(path) for path in ("/tmp/note", "/dev/shm/note", "mine.txt", "/dev/pts/0")])
try:
    socket.socket(socket.AF_UNIX).connect("\\0note")
except OSError as error:
    print(type(error).__name__)
print(os.readlink("/proc/self/ns/ipc"), os.readlink("/proc/self/ns/net"))
"""
    left = first.run(leave)
    assert left.error is None and "'0'" in left.text
    found = second.run(look).text.splitlines()
    assert found[:2] == ["[False, False, False, False]", "ConnectionRefusedError"]
    assert not set(found[2].split()) & set(left.text.split())


def test_later_kernel_inherits_nothing_of_an_earlier_one(new_box):
    secret = "correct-horse-battery"
    new_box(files={"data.txt": secret.encode()}).run(f"answer = {secret!r} * 1000")
    answer = new_box().run("""
import re
word = b"correct-horse" + b"-battery"
found = 0
for line in open("/proc/self/maps"):
    start, end = (int(part, 16) for part in line.split()[0].split("-"))
    if line.split()[1].startswith("rw") and end - start < 1 << 28:
        with open("/proc/self/mem", "rb") as memory:
            memory.seek(start)
            try:
                found += memory.read(end - start).count(word)
            except OSError:
                pass
print("own copies:", found)
""")
    own = int(answer.text.split(":")[1])
    assert own <= 4  # the word that the search itself built; a leak would be a thousand


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def test_no_network(box, listener):
    port = listener.getsockname()[1]
    answer = box.run(f"import socket\nsocket.create_connection(('127.0.0.1', {port}), 2)")
    assert answer.error.startswith("OSError")
    listener.settimeout(0.1)
    with pytest.raises(TimeoutError):
        listener.accept()


FAMILIES = {"INET": 2, "INET6": 10, "PACKET": 17, "CAN": 29, "TIPC": 30, "BLUETOOTH": 31, "ALG": 38, "VSOCK": 40}


@pytest.mark.parametrize("number", FAMILIES.values(), ids=FAMILIES)
def test_socket_family_is_refused(box, number):
    for kind in ("SOCK_STREAM", "SOCK_DGRAM", "SOCK_RAW", "SOCK_SEQPACKET"):
        answer = box.run(f"import socket\nsocket.socket({number}, socket.{kind})")
        assert answer.error == "OSError: [Errno 97] Address family not supported by protocol"


def test_netlink_answers_for_interfaces_alone(box):
    answer = box.run("""
import socket
socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
print(socket.if_nameindex())
socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 9)
""")
    assert answer.text == "[(1, 'lo')]\n"
    assert "Address family" in answer.error


def test_sockets_of_the_host_are_out_of_reach(box, tmp_path):
    with socket.socket(socket.AF_UNIX) as named, socket.socket(socket.AF_UNIX) as abstract:
        path, name = str(tmp_path / "s"), f"\0host-{os.getpid()}"
        named.bind(path), named.listen()
        abstract.bind(name), abstract.listen()
        for address in (path, name):
            answer = box.run(f"import socket\nsocket.socket(socket.AF_UNIX).connect({address!r})")
            assert answer.error and answer.error.startswith(("FileNotFoundError", "ConnectionRefusedError"))


def test_channels_tell_nothing_of_the_hosts_interfaces(box):
    """The kernel holds sockets that were made in the host's network namespace."""
    answer = box.run("""
import fcntl, os, struct
tried = refused = 0
for number in map(int, os.listdir("/proc/self/fd")):
    try:
        if not os.readlink(f"/proc/self/fd/{number}").startswith("socket:"):
            continue
    except OSError:
        continue
    for request in (0x8912, 0x8913, 0x8927, 0x894C, 0x8910):  # interfaces, flags, hardware address, namespace, name
        tried += 1
        try:
            fcntl.ioctl(number, request, bytes(64))
        except PermissionError:
            refused += 1
print(tried, refused)
""")
    tried, refused = map(int, answer.text.split())
    assert tried == refused >= 25


TELL = {
    "a POSIX lock": "fcntl.fcntl(file, fcntl.F_SETLK, struct.pack('hhqqi', fcntl.F_RDLCK, 0, 7, 1, 0))",
    "an OFD lock": "fcntl.fcntl(file, 37, struct.pack('hhqqi', fcntl.F_RDLCK, 0, 7, 1, 0))",
    "flock": "fcntl.flock(file, fcntl.LOCK_SH)",
}
HEAR = {
    "a POSIX lock": "print(struct.unpack('hhqqi', fcntl.fcntl(file, 5, struct.pack('hhqqi', fcntl.F_WRLCK, 0, 7, 1, 0)))[0])",
    "an OFD lock": "print(struct.unpack('hhqqi', fcntl.fcntl(file, 36, struct.pack('hhqqi', fcntl.F_WRLCK, 0, 7, 1, 0)))[0])",
    "flock": "print(fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB) or fcntl.F_UNLCK)",
}


@pytest.mark.parametrize("how", TELL)
def test_a_lock_on_what_every_sandbox_sees_is_no_message(new_box, how):
    teller, hearer = new_box(), new_box()
    opened = "import fcntl, struct, sys\nfile = open(sys.executable, 'rb')\n"
    assert teller.run(opened + TELL[how]).error is None
    assert hearer.run(opened + HEAR[how]).text == "2\n"  # F_UNLCK: nobody holds it


def test_what_others_do_to_a_file_is_not_told(new_box):
    watch = "import ctypes\nc = ctypes.CDLL(None)\nprint(c.inotify_add_watch(c.inotify_init(), b'/usr/bin', 0x20))"
    assert new_box().run(watch).text == "-1\n"
